"""Readers of vector files.

The tasks are "vocabulary" (the words of a vocabulary from a text file), "whole" (a text file into a frozen.h5), "read"
(a text file into memory) and "binary" (a word2vec file into memory). The file is always in the system's cache.
"""

import importlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import Contestant
from benchmarks.speed.texts import TextProblem
from splitembed.vectors import read_vectors
from splitembed.vectors.save_frozen import save_frozen

_BLOCK = 1 << 20


class _Reader(Contestant):
    """A reader that keeps its last result, in which `rows_of` looks words up."""

    def __init__(self, problem: TextProblem, task: str) -> None:
        self.problem, self.task = problem, task
        self.path = problem.binary if task == "binary" else problem.text
        self.vocabulary = problem.vocabulary if task == "vocabulary" else []
        self.kept: Any = None

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            # Free the last result first, so that peak memory contains only one.
            self.kept = None
            self.kept = self.read()

    def read(self) -> Any:
        """Read the file once."""
        raise NotImplementedError

    def answer(self) -> NDArray[np.float32] | None:
        return self.rows_of(self.problem.question)

    def rows_of(self, words: list[str]) -> NDArray[np.float32] | None:
        """Return the rows of words, `(num_words, dim)`, or None for a reader of bytes."""
        return None


class WholeFile(_Reader):
    """The floor: read the bytes of the file into memory."""

    def read(self) -> bytes:
        return self.path.read_bytes()


class InBlocks(_Reader):
    """Read the bytes of the file in blocks of a megabyte, into the same memory."""

    def read(self) -> None:
        block = bytearray(_BLOCK)
        with self.path.open("rb", buffering=0) as file:
            while file.readinto(block):
                pass


class WordsAlone(_Reader):
    """Read only the words of a word2vec file, into a set."""

    def read(self) -> set[str]:
        record = re.compile(b" .{%d}\n" % (4 * self.problem.sizes.dim), re.DOTALL)
        data = self.path.read_bytes()
        return set(record.sub(b" ", data[data.index(b"\n") + 1 :]).decode().split(" "))


class Ours(_Reader):
    """`read_vectors`, or for the task "whole", `save_frozen`."""

    def read(self) -> Any:
        if self.task == "vocabulary":
            return read_vectors(self.path, self.vocabulary, progress=False)
        if self.task in ("binary", "read"):
            return read_vectors(self.path, progress=False)
        return save_frozen(self.problem.folder / "converted.h5", self.path, progress=False)

    def rows_of(self, words: list[str]) -> NDArray[np.float32]:
        row_of = {word: row for row, word in enumerate(self.kept.words)}
        return np.asarray(self.kept.vectors)[[row_of[word] for word in words]]


class Gensim(_Reader):
    """`KeyedVectors.load_word2vec_format`, which reads all words, and a lookup of the vocabulary."""

    @staticmethod
    def warm_up() -> None:
        importlib.import_module("gensim.models")

    def read(self) -> Any:
        from gensim.models import KeyedVectors

        vectors = KeyedVectors.load_word2vec_format(
            self.path, binary=self.task == "binary", no_header=self.task != "binary"
        )
        return {word: vectors[word] for word in self.vocabulary} if self.task == "vocabulary" else vectors

    def rows_of(self, words: list[str]) -> NDArray[np.float32]:
        return np.stack([self.kept[word] for word in words])


class Polars(_Reader):
    """`polars.read_csv` with one column for each number."""

    @staticmethod
    def warm_up() -> None:
        importlib.import_module("polars")

    def read(self) -> Any:
        import polars

        columns = ["word", *map(str, range(self.problem.sizes.dim))]
        schema = dict.fromkeys(columns, polars.Float32) | {"word": polars.String}
        return polars.read_csv(self.path, has_header=False, separator=" ", quote_char=None, schema=schema)

    def rows_of(self, words: list[str]) -> NDArray[np.float32]:
        row_of = {word: row for row, word in enumerate(self.kept["word"].to_list())}
        return self.kept[[row_of[word] for word in words]].drop("word").to_numpy()


class Arrow(_Reader):
    """`pyarrow.csv.read_csv` with one column for each number."""

    @staticmethod
    def warm_up() -> None:
        importlib.import_module("pyarrow.csv")

    def read(self) -> Any:
        import pyarrow
        from pyarrow import csv

        columns = ["word", *map(str, range(self.problem.sizes.dim))]
        types = dict.fromkeys(columns, pyarrow.float32()) | {"word": pyarrow.string()}
        return csv.read_csv(
            self.path,
            csv.ReadOptions(column_names=columns),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )

    def rows_of(self, words: list[str]) -> NDArray[np.float32]:
        row_of = {word: row for row, word in enumerate(self.kept["word"].to_pylist())}
        chosen = self.kept.take([row_of[word] for word in words]).drop_columns(["word"])
        return np.stack([column.to_numpy() for column in chosen.columns], axis=1)
