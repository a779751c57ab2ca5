"""Registration of the Keras classes when Keras is imported, without importing Keras or TensorFlow.

Keras finds a saved custom layer only among classes that were registered before `load_model`, and importing them here
would make `import splitembed` import TensorFlow. The folders of the Keras part import Keras before their modules, so
that none of these is half imported when the hook runs.
"""

import importlib
from typing import Any

import wrapt

# Importing these modules registers their classes.
_MODULES = (
    "splitembed.layers.reversible",
    "splitembed.gradients.gate",
    "splitembed.gradients.partial_embedding",
    "splitembed.gradients.wrapper",
    "splitembed.optimizers.lazy",
)


def register_with_keras() -> None:
    """Import the Keras classes now if Keras is imported, or else when it is."""
    wrapt.register_post_import_hook(_import_classes, "keras")


def _import_classes(keras: Any) -> None:
    for name in _MODULES:
        importlib.import_module(name)
