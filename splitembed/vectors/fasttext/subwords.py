"""Vectors of any words from a fastText .bin model: strings enter; the vectors that fastText gives them leave."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError, VectorFormatError
from splitembed.vectors.fasttext.header import is_fasttext
from splitembed.vectors.fasttext.model import Model
from splitembed.vectors.fasttext.read_bin import open_model
from splitembed.vectors.intake import Intake
from splitembed.vectors.streams.opening import open_stream
from splitembed.words import encode_word


class SubwordVectors:
    r"""A fastText .bin model that gives a vector to any word, also to one that it was not trained on.

    A word of the model has the mean of its own row and the rows of its n-grams, any other word the mean of its n-grams'
    rows: what `fasttext print-word-vectors` prints in 5 digits. A word without n-grams (one that is too short, or any
    where the model was trained with `-maxn 0`) that is none of the model's has zeros, as fastText gives it.

    The file is opened for each call of `rows`, and read once: ask for many words at a time. A plain file is mapped, so
    that only the rows that are needed are read; a compressed one is read to its end.

    >>> import struct, tempfile
    >>> from pathlib import Path
    >>> content = b"\xba\x16\x4f\x2f" + struct.pack("<13id", 12, 1, 5, 5, 1, 5, 1, 2, 2, 1, 3, 6, 100, 1e-4)
    >>> content += struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"the\0" + struct.pack("<qb", 9, 0)
    >>> content += struct.pack("<?2q2f", 0, 2, 1, 0.5, 2.0)  # "the" has 0.5, and all n-grams share one row, 2.0
    >>> content += struct.pack("<?2qf", 0, 1, 1, 0.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.bin"
    ...     written = path.write_bytes(content)
    ...     SubwordVectors(path).rows(["the", "there", "a"]).tolist()
    [[1.7857], [2.0], [2.0]]

    Args:
        path: the model, plain, compressed or in a zip archive.
        member: the name of the model inside the archive; None takes the only one.
        dim: its dim, to be checked, or to choose by inside the archive.

    Raises:
        VectorFormatError: (a ValueError) the file is something else, or its header is damaged.
        OSError: as `open` raises it.
    """

    def __init__(self, path: str | os.PathLike[str], *, member: str | None = None, dim: int | None = None) -> None:
        self.path, self._member, self._asked_dim = os.fspath(path), member, dim
        self._place = os.path.abspath(path)  # the working directory may change before `rows`
        self.has_told = False  # doubts about the model, which are told once
        with self._open() as (model, _):
            self.dim = model.header.dim
            self.has_subwords = model.header.has_subwords

    def rows(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Gives words their vectors.

        Args:
            words: any strings, one as often as you like.

        Returns:
            `(num_words, dim)`.

        Raises:
            VectorFormatError: the model is cut short, quantized, pruned, or holds values that are not finite.
            VocabularyError: a word that no bytes can spell.
        """
        raw = [encode_word(word) for word in words]
        with self._open() as (model, intake):
            found = model.find_words(frozenset(raw))
            row_of = dict(zip(reversed(found.raw), reversed(found.rows.tolist()), strict=True))  # the first counts
            own_rows = np.array([row_of.get(word, -1) for word in raw], np.int64)
            rows = np.empty((0, self.dim), np.float32)
            start = 0
            for means in model.iter_means(raw, own_rows):
                if not start:  # now the model has been looked at to its end
                    rows = np.empty((len(raw), self.dim), np.float32)
                rows[start : start + len(means)] = means
                start += len(means)
            if not self.has_told:
                intake.doubts.tell()
                self.has_told = True
        self._check_finite(rows, words)
        return rows

    def make_rows(self, tokens: Sequence[str], known: Any, generator: Any) -> NDArray[np.float32]:
        """Gives tokens the rows from which they start, for `initialize_rows`.

        Args:
            tokens: the tokens.
            known: not needed.
            generator: not needed.

        Returns:
            `(num_tokens, dim)`.

        Raises:
            SplitError: the model has no subwords, so that it knows nothing of tokens that it was not trained on.
            VectorFormatError, VocabularyError: as `rows` raises them.
        """
        if not self.has_subwords:
            raise SplitError(
                f"{self.path} has no subwords (it was trained with -maxn 0), so it gives no row to a token that is not "
                f"among its words. Pass another initializer, or a model that was trained with them."
            )
        return self.rows(tokens)

    @contextmanager
    def _open(self) -> Iterator[tuple[Model, Intake]]:
        with open_stream(self._place, progress=False, member=self._member, dim=self._asked_dim) as stream:
            if not is_fasttext(stream.head):
                raise VectorFormatError(
                    f"{self.path}: found {stream.head[:8]!r} at its start; expected a fastText .bin model. Pass the "
                    f".bin file, which alone holds subwords."
                )
            intake = Intake(self.path, dim=self._asked_dim)
            with open_model(stream, intake) as model:
                yield model, intake

    def _check_finite(self, rows: NDArray[np.float32], words: Sequence[str]) -> None:
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise VectorFormatError(
                f"{self.path}: found values that are not finite in the vector of {words[int(finite.argmin())]!r}; "
                "expected finite numbers. The file is damaged: get it again."
            )

    def __repr__(self) -> str:
        return f"<SubwordVectors of {self.path}: dim {self.dim}>"
