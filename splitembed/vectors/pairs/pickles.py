"""Pickles, gensim's .kv among them: a path enters, and only if the user trusts it; an object in memory leaves."""

import bz2
import contextlib
import gzip
import os
import pickle
import re
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.vectors.open_request import OpenRequest
from splitembed.vectors.unreadable import load_library

# Protocols 2 to 5; of the older ones a class of copyreg, gensim or numpy, or a dict, list or tuple.
_PICKLE = re.compile(rb"\x80[\x02-\x05]|c(copy_reg|gensim|numpy)[\w.]*\n\w+\n|\((dp|lp)?\d*\n")
_OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}
_HEAD_BYTES = 4096
_GENSIM = b"gensim"  # its classes are named in the first bytes


def recognise_pickle(request: OpenRequest) -> bool:
    """Return whether the source is a file that starts like a pickle."""
    return request.file is not None and is_pickle(request.file)


def is_pickle(path: str | os.PathLike[str]) -> bool:
    """Says whether a file, plain or compressed, begins like a pickle; nothing of it is loaded."""
    return _PICKLE.match(_head(path)) is not None


def load_pickle(path: str | os.PathLike[str]) -> Any:
    """Loads a pickle, which can run any code: what gensim saved with gensim, anything else as it is.

    Args:
        path: of a file that the user trusts; gensim finds the arrays beside it, and they are mapped.

    Returns:
        What was saved; of a whole model of gensim, its vectors.

    Raises:
        VectorFormatError: it cannot be loaded.
        ImportError: gensim is not installed.
    """
    name = os.fspath(path)
    opener = _opener(path)
    try:
        if _GENSIM not in _head(path):
            with opener(path, "rb") as file:
                return pickle.load(file)
        keyed_vectors = load_library("gensim.models", name, "gensim").KeyedVectors
        loaded = keyed_vectors.load(name, mmap="r" if opener is open else None)
    except ImportError as error:
        if error.name == "gensim":
            raise
        raise _unloadable(name, error) from error
    except Exception as error:  # unpickling runs the code of whoever wrote the file, which may raise anything
        raise _unloadable(name, error) from error
    return getattr(loaded, "wv", loaded)


def _opener(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        magic = file.read(4)
    return next((opener for mark, opener in _OPENERS.items() if magic.startswith(mark)), open)


def _head(path: str | os.PathLike[str]) -> bytes:
    with contextlib.suppress(OSError, EOFError), _opener(path)(path, "rb") as file:
        head: bytes = file.read(_HEAD_BYTES)
        return head
    return b""


def _unloadable(name: str, error: Exception) -> VectorFormatError:
    return VectorFormatError(
        f"{name}: found a pickle that cannot be loaded here ({type(error).__name__}: {error}); expected words and "
        "their vectors. Load it with the versions of Python and gensim that wrote it, and save it as word2vec text."
    )
