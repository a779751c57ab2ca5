"""Private names of Keras, TensorFlow and CPython, each in one function: nothing else in the package touches them.

Each docstring says in which versions the name was read, why no public name does, and what to do when it breaks. Keras
and TensorFlow are imported inside the functions, so that the NumPy core can use this module.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

# Hooks that our subclasses of Keras's classes override: private names of Keras 3.6 and 3.15.1, and of its bases in
# TensorFlow 2.18 and 2.21. When Keras no longer calls one, the tests of what it does fail.
OVERRIDDEN = (
    # layers take arrays as they are on JAX and PyTorch, to check ids before a conversion narrows them; the public
    # `autocast` only governs floats
    "_convert_input_args",
    "_allow_non_tensor_positional_args",
    # a checkpoint must not hold the frozen table, and no public method leaves an object out
    "_trackable_children",
    # row slices are clipped by their values; the public arguments choose the norm alone
    "_clip_gradients",
)

# Layers and their calls


def in_symbolic_scope() -> bool:
    """Return whether Keras calls a layer with symbols to learn shapes, on JAX and PyTorch.

    Read in Keras 3.6 and 3.15.1. No public function tells such a call from one with values: the symbols look like
    tensors there. When it breaks: a call without tables must return zeros where Keras builds a model, and raise
    elsewhere; a test in tests/layers/test_every_backend.py builds one.
    """
    from keras.src.backend.common import symbolic_scope

    return bool(symbolic_scope.in_symbolic_scope())


def set_mask(tensor: Any, mask: Any) -> None:
    """Set the Keras mask of a tensor inside `call`.

    Read in Keras 3.6 and 3.15.1. The public way, `compute_mask`, sees the inputs but not the arguments of the call, on
    which the mask of a reversible layer depends; Keras's own layer uses this function too. If it breaks, return the
    mask from `compute_mask` for integer inputs.
    """
    from keras.src.backend import set_keras_mask

    set_keras_mask(tensor, mask)


def autocast_dtype() -> str | None:
    """Return the dtype in which the current autocast scope reads variables; None outside any.

    Read in Keras 3.6 and 3.15.1. No public name tells the scope, which a layer inside another one may inherit. If it
    breaks, use the layer's `compute_dtype`.
    """
    from keras.src.backend import get_autocast_scope

    scope = get_autocast_scope()
    return None if scope is None else scope.dtype


def all_layers(layer: Any) -> list[Any]:
    """Return a layer and every layer that it holds, at any depth, containers before their contents.

    Reads `Layer._flatten_layers` (Keras 3.6 and 3.15.1). `Model.layers` is public, but has one level and exists on
    models alone. When it breaks: walk `Model.layers` and the attributes of other layers.
    """
    return list(layer._flatten_layers())


def set_own_flag(layer: Any, value: bool | int) -> None:
    """Set the `trainable` flag of one layer, without passing it on to its weights and to the layers in it.

    Writes `Layer._trainable` (Keras 3.6 and 3.15.1). The public setter passes the flag on. On TensorFlow, an assignment
    of the identical object is ignored: after 1, which counts as true, `layer.trainable = True` still reaches the
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
    """Return the calls in the graph of a functional or sequential model, inputs first; of other layers, none.

    Reads `Function._nodes_by_depth` and `Sequential._functional` (Keras 3.6 and 3.15.1). `Function.operations` is
    public, but an operation does not tell which of its calls are in the graph. When it breaks: look for the attribute
    that `Function` fills from `map_graph`.
    """
    graph = model if hasattr(model, "_nodes_by_depth") else getattr(model, "_functional", None)
    nodes = {} if graph is None else graph._nodes_by_depth
    return [node for depth in sorted(nodes, reverse=True) for node in nodes[depth]]


def set_shape(tensor: Any, shape: Any) -> None:
    """Change the shape of a symbolic tensor in a graph.

    Writes `KerasTensor._shape` (Keras 3.6 and 3.15.1): a symbolic tensor is immutable, and a model's graph refers to
    the object. When it breaks: the shapes that `summary` and `output_shape` report are those before the change.
    """
    tensor._shape = shape


def config_of_arguments(layer: Any) -> dict[str, Any]:
    """Return the config that Keras makes of a layer's constructor arguments, as the object that it keeps, or {}.

    Reads `Operation._auto_config` (Keras 3.6 and 3.15.1): `get_config` returns a copy. When it breaks: a class without
    a `get_config` of its own is saved with the number of tokens that it was made with.
    """
    config: dict[str, Any] = getattr(getattr(layer, "_auto_config", None), "config", {})
    return config


def compile_arguments(model: Any) -> dict[str, Any]:
    """Return the arguments of a model's last `compile`, as the objects that were passed.

    Reads `Trainer._compile_config` (Keras 3.6 and 3.15.1): the public `get_compile_config` serializes them, which
    custom losses and metrics do not all survive. When it breaks: use that one, with `compile_from_config`.
    """
    arguments: dict[str, Any] = model._compile_config.config
    return arguments


