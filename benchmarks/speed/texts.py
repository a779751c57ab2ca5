"""The problems of readers of vector files: the same vectors as GloVe text and as word2vec binary."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.corpora import write_text_rows

_LETTERS = np.frombuffer(b"etaoinshrdlucmfwypvbgkqjxz", np.uint8)
_NUM_CHECKED = 7


@dataclass(frozen=True)
class TextSizes:
    """The sizes of a vector file, and the share of its words in the vocabulary."""

    num_words: int
    dim: int
    vocabulary_share: float = 0.05

    def shrunk(self) -> "TextSizes":
        """Return small sizes of the same kind, for a quick run."""
        return replace(self, num_words=max(self.num_words // 500, 200), dim=8)

    def make(self, folder: Path) -> "TextProblem":
        """Write vectors.txt, with five decimals as in GloVe files, and vectors.bin into an empty folder."""
        words = made_up_words(self.num_words)
        vectors = _rounded_vectors(self.num_words, self.dim)
        with (folder / "vectors.txt").open("wb") as file:
            write_text_rows(file, words, vectors)
        with (folder / "vectors.bin").open("wb") as file:
            file.write(f"{len(words)} {self.dim}\n".encode())
            file.writelines(
                word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(words, vectors, strict=True)
            )
        np.save(folder / "vectors.npy", vectors)
        (folder / "vocabulary.txt").write_text("\n".join(words[:: self.spacing]))
        return TextProblem(self, folder)

    @property
    def spacing(self) -> int:
        """Return the number of rows from one word of the vocabulary to the next."""
        return round(1 / self.vocabulary_share)


@dataclass(frozen=True)
class TextProblem:
    """A vector file in two formats, and a vocabulary."""

    sizes: TextSizes
    folder: Path

    @property
    def text(self) -> Path:
        """Return the path of the GloVe text."""
        return self.folder / "vectors.txt"

    @property
    def binary(self) -> Path:
        """Return the path of the word2vec binary file."""
        return self.folder / "vectors.bin"

    @cached_property
    def vocabulary(self) -> list[str]:
        """Return the vocabulary: words that are evenly spaced in the file."""
        return (self.folder / "vocabulary.txt").read_text().split("\n")

    @property
    def question(self) -> list[str]:
        """Return the words whose rows are checked before a contestant is timed."""
        return self.vocabulary[:: self._stride]

    def check(self, answer: NDArray[np.float32]) -> None:
        """Check a contestant's rows. The last bit may differ, because some parsers do not round correctly.

        Raises:
            AssertionError: they are not the rows of the file.
        """
        rows = np.load(self.folder / "vectors.npy", mmap_mode="r")[:: self.sizes.spacing][:: self._stride]
        np.testing.assert_allclose(answer, rows, rtol=2e-7, err_msg="The rows read are not those of the file.")

    def facts(self) -> dict[str, float]:
        """Return the sizes of the files, for the report."""
        return {f"{path.name}, MB": path.stat().st_size / 1e6 for path in (self.text, self.binary)}

    @property
    def _stride(self) -> int:
        return max(1, len(self.vocabulary) // _NUM_CHECKED)


def made_up_words(count: int) -> list[str]:
    """Return distinct words of three or more letters.

    >>> words = made_up_words(5000)
    >>> len(set(words)), min(map(len, words)) >= 3
    (5000, True)
    """
    rng = np.random.default_rng(2)
    letters = rng.choice(_LETTERS, (count, 6)).view("S6").reshape(-1).tolist()
    lengths = rng.integers(1, 7, count).tolist()
    return [
        f"{word[:length].decode()}{_base_26(number)}"
        for number, (word, length) in enumerate(zip(letters, lengths, strict=True))
    ]


def _base_26(number: int) -> str:
    """Return the number in letters, after an apostrophe that separates it from the letters before it."""
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 26)
        digits = chr(97 + digit) + digits
    return "'" + digits


def _rounded_vectors(num_words: int, dim: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(3).standard_normal((num_words, dim), dtype=np.float32) * np.float32(0.4)
    return np.round(rows, 5)
