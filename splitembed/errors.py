"""Exceptions and warnings. Each message says where, what was found, what was expected and what to do.

SplitEmbedError
  VectorFormatError   (ValueError)    a file of pretrained vectors has unexpected content
  TableFormatError    (ValueError)    a frozen.h5 or trainable.h5 is foreign, cut short, damaged or too new
  FingerprintError    (ValueError)    a trainable table and a frozen table that do not match
  VocabularyError     (ValueError)    an invalid vocabulary
  SplitError          (ValueError)    invalid arguments or shapes
  TokenIdError        (IndexError)    an id outside the vocabulary, a row outside its table
  UnknownTokenError   (KeyError)      a token that is not in the vocabulary
  MissingTableError   (RuntimeError)  a layer without its tables

VectorFileWarning     (UserWarning)   suspicious content of a file of vectors, one warning for each kind
NoMatchWarning        (UserWarning)   a vocabulary of which few tokens have a pretrained vector
VocabularyWarning     (UserWarning)   token ids that do not fit the vocabulary: a stale lookup layer, many gaps
NewTokenWarning       (UserWarning)   new tokens that a model's tokenizer or head does not know
"""

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any


class SplitEmbedError(Exception):
    """Base class of the errors of splitembed."""

    if not TYPE_CHECKING:
        # AutoGraph keeps the class of an error only where it knows the constructor.
        __init__ = Exception.__init__


class VectorFormatError(SplitEmbedError, ValueError):
    """A file of pretrained vectors has unexpected content."""


class TableFormatError(SplitEmbedError, ValueError):
    """A frozen.h5 or trainable.h5 is foreign, cut short, damaged, or written by a newer version."""


class FingerprintError(SplitEmbedError, ValueError):
    """A trainable table and a frozen table that do not match; the message names both fingerprints."""


class VocabularyError(SplitEmbedError, ValueError):
    """An invalid vocabulary."""


class SplitError(SplitEmbedError, ValueError):
    """Invalid arguments or shapes."""


class TokenIdError(SplitEmbedError, IndexError):
    """An id outside the vocabulary, or a row outside its table."""


class UnknownTokenError(SplitEmbedError, KeyError):
    """A token that is not in the vocabulary."""

    def __str__(self) -> str:
        # KeyError would show the message in quotes, with escaped newlines.
        return str(self.args[0]) if self.args else ""


class MissingTableError(SplitEmbedError, RuntimeError):
    """A layer whose frozen table, remap and vocabulary have not been loaded."""


class VectorFileWarning(UserWarning):
    """Suspicious content of a file of vectors: one warning for each kind, with its count and first position."""


class NoMatchWarning(UserWarning):
    """A vocabulary of which few tokens have a pretrained vector: a wrong file, or another spelling."""


class VocabularyWarning(UserWarning):
    """Token ids that do not fit the vocabulary: a lookup layer with an old vocabulary, or many ids without a token."""


class NewTokenWarning(UserWarning):
    """New tokens that a pretrained model reads, and that its tokenizer does not know or its head does not predict."""


def shortened(items: Sequence[Any], limit: int = 3, show: Callable[[Any], str] = repr) -> str:
    """Return the first items of a list, and the number of the others, for a message.

    >>> shortened(["usr"]), shortened(["a", "b", "c", "d", "e"])
    ("'usr'", "'a', 'b', 'c' and 2 more")

    Args:
        items: of any kind.
        limit: number of items to show.
        show: makes the text of one item.
    """
    shown = ", ".join(map(show, items[:limit]))
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit:,} more"


def load_library(name: str, needed_by: str, extra: str) -> ModuleType:
    """Import a library that comes with an extra.

    >>> load_library("json", "words.json", "example").__name__
    'json'

    Args:
        name: name of the module.
        needed_by: the file or the function that needs it, for the message.
        extra: the extra of splitembed that installs it.

    Raises:
        ImportError: the library is not installed. The message says what needs it, and how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise ImportError(
            f"{needed_by} needs the library {library}, which is not installed ({error}). Run "
            f'`pip install "splitembed[{extra}]"`.',
            name=library,
        ) from error
