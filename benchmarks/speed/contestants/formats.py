"""The same vectors in every format and compression.

The task is "vocabulary": the words of a vocabulary from one file, which is in the system's cache.
"""

import bz2
import gzip
import importlib
import lzma
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import Contestant
from benchmarks.speed.texts import TextProblem, TextSizes
from splitembed.vectors import VectorSource, read_vectors

LAYOUTS = ("text", "gzip", "bzip2", "xz", "zip", "zstd", "binary", "fasttext", "npy", "npz", "hdf5", "safetensors")
_NUM_BUCKETS = 100_000


@dataclass(frozen=True)
class FormatSizes:
    """The sizes of the table, and the one format that is written."""

    text: TextSizes
    layout: str

    def shrunk(self) -> "FormatSizes":
        """Return small sizes of the same kind, for a quick run."""
        return replace(self, text=self.text.shrunk())

    def make(self, folder: Path) -> "FormatProblem":
        """Write the vectors as text and in the layout, into an empty folder."""
        problem = self.text.make(folder)
        words = [line.split(b" ", 1)[0].decode() for line in problem.text.open("rb")]
        _write(self.layout, problem, words, np.load(folder / "vectors.npy"))
        return FormatProblem(problem, self.layout)


@dataclass(frozen=True)
class FormatProblem:
    """A table in one layout, and a vocabulary."""

    plain: TextProblem
    layout: str

    @property
    def source(self) -> Any:
        """Return the source for `read_vectors`."""
        folder = self.plain.folder
        match self.layout:
            case "text":
                return self.plain.text
            case "binary":
                return self.plain.binary
            case "npy":
                return (folder / "words.txt", folder / "vectors.npy")
            case "safetensors":
                return (folder / "words.txt", folder / "vectors.safetensors")
            case "hdf5":
                return VectorSource(folder / "vectors.h5", datasets=("words", "matrix"))
        return folder / f"vectors.{self.layout}"

    def check(self, answer: NDArray[np.float32]) -> None:
        """Check that a contestant's rows are those of the file.

        Raises:
            AssertionError: they are not.
        """
        self.plain.check(answer)

    def facts(self) -> dict[str, float]:
        """Return the size of the table, for the report."""
        return {"vectors.txt, MB": self.plain.text.stat().st_size / 1e6}


class Ours(Contestant):
    """`read_vectors` with a vocabulary."""

    def __init__(self, problem: FormatProblem, task: str) -> None:
        self.problem = problem
        self.kept: Any = None

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.kept = None
            self.kept = read_vectors(self.problem.source, self.problem.plain.vocabulary, progress=False)

    def answer(self) -> NDArray[np.float32]:
        row_of = {word: row for row, word in enumerate(self.kept.words)}
        rows: NDArray[np.float32] = self.kept.vectors[[row_of[word] for word in self.problem.plain.question]]
        return rows


class Gensim(Ours):
    """gensim's `load_facebook_vectors`, which reads the whole model, and a lookup of the vocabulary."""

    @staticmethod
    def warm_up() -> None:
        importlib.import_module("gensim.models.fasttext")

    def run(self, num_steps: int) -> None:
        from gensim.models.fasttext import load_facebook_vectors

        for _ in range(num_steps):
            self.kept = None
            vectors = load_facebook_vectors(self.problem.source)
            self.kept = {word: vectors[word] for word in self.problem.plain.vocabulary}

    def answer(self) -> NDArray[np.float32]:
        return np.stack([self.kept[word] for word in self.problem.plain.question])


def _write(layout: str, problem: TextProblem, words: list[str], vectors: NDArray[np.float32]) -> None:
    target = problem.folder / f"vectors.{layout}"
    compress: dict[str, Callable[[bytes], bytes]] = {
        "gzip": lambda raw: gzip.compress(raw, 6),
        "bzip2": bz2.compress,
        "xz": lambda raw: lzma.compress(raw, preset=1),
        "zstd": _zstd,
    }
    if layout in compress:
        target.write_bytes(compress[layout](problem.text.read_bytes()))
    elif layout == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(problem.text, "vectors.txt")
    elif layout == "fasttext":
        _write_fasttext(target, words, vectors)
    elif layout == "npz":
        np.savez(target.with_suffix(""), words=np.array(words), vectors=vectors)
        target.with_suffix("").with_suffix(".npz").replace(target)
    elif layout == "hdf5":
        with h5py.File(problem.folder / "vectors.h5", "w") as file:
            file["words"], file["matrix"] = np.array(words, "S"), vectors
    elif layout == "safetensors":
        from safetensors.numpy import save_file

        save_file({"embeddings": vectors}, problem.folder / "vectors.safetensors")
    (problem.folder / "words.txt").write_text("\n".join(words))


def _zstd(raw: bytes) -> bytes:
    import zstandard

    compressed: bytes = zstandard.compress(raw)
    return compressed


def _write_fasttext(path: Path, words: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Write a fastText model with buckets for n-grams, which no word uses because maxn is 0.

    Source: `saveModel` of fastText.
    """
    dim = vectors.shape[1]
    # dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate
    arguments = (dim, 5, 5, 1, 5, 1, 1, 2, _NUM_BUCKETS, 0, 0, 100)
    with path.open("wb") as file:
        file.write(struct.pack("<ii12id", 793712314, 12, *arguments, 1e-4))
        file.write(struct.pack("<iiiqq", len(words), len(words), 0, len(words), -1))
        file.writelines(word.encode() + b"\0" + struct.pack("<qb", 1, 0) for word in words)
        file.write(struct.pack("<?qq", False, len(words) + _NUM_BUCKETS, dim) + vectors.tobytes())
        file.write(np.zeros((_NUM_BUCKETS, dim), np.float32).tobytes())
        file.write(struct.pack("<?qq", False, len(words), dim) + np.zeros_like(vectors).tobytes())
