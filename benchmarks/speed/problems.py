"""The problems of embedding contestants: a table on disk, batches of ids, and the ids that train."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.corpora import glove_50d
from splitembed.split.table import SplitTable
from splitembed.tables import FROZEN_NAME, TRAINABLE_NAME, open_frozen, write_frozen, write_trainable

ZIPF_EXPONENT = 1.2
# The number of outputs of the dense head that every contestant trains.
NUM_CLASSES = 2
_BLOCK_ROWS = 100_000
_NUM_CHECKED_TEXTS = 4
_NUM_EXCHANGES = 4


@dataclass(frozen=True)
class Sizes:
    """The sizes of a problem.

    Args:
        num_tokens: the number of rows of the whole table.
        dim: the length of a row.
        num_trainable: the number of rows that train.
        batch_size, length: the shape of a batch of ids.
        num_batches: the number of different batches, which a contestant repeats.
        trainable_share: the share of trainable tokens in the texts.
        num_distinct: the number of distinct ids in each batch, drawn evenly. None draws Zipf-distributed ids.
    """

    num_tokens: int
    dim: int
    num_trainable: int
    batch_size: int = 64
    length: int = 200
    num_batches: int = 20
    trainable_share: float = 0.05
    num_distinct: int | None = None

    def shrunk(self) -> "Sizes":
        """Return small sizes of the same kind, for a quick run."""
        distinct = None if self.num_distinct is None else 40
        tokens, trainable = max(self.num_tokens // 500, 400), max(self.num_trainable // 500, 20)
        return replace(
            self,
            num_tokens=tokens,
            num_trainable=trainable,
            dim=16,
            batch_size=4,
            length=20,
            num_batches=3,
            num_distinct=distinct,
        )

    def make(self, folder: Path) -> "Problem":
        """Write the problem into an empty folder: the table as frozen.h5, a split on it, and batches of ids."""
        rng = np.random.default_rng(0)
        fingerprint = self.write_table(folder / FROZEN_NAME, rng)
        trainable_ids, batches = _zipf_batches(self, rng) if self.num_distinct is None else _even_batches(self, rng)
        remap = np.arange(self.num_tokens, dtype=np.int32)
        remap[trainable_ids] = ~np.arange(self.num_trainable, dtype=np.int32)
        rows = open_frozen(folder / FROZEN_NAME).vectors[trainable_ids]
        write_trainable(folder / TRAINABLE_NAME, rows, remap, frozen_fingerprint=fingerprint)
        np.save(folder / "batches.npy", batches.astype(np.int32))
        return Problem(self, folder)

    def write_table(self, path: Path, rng: np.random.Generator) -> str:
        """Write the whole table as a frozen.h5, and return its fingerprint."""
        raw = path.with_suffix(".npy")
        rows = np.lib.format.open_memmap(raw, "w+", np.float32, (self.num_tokens, self.dim))
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            block[:] = rng.standard_normal(block.shape, dtype=np.float32) * np.float32(0.1)
        fingerprint = write_frozen(path, rows)
        raw.unlink()
        return fingerprint


@dataclass(frozen=True)
class GloveSizes(Sizes):
    """A problem whose table is a part of GloVe 6B 50d, which must be in the data folder."""

    def write_table(self, path: Path, rng: np.random.Generator) -> str:
        """Write the first numbers of the first rows."""
        _, vectors = glove_50d()
        return write_frozen(path, vectors[: self.num_tokens, : self.dim])


@dataclass(frozen=True)
class Problem:
    """One table, the ids that train, and batches. Every array is read from the folder on first use."""

    sizes: Sizes
    folder: Path

    @cached_property
    def table(self) -> NDArray[np.float32]:
        """Return the rows of all tokens before training, `(num_tokens, dim)`, memory-mapped."""
        return open_frozen(self.folder / FROZEN_NAME).vectors

    @cached_property
    def trainable_ids(self) -> NDArray[np.int64]:
        """Return the ids that train, `(num_trainable,)`, ascending."""
        return self.split(mapped=True).trainable_ids

    @cached_property
    def is_trainable(self) -> NDArray[np.bool_]:
        """Return whether each id trains, `(num_tokens,)` bool."""
        mask = np.zeros(self.sizes.num_tokens, bool)
        mask[self.trainable_ids] = True
        return mask

    @cached_property
    def batches(self) -> NDArray[np.int32]:
        """Return the ids of all batches, `(num_batches, batch_size, length)`."""
        return np.load(self.folder / "batches.npy")

    @cached_property
    def head(self) -> NDArray[np.float32]:
        """Return the dense head before training, `(dim, NUM_CLASSES)`."""
        return np.random.default_rng(1).standard_normal((self.sizes.dim, NUM_CLASSES), dtype=np.float32)

    def split(self, mapped: bool) -> SplitTable:
        """Return the split, with the frozen rows mapped from their file or in memory."""
        if mapped:
            return SplitTable.open(self.folder)
        return SplitTable.from_matrix(self.table, self.trainable_ids)

    @property
    def question(self) -> NDArray[np.int32]:
        """Return the ids whose rows are checked before a contestant is timed."""
        return self.batches[0][:_NUM_CHECKED_TEXTS]

    def check(self, answer: NDArray[np.float32]) -> None:
        """Check that a contestant's rows are those of NumPy, to the bit.

        Raises:
            AssertionError: they are not.
        """
        if not np.array_equal(answer, self.table[self.question]):
            raise AssertionError("The embedded rows are not those of the table.")

    def facts(self) -> dict[str, float]:
        """Return a description of the batches, for the report."""
        in_batch = [self.is_trainable[batch] for batch in self.batches]
        return {
            "share of trainable tokens": float(np.mean(in_batch)),
            "distinct ids per batch": float(np.mean([len(np.unique(batch)) for batch in self.batches])),
            "distinct trainable ids per batch": float(
                np.mean([len(np.unique(batch[mask])) for batch, mask in zip(self.batches, in_batch, strict=True)])
            ),
        }


def _zipf_batches(sizes: Sizes, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    id_of_rank = rng.permutation(sizes.num_tokens)
    ranks = trainable_ranks(sizes.num_tokens, sizes.num_trainable, sizes.trainable_share)
    shape = (sizes.num_batches, sizes.batch_size, sizes.length)
    drawn = zipf_ranks(sizes.num_tokens, int(np.prod(shape)), rng).reshape(shape)
    return np.sort(id_of_rank[ranks]), id_of_rank[drawn]


def _even_batches(sizes: Sizes, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw batches with exactly `num_distinct` ids, of which `trainable_share` train, each at least once."""
    assert sizes.num_distinct is not None
    ids = rng.permutation(sizes.num_tokens)
    trainable, frozen = np.sort(ids[: sizes.num_trainable]), ids[sizes.num_trainable :]
    num_trained = max(1, round(sizes.num_distinct * sizes.trainable_share))
    batches = []
    for _ in range(sizes.num_batches):
        parts = ((trainable, num_trained), (frozen, sizes.num_distinct - num_trained))
        distinct = np.concatenate([rng.choice(part, count, replace=False) for part, count in parts])
        repeats = rng.choice(distinct, sizes.batch_size * sizes.length - len(distinct))
        batches.append(rng.permutation(np.concatenate([distinct, repeats])))
    return trainable, np.stack(batches).reshape(-1, sizes.batch_size, sizes.length)


