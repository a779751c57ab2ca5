"""Pickles, such as gensim's .kv, which are only loaded if the user allows it."""

import bz2
import contextlib
import gzip
import os
import pickle
import re
import zlib
from typing import Any

from splitembed.errors import VectorFormatError, load_library
from splitembed.vectors.open_request import OpenRequest

# Protocols 2 to 5; for older protocols, a class of copyreg, gensim or numpy, or a dict, list or tuple.
_PICKLE = re.compile(rb"\x80[\x02-\x05]|c(copy_reg|gensim|numpy)[\w.]*\n\w+\n|\((dp|lp)?\d*\n")
_OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}
_HEAD_BYTES = 4096
# The first bytes of a pickle of gensim name its classes.
_GENSIM = b"gensim"


def recognise_pickle(request: OpenRequest) -> bool:
    """Return whether the source is a file that starts like a pickle."""
    return request.file is not None and is_pickle(request.file)


def is_pickle(path: str | os.PathLike[str]) -> bool:
    """Return whether a file, plain or compressed, starts like a pickle. Nothing is loaded."""
    return _PICKLE.match(_head(path)) is not None


def load_pickle(path: str | os.PathLike[str]) -> Any:
    """Load a pickle, which can run any code. A pickle that gensim saved is loaded by gensim.

    Args:
        path: a file that the user trusts. gensim maps the arrays that it saved beside the file.

    Returns:
        The object; for a whole model of gensim, its vectors.

    Raises:
        VectorFormatError: the pickle cannot be loaded.
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
    except FileNotFoundError as error:
        raise (_incomplete if _GENSIM in _head(path) else _unloadable)(name, error) from error
    # Unpickling runs code from the file, which may raise any error.
    except Exception as error:
        raise _unloadable(name, error) from error
    return getattr(loaded, "wv", loaded)


def _opener(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        magic = file.read(4)
    return next((opener for mark, opener in _OPENERS.items() if magic.startswith(mark)), open)


def _head(path: str | os.PathLike[str]) -> bytes:
    with contextlib.suppress(OSError, EOFError, zlib.error), _opener(path)(path, "rb") as file:
        head: bytes = file.read(_HEAD_BYTES)
        return head
    return b""


def _incomplete(name: str, error: FileNotFoundError) -> VectorFormatError:
    """Return the error for an array that gensim has saved beside the file and that is missing."""
    return VectorFormatError(
        f"{name}: found no file {error.filename}; expected it beside {os.path.basename(name)}, because gensim has "
        "saved an array in it. Copy both files into one folder, or download it too."
    )


def _unloadable(name: str, error: Exception) -> VectorFormatError:
    return VectorFormatError(
        f"{name}: found a pickle that cannot be loaded here ({type(error).__name__}: {error}); expected words and "
        "their vectors. Load it with the versions of Python and gensim that wrote it, and save it as word2vec text."
    )