def add_refusal(model: Any, method: str, layer_name: str) -> None:
    """Shadow a method of one model that writes or reads files, so that it refuses as long as a layer in it is split.

    The functions are the only attributes that the package adds to objects of others. A subclass made at run time would
    be the other way; it changes the model's type, and pickle does not find it. `object.__setattr__` bypasses the
    tracking of attributes (Keras 3.6 and 3.15.1, TensorFlow 2.18 and 2.21). When it breaks: assign the attribute.
    """
    what = f"{method} of {getattr(model, 'name', model)!r}"
    object.__setattr__(model, method, partial(refuse_files, what, layer_name))


def remove_refusal(model: Any, method: str) -> None:
    """Give a model its method back that `add_refusal` has shadowed, if it has."""
    shadow = vars(model).get(method)
    if isinstance(shadow, partial) and shadow.func is refuse_files:
        object.__delattr__(model, method)


def refuse_files(what: str, layer_name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to write or read a file of a split model that Keras rebuilds from constructor arguments.

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

    Read in Keras 3.6 and 3.15.1. `update_step` is called with the TensorFlow variable, under a strategy with that of
    one replica, and the example of a custom optimizer in Keras's documentation finds its slots by
    `_get_variable_index`. When it breaks: the tests of LazyAdam fail; map the variables, and their local results under
    a strategy, to positions when the optimizer is built.
    """
    if not hasattr(variable, "handle") and not hasattr(variable, "path"):
        return None
    try:
        return int(optimizer._get_variable_index(variable))
    except KeyError:
        return None


def optimizer_variables(optimizer: Any) -> list[Any]:
    """Return the variables that a built optimizer trains, in the order of its slots.

    Reads `BaseOptimizer._trainable_variables` (Keras 3.6 and 3.15.1). The model's list is public, but changes with
    `trainable`. When it breaks: use `model.trainable_variables`.
    """
    return list(optimizer._trainable_variables)


def optimizer_slots(optimizer: Any) -> dict[str, list[Any]]:
    """Return the lists that hold one variable, or None, for each variable that a built optimizer trains.

    The keys are Keras's names of the lists without the underscore, such as "momentums". They are attributes of each
    optimizer class (Keras 3.6 and 3.15.1), found by their length and contents; the public `Optimizer.variables` does
    not tell to which variable a slot belongs. When it breaks: match the paths of slots and variables.
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


def is_decayed(optimizer: Any, variable: Any) -> bool:
    """Return whether an optimizer's weight decay applies to a variable.

    Calls `BaseOptimizer._use_weight_decay` (Keras 3.6 and 3.15.1): `exclude_from_weight_decay` is public, but nothing
    tells what was excluded. When it breaks: exclude the variables again by hand.
    """
    return bool(optimizer._use_weight_decay(variable))


# Graphs and gradients of TensorFlow


def is_for_xla(graph: Any) -> bool:
    """Return whether XLA compiles a graph or one around it.

    Read in TensorFlow 2.18 and 2.21. The public API has `jit_compile=` to ask for XLA, and nothing to find out. When it
    breaks: look in `tensorflow/python/ops/control_flow_util.py` for what `tf.unique` asks before it refuses XLA.
    """
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

    return bool(GraphOrParentsInXlaContext(graph))


# Saving


def assets_folder(folder: Path) -> Path:
    """Return the folder `assets` of the archive that Keras is saving, which holds the given folder of one layer.

    Read in Keras 3.6 and 3.15.1. `save_assets` only receives the folder of its layer, and layers that share a table
    write it once beside those. Keras creates `assets` in a temporary folder, or beside a config.json. If it breaks,
    return `folder`: then each layer of an archive writes its own copy of a shared table.
    """
    for parent in (folder, *folder.parents):
        is_temporary = os.path.realpath(parent.parent.parent) == os.path.realpath(tempfile.gettempdir())
        if parent.name == "assets" and (is_temporary or (parent.parent / "config.json").is_file()):
            return parent
    return folder


# Exports


# Keras's exporters, and the converters that can be called directly: each traces the model that it converts.
_EXPORTERS = {"keras.src.export.onnx", "keras.src.export.litert", "tensorflow.lite.python.lite", "tf2onnx.convert"}


def is_called_by_exporter() -> bool:
    """Return whether an exporter to ONNX or LiteRT is on the call stack. Ask it only while a graph is traced.

    Read in Keras 3.15.1, TensorFlow 2.21 and tf2onnx 1.17. The exporters trace a model by the calls that make a
    SavedModel (`ExportArchive.add_endpoint`, `tf.function`), and set nothing that a layer could read: the caller's
    module is the only difference. When it breaks: tests/models/test_export_formats.py fails; add the module that now
    traces the model.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") not in _EXPORTERS:
        frame = frame.f_back
    return frame is not None
