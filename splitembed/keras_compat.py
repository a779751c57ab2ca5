"""Private names of Keras, TensorFlow and CPython, each in one function: nothing else in the package touches them.

Each docstring says in which versions the name was read, why no public name does, and what to do when it breaks. Keras
and TensorFlow are imported inside the functions, so that the NumPy core can use this module.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

# Layers and their calls


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

# Graphs and gradients of TensorFlow

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
