"""Private names of Keras, TensorFlow and CPython, each in one function: nothing else in the package touches them.

Each docstring says in which versions the name was read, why no public name does, and what to do when it breaks. Keras
and TensorFlow are imported inside the functions, so that the NumPy core can use this module.
"""

import os
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

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


# Models and their graphs

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