def zipf_ranks(num_ranks: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ranks below `num_ranks`, rank r with a probability proportional to (r + 1) ** -1.2.

    >>> ranks = zipf_ranks(1000, 10_000, np.random.default_rng(0))
    >>> print(len(ranks), ranks.max() < 1000, np.bincount(ranks).argmax())
    10000 True 0
    """
    ranks = np.empty(0, np.int64)
    # Ranks beyond the last one are drawn again.
    while len(ranks) < count:
        drawn = rng.zipf(ZIPF_EXPONENT, count) - 1
        ranks = np.concatenate([ranks, drawn[drawn < num_ranks]])
    return ranks[:count]


def trainable_ranks(num_ranks: int, num_trainable: int, share: float) -> NDArray[np.int64]:
    """Choose evenly spaced ranks whose probabilities add up to the share.

    The first rank is the smallest one with which they do not exceed the share. Then a few of the rarest ranks are
    exchanged for more frequent ones, to come closer to it.

    >>> ranks = trainable_ranks(400_000, 20_000, share=0.05)
    >>> weights = np.arange(1, 400_001) ** -1.2
    >>> print(len(np.unique(ranks)), round(weights[ranks].sum() / weights.sum(), 4))
    20000 0.05

    Args:
        num_ranks: the number of all ranks.
        num_trainable: the number of ranks to choose.
        share: the intended share of the tokens in the texts.

    Returns:
        `(num_trainable,)` distinct ranks, ascending. If even the rarest exceed the share, these.
    """
    weights = np.arange(1, num_ranks + 1, dtype=np.float64) ** -ZIPF_EXPONENT
    weights /= weights.sum()
    first, last = 0, num_ranks - num_trainable
    while first < last:
        middle = (first + last) // 2
        if weights[_spaced(middle, num_ranks, num_trainable)].sum() > share:
            first = middle + 1
        else:
            last = middle
    is_picked = np.zeros(num_ranks, bool)
    is_picked[_spaced(first, num_ranks, num_trainable)] = True
    for _ in range(_NUM_EXCHANGES):
        fits = ~is_picked & (weights <= share - weights[is_picked].sum())
        if fits.any():
            is_picked[np.flatnonzero(is_picked)[-1]] = False
            is_picked[np.argmax(fits)] = True
    return np.flatnonzero(is_picked)


def _spaced(first: int, num_ranks: int, count: int) -> NDArray[np.int64]:
    return np.linspace(first, num_ranks - 1, count).astype(np.int64)
