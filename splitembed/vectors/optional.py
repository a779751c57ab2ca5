"""Libraries that only some sources need: a name enters; the module leaves, or the error that says how to install it."""

import importlib
from types import ModuleType


def load_library(name: str, source: str, extra: str) -> ModuleType:
    """Imports a library that comes with an extra.

    >>> load_library("json", "words.json", "example").__name__
    'json'

    Args:
        name: of the module.
        source: what cannot be read without it, for the message.
        extra: the extra of splitembed that installs it.

    Raises:
        ImportError: it is not installed; the message names the source, the library and the extra.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise ImportError(
            f"{source} is read with the library {library}, which is missing ({error}): "
            f'pip install "splitembed[{extra}]".',
            name=library,
        ) from error
