"""The private names of Keras, TensorFlow and CPython that the package uses, each in one function.

Each docstring states the versions in which the name was read, why no public name suffices, and what to do when it
breaks. Keras and TensorFlow are imported inside the functions, so that the NumPy core can use this module.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

# Private methods and attributes that subclasses in this package override, of Keras 3.6 and 3.15.1 and of its base
# classes in TensorFlow 2.18 and 2.21. When Keras no longer reads one, the tests of its effect fail.
OVERRIDDEN = (
    # On JAX and PyTorch, ids are checked before a conversion narrows them. The public `autocast` only governs floats.
    "_convert_input_args",
    "_allow_non_tensor_positional_args",
    # Checkpoints must not contain the frozen table, and no public method excludes an object.
    "_trackable_children",
    # Row slices are clipped by their values. The public arguments only choose the norm.
    "_clip_gradients",
)

# Layers and their calls


def in_symbolic_scope() -> bool:
    """Return whether Keras calls a layer to infer shapes, on JAX and PyTorch.

    Read in Keras 3.6 and 3.15.1. No public function distinguishes such a call from one with values, because symbolic
    tensors look like others there. When it breaks: a layer without tables must return zeros where Keras builds a model,
    and raise an error elsewhere; a test in tests/layers/test_every_backend.py builds one.
    """
    from keras.src.backend.common import symbolic_scope

    return bool(symbolic_scope.in_symbolic_scope())


def set_mask(tensor: Any, mask: Any) -> None:
    """Set the Keras mask of a tensor inside `call`.

    Read in Keras 3.6 and 3.15.1. The public `compute_mask` receives the inputs but not the arguments of the call, on
    which the mask of a reversible layer depends; Keras's own layer uses this function too. When it breaks: return the
    mask from `compute_mask` for integer inputs.
    """
    from keras.src.backend import set_keras_mask

    set_keras_mask(tensor, mask)


def autocast_dtype() -> str | None:
    """Return the dtype in which the current autocast scope reads variables; None outside any.

    Read in Keras 3.6 and 3.15.1. A layer in another one may get the scope of that one, and no public name reports it.
    When it breaks: use the layer's `compute_dtype`.
    """
    from keras.src.backend import get_autocast_scope

    scope = get_autocast_scope()
    return None if scope is None else scope.dtype


def all_layers(layer: Any) -> list[Any]:
    """Return a layer and the layers in it at any depth, containers before their contents.

    Calls `Layer._flatten_layers` (Keras 3.6 and 3.15.1). The public `Model.layers` has one level, and only models have
    it. When it breaks: walk `Model.layers` and the attributes of other layers.
    """
    return list(layer._flatten_layers())


def set_own_flag(layer: Any, value: bool | int) -> None:
    """Set the `trainable` flag of one layer, and not those of its weights and of the layers in it.

    Writes `Layer._trainable` (Keras 3.6 and 3.15.1). The public setter sets those too. TensorFlow ignores the
    assignment of an identical object: after 1, which counts as true, `layer.trainable = True` still reaches the
    contents. When it breaks: set the public flag of the container first, then those of its contents.
    """
    layer._trainable = value


def become(old: Any, new: Any) -> Callable[[], None]:
    """Give a layer the class and the state of another one, and return the function that undoes it.

    A model refers to a layer by its attributes, lists, wrappers and graph nodes, and Keras has no public way to replace
    a layer in them. As the object stays the same, all of them find the new layer. `_inbound_nodes` and
    `_outbound_nodes` (Keras 3.6 and 3.15.1) are the layer's positions in graphs; they are copied into the new lists,
    because Keras's lists keep a reference to the variables of the layer that made them. `object.__setattr__` bypasses
    Keras's tracking of attributes. When it breaks: compare the attributes of a layer before and after its first call
    in a functional model.
    """
    kind, state = type(old), old.__dict__
    for name in ("_inbound_nodes", "_outbound_nodes"):
        new.__dict__[name].extend(state[name])

    def set_state(kind: type, state: dict[str, Any]) -> None:
        object.__setattr__(old, "__class__", kind)
        object.__setattr__(old, "__dict__", state)

    set_state(type(new), new.__dict__)
    return lambda: set_state(kind, state)


# Models and their graphs


def graph_nodes(model: Any) -> list[Any]:
    """Return the calls in the graph of a functional or sequential model, inputs first, or [] for other layers.

    Reads `Function._nodes_by_depth` (Keras 3.6 and 3.15.1). The public `Function.operations` does not say which calls
    of an operation are in the graph. When it breaks: look for the attribute that `Function` fills from `map_graph`.
    """
    import keras

    if isinstance(model, keras.Sequential) and hasattr(model, "inputs"):
        model = keras.Function(model.inputs, model.outputs, name="graph")
    nodes = getattr(model, "_nodes_by_depth", {})
    return [node for depth in sorted(nodes, reverse=True) for node in nodes[depth]]


def set_shape(tensor: Any, shape: Any) -> None:
    """Change the shape of a symbolic tensor in a graph.

    Writes `KerasTensor._shape` (Keras 3.6 and 3.15.1): a symbolic tensor is immutable, and a model's graph refers to
    the object. When it breaks: the shapes that `summary` and `output_shape` report are those before the change.
    """
    tensor._shape = shape


def config_of_arguments(layer: Any) -> dict[str, Any]:
    """Return the dict that Keras made of a layer's constructor arguments and reads in `get_config`, or {}.

    Reads `Operation._auto_config` (Keras 3.6 and 3.15.1): `get_config` returns a copy. When it breaks: return {}; then
    a class without a `get_config` is saved with the number of tokens from before the split.
    """
    config: dict[str, Any] = getattr(getattr(layer, "_auto_config", None), "config", {})
    return config


def compile_arguments(model: Any) -> dict[str, Any]:
    """Return the objects that were passed to a model's last `compile`.

    Reads `Trainer._compile_config` (Keras 3.6 and 3.15.1). The public `get_compile_config` serializes them, which some
    custom losses and metrics do not support. When it breaks: use that one, with `compile_from_config`.
    """
    arguments: dict[str, Any] = model._compile_config.config
    return arguments


# Methods that write or read files


def add_refusal(model: Any, method: str, layer_name: str) -> None:
    """Shadow a method of one model by a function that raises an error.

    These functions are the only attributes that the package adds to objects of other libraries. The alternative, a
    subclass made at run time, would change the model's type, and pickle would not find it. `object.__setattr__`
    bypasses the tracking of attributes (Keras 3.6 and 3.15.1, TensorFlow 2.18 and 2.21). When it breaks: assign the
    attribute.

    Args:
        model: the model, which contains a split layer.
        method: the name of a method that writes or reads files.
        layer_name: the name of the split layer.
    """
    what = f"{method} of {getattr(model, 'name', model)!r}"
    object.__setattr__(model, method, partial(refuse_files, what, layer_name))


def remove_refusal(model: Any, method: str) -> None:
    """Remove the function of `add_refusal` from a model, if there is one.

    `object.__delattr__` bypasses the tracking of attributes (Keras 3.6 and 3.15.1, TensorFlow 2.18 and 2.21). When it
    breaks: delete the attribute.
    """
    shadow = vars(model).get(method)
    if isinstance(shadow, partial) and shadow.func is refuse_files:
        object.__delattr__(model, method)


def refuse_files(what: str, layer_name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to write or read a file of a split model that Keras rebuilds from constructor arguments.

    Args:
        what: the operation, which starts the message.
        layer_name: the name of the split layer.
        args: those of the operation; ignored.
        kwargs: those of the operation; ignored.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"{what} is refused while its {layer_name!r} is a SplitEmbedding: the model is rebuilt from constructor "
        "arguments, which make a plain embedding. Either save the small table by save_trainable, and put it onto the "
        "base model by load_trainable; or make the model plain first, by combine_embedding."
    )


# Optimizers


def index_in_optimizer(optimizer: Any, variable: Any) -> int | None:
    """Return the position of a variable among those that an optimizer was built with; None for another variable.

    Calls `BaseOptimizer._get_variable_index` (Keras 3.6 and 3.15.1), as the example of a custom optimizer in Keras's
    documentation does. `update_step` receives the TensorFlow variable, under a strategy that of one replica. When it
    breaks: map the variables, and their local results under a strategy, to positions when the optimizer is built.
    """
    if not hasattr(variable, "handle") and not hasattr(variable, "path"):
        return None
    try:
        return int(optimizer._get_variable_index(variable))
    except KeyError:
        return None


def optimizer_variables(optimizer: Any) -> list[Any]:
    """Return the variables that a built optimizer trains, in the order of its slots.

    They are a list among the attributes of an optimizer (Keras 3.6 and 3.15.1), found by their positions. The public
    `Model.trainable_variables` changes with `trainable`. When it breaks: use that list.
    """
    # a list in most optimizers, a tuple in the one inside a LossScaleOptimizer
    lists = [value for value in vars(optimizer).values() if isinstance(value, list | tuple)]
    for values in lists:
        if values and [index_in_optimizer(optimizer, each) for each in values] == list(range(len(values))):
            return list(values)
    return []


def optimizer_slots(optimizer: Any) -> dict[str, list[Any]]:
    """Return the lists that hold one variable, or None, for each variable that a built optimizer trains.

    The keys are Keras's names of the lists without the underscore, such as "momentums". They are attributes of each
    optimizer class (Keras 3.6 and 3.15.1), found by their length and contents. The public `Optimizer.variables` does
    not say to which variable a slot belongs. When it breaks: match the paths of slots and variables.
    """
    trained, iterations = optimizer_variables(optimizer), optimizer.iterations
    slots = {}
    for name, value in vars(optimizer).items():
        if isinstance(value, list) and len(value) == len(trained):
            is_slot = all(each is None or isinstance(each, type(iterations)) for each in value)
            others = (iterations, *trained)
            if is_slot and not any(each is other for each in value for other in others):
                slots[name.lstrip("_")] = list(value)
    return slots


def hides_slots(optimizer: Any) -> bool:
    """Return whether an optimizer has slots where `optimizer_slots` does not find them: in others, or in dicts.

    Read in Keras 3.6 and 3.15.1: `MultiOptimizer` has optimizers, and Muon had dicts in versions between them. Dicts of
    TensorFlow, whose names start with `_self_`, refer to all variables of an object. When it breaks: return False; then
    the state of such an optimizer starts again.
    """
    import keras

    if isinstance(optimizer, getattr(keras.optimizers, "MultiOptimizer", ())):
        return True
    attributes = {} if optimizer is None else vars(optimizer)
    dicts = [value for name, value in attributes.items() if isinstance(value, dict) and not name.startswith("_self_")]
    return any(isinstance(slot, keras.Variable) for each in dicts for slot in each.values())


def is_decayed(optimizer: Any, variable: Any) -> bool:
    """Return whether an optimizer's weight decay applies to a variable.

    Calls `BaseOptimizer._use_weight_decay` (Keras 3.6 and 3.15.1). The public `exclude_from_weight_decay` excludes
    variables, and no public name lists them. When it breaks: return True, and document that users exclude them again.
    """
    return bool(optimizer._use_weight_decay(variable))


# Graphs of TensorFlow


def is_for_xla(graph: Any) -> bool:
    """Return whether XLA compiles a graph or one around it.

    Read in TensorFlow 2.18 and 2.21. The public `jit_compile=` requests XLA, and no public name reports it. When it
    breaks: use the check by which `tf.unique` refuses XLA.
    """
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

    return bool(GraphOrParentsInXlaContext(graph))


def record_gradient(output: Any, inputs: list[Any], backward: Callable[..., Any]) -> None:
    """Record how the gradient of a graph's tensor is computed, for the tapes that are active.

    Calls `tensorflow.python.eager.record.record_operation` (TensorFlow 2.18 and 2.21), as `tf.custom_gradient` does,
    which keeps each function, and the memory that it refers to, for the life of the process. When it breaks: use
    `tf.custom_gradient` in `lookup.gradients.with_gradient`; a test in tests/lookup/test_gradients.py measures what
    stays.

    Args:
        output: the tensor.
        inputs: the tensors that it depends on.
        backward: returns the gradient of each input, of the gradient of the output.
    """
    from tensorflow.python.eager import record

    record.record_operation("SplitEmbedGradient", [output], inputs, backward)


# Saving


def writes_legacy_file() -> bool:
    """Return whether Keras asks for configs in order to write a model to a legacy `.h5` file.

    Reads the global attribute "use_legacy_config" (Keras 3.6 and 3.15.1). Such a file has no room for assets, and Keras
    calls no method of a layer that could refuse it but `get_config`. When it breaks: return False; then a legacy file
    is written without tables, and a test in tests/layers/test_saving.py fails.
    """
    from keras.src.backend.common import global_state

    return bool(global_state.get_global_attribute("use_legacy_config", False))


def assets_folder(folder: Path) -> Path:
    """Return the folder `assets` of the archive that Keras is saving, which contains the given folder of one layer.

    The layout was read in Keras 3.6 and 3.15.1, which creates `assets` in a temporary folder, or beside a config.json.
    The public `save_assets` only receives the folder of its layer, and layers that share a table write it once, beside
    those. When it breaks: return `folder`; then each layer of an archive writes its copy of a shared table.
    """
    for parent in (folder, *folder.parents):
        is_temporary = os.path.realpath(parent.parent.parent) == os.path.realpath(tempfile.gettempdir())
        if parent.name == "assets" and (is_temporary or (parent.parent / "config.json").is_file()):
            return parent
    return folder


# Exports

# the values of `format` in `Model.export` for formats of fixed shapes
_FIXED_FORMATS = ("onnx", "litert")
# packages of the converters that can be called directly
_CONVERTERS = ("tensorflow.lite.", "tf2onnx.")


def is_called_by_exporter() -> bool:
    """Return whether an exporter to ONNX or LiteRT is on the call stack. Call it only while a graph is traced.

    Uses `sys._getframe` of CPython; read in Keras 3.15.1, TensorFlow 2.21 and tf2onnx 1.17. The exporters trace a model
    by the calls that make a SavedModel (`ExportArchive.add_endpoint`, `tf.function`) and set nothing that a layer could
    read. When it breaks: tests/models/test_export_formats.py fails; add the function that now traces the model.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and not _is_exporter(frame):
        frame = frame.f_back
    return frame is not None


def _is_exporter(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    if frame.f_code.co_name == "export" and module.startswith("keras."):
        return frame.f_locals.get("format") in _FIXED_FORMATS
    return module.startswith(_CONVERTERS)
