"""The exceptions and warnings of splitembed: every error says where, what was found, what was expected and what to do.

SplitEmbedError
  VectorFormatError   (ValueError)    a file of pretrained vectors is not what it should be
  TableFormatError    (ValueError)    a frozen.h5 or trainable.h5 is foreign, cut short, damaged or too new
  FingerprintError    (ValueError)    tables that do not belong together
  VocabularyError     (ValueError)    a vocabulary that cannot be used as it is
  SplitError          (ValueError)    arguments or shapes that make no split
  TokenIdError        (IndexError)    an id outside the vocabulary, a row outside its table
  UnknownTokenError   (KeyError)      a token that the vocabulary does not hold
  MissingTableError   (RuntimeError)  a layer whose tables have not been loaded

VectorFileWarning     (UserWarning)   doubts about a file of vectors, each kind counted and told once
NoMatchWarning        (UserWarning)   a vocabulary of which hardly a token has a pretrained vector
"""

from typing import TYPE_CHECKING


class SplitEmbedError(Exception):
    """Base of every error that splitembed raises by itself."""

    if not TYPE_CHECKING:
        __init__ = Exception.__init__  # AutoGraph raises an error again as its own kind only where it knows this


class VectorFormatError(SplitEmbedError, ValueError):
    """A file of pretrained vectors is not what it should be."""


class TableFormatError(SplitEmbedError, ValueError):
    """A frozen.h5 or trainable.h5 is foreign, cut short, damaged, or written by a newer version."""


class FingerprintError(SplitEmbedError, ValueError):
    """Tables that do not belong together: the message names both fingerprints."""


class VocabularyError(SplitEmbedError, ValueError):
    """A vocabulary that cannot be used as it is."""


class SplitError(SplitEmbedError, ValueError):
    """Arguments or shapes that make no split."""


class TokenIdError(SplitEmbedError, IndexError):
    """An id outside the vocabulary, or a row outside its table."""


class UnknownTokenError(SplitEmbedError, KeyError):
    """A token that the vocabulary does not hold."""

    def __str__(self) -> str:  # KeyError would show the message in quotes, with its newlines escaped
        return str(self.args[0]) if self.args else ""


class MissingTableError(SplitEmbedError, RuntimeError):
    """A layer whose frozen table, remap and vocabulary have not been loaded."""


class VectorFileWarning(UserWarning):
    """Doubts about a file of vectors: each kind is counted and told once, with the first place."""


class NoMatchWarning(UserWarning):
    """A vocabulary of which hardly a token has a pretrained vector: a wrong file, or another spelling."""
