"""Vectors of any words from a fastText .bin model."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import NO_ROW
from splitembed.errors import SplitError, VectorFormatError
from splitembed.paths import local_path
from splitembed.vectors.fasttext.header import is_fasttext
from splitembed.vectors.fasttext.model import Model
from splitembed.vectors.fasttext.read_bin import open_model
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.streams.opening import open_stream
from splitembed.words import encode_word


class SubwordVectors:
    r"""A fastText .bin model that gives a vector to any word, also to one that it was not trained on.

    A word of the model has the mean of its own row and the rows of its n-grams, any other word the mean of the rows of
    its n-grams: the values that `fasttext print-word-vectors` prints in 5 digits. A word outside the model without
    n-grams (too short, or in a model trained with `-maxn 0`) has zeros, as in fastText.

    Each call of `rows` opens and reads the file once, so pass many words at a time. A plain file is mapped, so that
    only the rows that are needed are read; a compressed file is read to its end.

    In this example "the" has its own row 0.5, and all n-grams share one row, 2.0:

    >>> import struct, tempfile
    >>> from pathlib import Path
    >>> content = b"\xba\x16\x4f\x2f" + struct.pack("<13id", 12, 1, 5, 5, 1, 5, 1, 2, 2, 1, 3, 6, 100, 1e-4)
    >>> content += struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"the\0" + struct.pack("<qb", 9, 0)
    >>> content += struct.pack("<?2q2f", 0, 2, 1, 0.5, 2.0)
    >>> content += struct.pack("<?2qf", 0, 1, 1, 0.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.bin"
    ...     written = path.write_bytes(content)
    ...     SubwordVectors(path).rows(["the", "there", "a"]).tolist()
    [[1.7857], [2.0], [2.0]]

    Args:
        path: the model, plain, compressed or in a zip archive.
        member: the name of the model inside the archive; None takes the only one.
        dim: the expected dim, which also chooses a file inside the archive; None for any.
        warns: whether the first reading of rows warns about suspicious content of the model.

    Raises:
        VectorFormatError: (a ValueError) the file is not a fastText .bin model, its header is damaged, or it has
            another dim.
        OSError: the file cannot be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        member: str | None = None,
        dim: int | None = None,
        warns: bool = True,
    ) -> None:
        self.path, self._member, self._requested_dim = os.fspath(path), member, dim
        # The working directory may change before `rows`.
        self._absolute_path = os.path.abspath(local_path(path))
        self._warns = warns
        with self._open() as (model, _):
            self.dim = model.header.dim
            self.has_subwords = model.header.has_subwords

    def rows(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of words.

        Args:
            words: any strings, which may repeat.

        Returns:
            `(num_words, dim)`.

        Raises:
            VectorFormatError: the model is cut short, quantized, pruned, or holds values that are not finite.
            VocabularyError: a word cannot be encoded, because it holds lone surrogates.
        """
        raw = [encode_word(word) for word in words]
        with self._open() as (model, checks):
            found = model.find_words(frozenset(raw))
            # Of duplicate words the first row is used.
            row_of = dict(zip(reversed(found.raw), reversed(found.rows.tolist()), strict=True))
            own_rows = np.array([row_of.get(word, NO_ROW) for word in raw], np.int64)
            rows = np.empty((0, self.dim), np.float32)
            start = 0
            for means in model.iter_means(raw, own_rows):
                # The whole model was checked before the first means.
                if not start:
                    rows = np.empty((len(raw), self.dim), np.float32)
                rows[start : start + len(means)] = means
                start += len(means)
            if self._warns:
                checks.warnings.emit()
                # Once is enough.
                self._warns = False
        self._check_finite(rows, words)
        return rows

    def make_rows(self, tokens: Sequence[str], known: Any, generator: Any) -> NDArray[np.float32]:
        """Return the initial rows of tokens, for `initialize_rows`.

        Args:
            tokens: the tokens.
            known: unused.
            generator: unused.

        Returns:
            `(num_tokens, dim)`.

        Raises:
            SplitError: the model has no subwords, so it has no vectors for tokens that it was not trained on.
            VectorFormatError, VocabularyError: the errors of `rows`.
        """
        if not self.has_subwords:
            raise SplitError(
                f"{self.path} has no subwords (it was trained with -maxn 0), so it has no row for a token that is "
                "not among its words. Pass another initializer, or a model that was trained with subwords."
            )
        return self.rows(tokens)

    @contextmanager
    def _open(self) -> Iterator[tuple[Model, ReadChecks]]:
        with open_stream(self._absolute_path, progress=False, member=self._member, dim=self._requested_dim) as stream:
            if not is_fasttext(stream.head):
                raise VectorFormatError(
                    f"{self.path}: found {stream.head[:8]!r} at its start; expected a fastText .bin model. Pass the "
                    ".bin file, because a .vec file holds no subwords."
                )
            checks = ReadChecks(self.path, dim=self._requested_dim)
            with open_model(stream, checks) as model:
                yield model, checks

    def _check_finite(self, rows: NDArray[np.float32], words: Sequence[str]) -> None:
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise VectorFormatError(
                f"{self.path}: found values that are not finite in the vector of {words[int(finite.argmin())]!r}; "
                "expected finite numbers. The file is damaged. Download it again."
            )

    def __repr__(self) -> str:
        return f"<SubwordVectors of {self.path}: dim {self.dim}>"
