"""Registers splitembed's Keras classes the moment Keras is there, without importing Keras or TensorFlow itself.

Keras finds a saved custom layer only among classes that were registered before `load_model`, and importing them here
would make `import splitembed` import TensorFlow.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Importing them registers their classes, and on TensorFlow the optimizers.
_MODULES = (
    "splitembed.layers.embedding",
    "splitembed.gradients.partial_embedding",
    "splitembed.gradients",
    "splitembed.layers.reversible",
    "splitembed.optimizers",
)
_UNDER_THEM = ("splitembed.lookup.static", "splitembed.layers.saving")  # which import Keras, and which they import from


def register_with_keras() -> None:
    """Imports the Keras classes now if Keras is imported, else as soon as it has been."""
    if "keras" in sys.modules and not _is_initializing(sys.modules["keras"]):
        _register()
    else:
        sys.meta_path.insert(0, _AfterKeras())


def _is_initializing(module: ModuleType) -> bool:
    return bool(getattr(module.__spec__, "_initializing", False))


def _register() -> None:
    for name in _MODULES:
        importlib.import_module(name)


class _AfterKeras(MetaPathFinder):
    """Finds Keras where the others find it, and registers once it has been executed; a search alone changes nothing."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in (*_MODULES, *_UNDER_THEM):  # Keras first: from what is half imported the others could not import
            importlib.import_module("keras")
            return ModuleSpec(name, _Imported()) if name in sys.modules else None
        if name != "keras":
            return None
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in _other_finders())), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)
        return spec


def _other_finders() -> list[Any]:
    """By name: were this module reloaded, two of its finders would ask each other without end."""
    return [finder for finder in sys.meta_path if type(finder).__name__ != _AfterKeras.__name__]


class _Imported(Loader):
    """Loads what has been imported in the meantime."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: it has been executed."""


class _RegisteringLoader(Loader):
    """Keras's own loader, which it leaves in its place, with the registration after it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:  # resources and the like: as the loader has them
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path[:] = _other_finders()
        _register()
