"""Building a split: a vocabulary against words and rows, by splitembed and by the loop that everyone writes."""

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
    """As many vocabulary tokens as pretrained words; 95 % of the tokens are among the words."""

    num_words: int
    dim: int

    def shrunk(self) -> "WordSizes":
        """The same in small: shows that everything runs, and measures nothing."""
        return replace(self, num_words=max(self.num_words // 500, 200), dim=8)

    def make(self, folder: Path) -> "WordProblem":
        """Writes the pretrained rows; words are made up where they are needed."""
        rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float32, (self.num_words, self.dim))
        rows[:] = np.random.default_rng(5).random(rows.shape, np.float32)
        return WordProblem(self, folder)


@dataclass(frozen=True)
class WordProblem:
    """Words and rows, and a vocabulary in another order that knows most of them."""

    sizes: WordSizes
    folder: Path

    def load(self) -> tuple[list[str], NDArray[np.float32], list[str], NDArray[np.int64]]:
        """Words, their rows `(num_words, dim)` in memory, the vocabulary, and each token's place among the words.

        A place beyond the last word is that of a token without a row.
        """
        num_words = self.sizes.num_words
        made_up = made_up_words(num_words + int(num_words * (1 - _KNOWN_SHARE)))
        places = np.random.default_rng(6).permutation(len(made_up))[:num_words]
        rows = aligned_empty((num_words, self.sizes.dim), np.float32)
        rows[:] = np.load(self.folder / "rows.npy", mmap_mode="r")
        return made_up[:num_words], rows, [made_up[place] for place in places.tolist()], places

    def check(self, answer: NDArray[np.float32]) -> None:
        """Raises unless the first known tokens have their words' rows."""
        _, rows, _, places = self.load()
        known = np.flatnonzero(places < len(rows))[:_NUM_CHECKED]
        if not np.array_equal(answer[known], rows[places[known]]):
            raise AssertionError("Tokens do not have the rows of their words.")

    def facts(self) -> dict[str, float]:
        """What the vocabulary is like, for the report."""
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
    """Task "build": the recipe for one dense matrix: a dict of the words, and one assignment a token."""

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            row_of = dict(zip(self.words, self.rows, strict=True))
            self.made = np.zeros((len(self.vocabulary), self.rows.shape[1]), np.float32)
            for place, token in enumerate(self.vocabulary):
                row = row_of.get(token)
                if row is not None:
                    self.made[place] = row

    def answer(self) -> NDArray[np.float32]:
        return self.made[: 2 * _NUM_CHECKED]
