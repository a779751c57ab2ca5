"""What embedding contestants work on: sizes go in; a table on disk, batches of ids and the rows that train come out."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.corpora import glove_50d
from splitembed.split.table import SplitTable
from splitembed.tables import FROZEN_NAME, TRAINABLE_NAME, open_frozen, write_frozen, write_trainable

ZIPF_EXPONENT = 1.2
NUM_CLASSES = 2  # outputs of the dense head that every contestant trains
_BLOCK_ROWS = 100_000
_ROWS_CHECKED = 4  # texts of the first batch
_EXCHANGES = 4


@dataclass(frozen=True)
class Sizes:
    """How large a problem is.

    Args:
        num_tokens: rows of the whole table.
        dim: length of a row.
        num_trainable: rows that train.
        batch_size, length: a batch is `(batch_size, length)` ids.
        num_batches: batches that a contestant goes through again and again.
        trainable_share: share of the running tokens that are to be trainable.
        num_distinct: distinct ids in each batch, drawn evenly; None draws Zipf-distributed ids.
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
        """The same in small: shows that everything runs, and measures nothing."""
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
        """Writes the problem's files into an empty folder: the table as frozen.h5, a split on it, batches of ids."""
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
        """Writes the whole table as a frozen.h5, and returns its fingerprint."""
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
    """A problem whose table is the beginning of real vectors, GloVe 6B 50d: they must lie in the data folder."""

    def write_table(self, path: Path, rng: np.random.Generator) -> str:
        """Writes the first rows, and of each the first numbers."""
        _, vectors = glove_50d()
        return write_frozen(path, vectors[: self.num_tokens, : self.dim])


@dataclass(frozen=True)
class Problem:
    """One table, the ids that train, and batches; every array is read from the folder where it is needed."""

    sizes: Sizes
    folder: Path

    @cached_property
    def table(self) -> NDArray[np.float32]:
        """`(num_tokens, dim)`: every token's row before training, memory-mapped."""
        return open_frozen(self.folder / FROZEN_NAME).vectors

    @cached_property
    def trainable_ids(self) -> NDArray[np.int64]:
        """`(num_trainable,)` ids, ascending."""
        return self.split(mapped=True).trainable_ids

    @cached_property
    def is_trainable(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool."""
        mask = np.zeros(self.sizes.num_tokens, bool)
        mask[self.trainable_ids] = True
        return mask

    @cached_property
    def batches(self) -> NDArray[np.int32]:
        """`(num_batches, batch_size, length)` ids."""
        return np.load(self.folder / "batches.npy")

    @cached_property
    def head(self) -> NDArray[np.float32]:
        """`(dim, NUM_CLASSES)`: the dense head before training."""
        return np.random.default_rng(1).standard_normal((self.sizes.dim, NUM_CLASSES), dtype=np.float32)

    def split(self, mapped: bool) -> SplitTable:
        """The split: on the table in its file, or with the frozen rows in memory."""
        if mapped:
            return SplitTable.open(self.folder)
        return SplitTable.from_matrix(self.table, self.trainable_ids)

    @property
    def question(self) -> NDArray[np.int32]:
        """Ids that every contestant must answer before it is timed."""
        return self.batches[0][:_ROWS_CHECKED]

    def check(self, answer: NDArray[np.float32]) -> None:
        """Raises unless the answer is NumPy's, to the bit."""
        if not np.array_equal(answer, self.table[self.question]):
            raise AssertionError("The embedded rows are not those of the table.")

    def facts(self) -> dict[str, float]:
        """What a batch is like, for the report."""
        in_batch = [self.is_trainable[batch] for batch in self.batches]
        return {
            "trainable share of running tokens": float(np.mean(in_batch)),
            "distinct ids a batch": float(np.mean([len(np.unique(batch)) for batch in self.batches])),
            "distinct trainable ids a batch": float(
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
    """Each batch has exactly `num_distinct` ids, its share of trainable ones among them, each at least once."""
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
    """Draws ranks below `num_ranks`, rank r with probability proportional to (r + 1) ** -1.2.

    >>> ranks = zipf_ranks(1000, 10_000, np.random.default_rng(0))
    >>> print(len(ranks), ranks.max() < 1000, np.bincount(ranks).argmax())
    10000 True 0
    """
    ranks = np.empty(0, np.int64)
    while len(ranks) < count:  # a draw beyond the last rank is drawn again
        drawn = rng.zipf(ZIPF_EXPONENT, count) - 1
        ranks = np.concatenate([ranks, drawn[drawn < num_ranks]])
    return ranks[:count]


def trainable_ranks(num_ranks: int, num_trainable: int, share: float) -> NDArray[np.int64]:
    """Picks ranks that weigh the share together: evenly spaced ones, from the first on with which they weigh no more.

    What is still missing is made up by exchanging a few of the rarest for more frequent ones.

    >>> ranks = trainable_ranks(400_000, 20_000, share=0.05)
    >>> weights = np.arange(1, 400_001) ** -1.2
    >>> print(len(np.unique(ranks)), round(weights[ranks].sum() / weights.sum(), 4))
    20000 0.05

    Args:
        num_ranks: ranks there are.
        num_trainable: ranks to pick.
        share: of the running tokens.

    Returns:
        `(num_trainable,)` distinct ranks, ascending; where the rarest already weigh more than the share, those.
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
    for _ in range(_EXCHANGES):
        fits = ~is_picked & (weights <= share - weights[is_picked].sum())
        if fits.any():
            is_picked[np.flatnonzero(is_picked)[-1]] = False
            is_picked[np.argmax(fits)] = True
    return np.flatnonzero(is_picked)


def _spaced(first: int, num_ranks: int, count: int) -> NDArray[np.int64]:
    return np.linspace(first, num_ranks - 1, count).astype(np.int64)
