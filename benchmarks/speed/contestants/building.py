"""Building a split from a vocabulary, words and rows: with splitembed, and with the usual loop."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import Contestant
from benchmarks.speed.texts import made_up_words
from splitembed.arrays import aligned_empty
from splitembed.split.build import build_split

_KNOWN_SHARE = 0.95
_NUM_CHECKED = 1000


@dataclass(frozen=True)
class WordSizes:
    """The sizes: as many tokens as pretrained words, and 95 % of the tokens are pretrained words."""

    num_words: int
    dim: int

    def shrunk(self) -> "WordSizes":
        """Return small sizes of the same kind, for a quick run."""
        return replace(self, num_words=max(self.num_words // 500, 200), dim=8)

    def make(self, folder: Path) -> "WordProblem":
        """Write the pretrained rows. Words are generated when they are needed."""
        rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float32, (self.num_words, self.dim))
        rows[:] = np.random.default_rng(5).random(rows.shape, np.float32)
        return WordProblem(self, folder)


@dataclass(frozen=True)
class WordProblem:
    """Words and rows, and a vocabulary with most of these words in another order."""

    sizes: WordSizes
    folder: Path

    def load(self) -> tuple[list[str], NDArray[np.float32], list[str], NDArray[np.int64]]:
        """Return the words, their rows `(num_words, dim)` in memory, the vocabulary, and each token's word index.

        A token without a row has an index beyond the last word.
        """
        num_words = self.sizes.num_words
        made_up = made_up_words(num_words + int(num_words * (1 - _KNOWN_SHARE)))
        indices = np.random.default_rng(6).permutation(len(made_up))[:num_words]
        rows = aligned_empty((num_words, self.sizes.dim), np.float32)
        rows[:] = np.load(self.folder / "rows.npy", mmap_mode="r")
        return made_up[:num_words], rows, [made_up[index] for index in indices.tolist()], indices

    def check(self, answer: NDArray[np.float32]) -> None:
        """Check that the first known tokens have the rows of their words.

        Raises:
            AssertionError: they do not.
        """
        _, rows, _, indices = self.load()
        known = np.flatnonzero(indices < len(rows))[:_NUM_CHECKED]
        if not np.array_equal(answer[known], rows[indices[known]]):
            raise AssertionError("Tokens do not have the rows of their words.")

    def facts(self) -> dict[str, float]:
        """Return a description of the vocabulary, for the report."""
        return {"share of tokens with a pretrained row": _KNOWN_SHARE}


class BuildSplit(Contestant):
    """Task "build": `build_split`."""

    def __init__(self, problem: WordProblem, task: str) -> None:
        self.words, self.rows, self.vocabulary, _ = problem.load()
        self.made: Any = None

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.made = build_split(self.vocabulary, (self.words, self.rows), padding=None, oov_initializer="zeros")

    def answer(self) -> NDArray[np.float32]:
        return self.made.lookup(np.arange(min(2 * _NUM_CHECKED, len(self.vocabulary))))


class LoopOverVocabulary(BuildSplit):
    """Task "build": the usual code for one dense matrix, a dict of the words and one assignment for each token."""

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            row_of = dict(zip(self.words, self.rows, strict=True))
            self.made = np.zeros((len(self.vocabulary), self.rows.shape[1]), np.float32)
            for token_id, token in enumerate(self.vocabulary):
                row = row_of.get(token)
                if row is not None:
                    self.made[token_id] = row

    def answer(self) -> NDArray[np.float32]:
        return self.made[: 2 * _NUM_CHECKED]
