"""The parts of a split, and what is read from them: arrays go in; they come out read-only, with lookups and sizes."""

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed import tables
from splitembed.arrays import as_read_only
from splitembed.coverage import CoverageReport
from splitembed.errors import SplitError, TokenIdError
from splitembed.split.checks import (
    checked_padding,
    checked_remap,
    checked_vocabulary,
    frozen_rows,
    index_of,
    trainable_rows,
    unchanging,
)
from splitembed.vocabulary import out_of_range, resolve_ids
from splitembed.words import Words

if TYPE_CHECKING:
    from typing_extensions import Self

# What is worked out once, by the part that it is worked out of.
_KEPT = {
    "fingerprint": "frozen",
    "remap_fingerprint": "remap",
    "vocabulary_fingerprint": "vocabulary",
    "index": "vocabulary",
}


class SplitBase:
    """What `SplitTable` is made of; its arguments are described there.

    >>> split = SplitBase([[1.0, 1.0], [2.0, 2.0]], [1, ~0, 0], [[9.0, 9.0]])
    >>> split.lookup([[0, 1]]).tolist()
    [[[2.0, 2.0], [9.0, 9.0]]]
    """

    def __init__(
        self,
        frozen: ArrayLike,
        remap: ArrayLike,
        trainable: ArrayLike,
        *,
        vocabulary: Sequence[str] | None = None,
        padding: int | None = None,
        scale: ArrayLike | None = None,
        frozen_dtype: str | None = None,
        table: tables.FrozenTable | None = None,
        coverage: CoverageReport | None = None,
    ) -> None:
        rows, self.scale = frozen_rows(frozen, scale, frozen_dtype)
        self._frozen = as_read_only(rows) if rows.flags.writeable else rows  # so that splits on one table know it
        self._trainable = unchanging(trainable_rows(trainable, self._frozen.shape[1]), trainable)
        self._remap = unchanging(checked_remap(remap, len(self._frozen), len(self._trainable)), remap)
        self._vocabulary = checked_vocabulary(vocabulary, len(self._remap))
        self.padding = checked_padding(padding, self._remap, self._frozen)
        self.table = table
        self.coverage = coverage

    @property
    def frozen(self) -> NDArray[Any]:
        """`(num_frozen, dim)` rows that never change, as they are stored; read-only, memory-mapped where opened so."""
        return self._frozen

    @property
    def frozen_dtype(self) -> str:
        """What the frozen rows are stored in: "float32", "float16", "bfloat16" (as uint16) or "int8" (with `scale`)."""
        return tables.dtype_name(self._frozen.dtype)

    @property
    def trainable(self) -> NDArray[np.float32]:
        """`(num_trainable, dim)` float32 rows that training updates; read-only."""
        return self._trainable

    @property
    def remap(self) -> NDArray[np.int32]:
        """`(num_tokens,)` int32; `>= 0` is a row of `frozen`, `< 0` is row `~remap[id]` of `trainable`; read-only."""
        return self._remap

    @property
    def vocabulary(self) -> Words | None:
        """The tokens in id order, read and decoded on first use; None where ids have no strings."""
        return self._vocabulary

    @property
    def num_tokens(self) -> int:
        """Number of token ids: every id is in `0 <= id < num_tokens`."""
        return len(self._remap)

    @property
    def num_frozen(self) -> int:
        """Number of frozen rows."""
        return len(self._frozen)

    @property
    def num_trainable(self) -> int:
        """Number of trainable rows."""
        return len(self._trainable)

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self._frozen.shape[1])

    @property
    def trainable_ids(self) -> NDArray[np.int64]:
        """The ids, ascending, whose rows train."""
        return np.flatnonzero(self._remap < 0)

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:...` of the frozen rows: what a trainable table is paired by."""
        return self.table.fingerprint if self.table is not None else tables.fingerprint_rows(self.frozen, self.scale)

    @cached_property
    def remap_fingerprint(self) -> str:
        """`sha256:...` of the remap."""
        return tables.fingerprint_remap(self.remap)

    @property
    def trainable_fingerprint(self) -> str:
        """`sha256:...` of the trainable rows."""
        return tables.fingerprint_rows(self.trainable)

    @cached_property
    def vocabulary_fingerprint(self) -> str:
        """`sha256:...` of the vocabulary; empty where ids have no strings."""
        return "" if self._vocabulary is None else tables.fingerprint_words(self._vocabulary)

    @cached_property
    def index(self) -> dict[str, int]:
        """Token to id: of ids with the same token the first; empty where ids have no strings."""
        return index_of(self._vocabulary or [])

    def name_of(self, token_id: Any) -> str:
        """Says in words which token an id is.

        >>> SplitBase([[0.0]], [0], [], vocabulary=["usr"]).name_of(0), SplitBase([[0.0]], [0], []).name_of(0)
        ("token 'usr' (id 0)", 'id 0')
        """
        return f"id {token_id}" if self._vocabulary is None else f"token {self._vocabulary[token_id]!r} (id {token_id})"

    def ids(self, selection: Any) -> NDArray[np.int64]:
        """Turns tokens, ids, both mixed, or a boolean mask into ids.

        >>> SplitBase([[0.0], [1.0]], [0, 1], [], vocabulary=["a", "b"]).ids(["b", 0]).tolist()
        [1, 0]

        Raises:
            TokenIdError: an id outside the vocabulary.
            UnknownTokenError: a token that the vocabulary does not hold.
        """
        return resolve_ids(selection, self.num_tokens, None if self._vocabulary is None else lambda: self.index)

    def lookup(self, ids: ArrayLike) -> NDArray[np.float32]:
        """Looks ids up.

        Args:
            ids: integers of any shape.

        Returns:
            `ids.shape + (dim,)` float32.

        Raises:
            TokenIdError: an id outside `[0, num_tokens)`.
        """
        rows = self._remap[self._checked_ids(ids)]
        result = np.empty((*rows.shape, self.dim), np.float32)
        is_frozen = rows >= 0
        result[is_frozen] = self._widened(rows[is_frozen])
        result[~is_frozen] = self._trainable[~rows[~is_frozen]]
        return result

    def combine(self) -> NDArray[np.float32]:
        """Builds the dense matrix `(num_tokens, dim)`: the inverse of `from_matrix`."""
        return self.lookup(np.arange(self.num_tokens))

    def with_trainable(self, trainable: ArrayLike) -> "Self":
        """Returns the same split with other values in its trainable rows.

        Args:
            trainable: `(num_trainable, dim)`.

        Raises:
            SplitError: another shape.
        """
        rows = trainable_rows(trainable, self.dim)
        if len(rows) != self.num_trainable:
            raise SplitError(f"`trainable` must have {self.num_trainable} rows, as before. Received: {len(rows)} rows.")
        split = copy.copy(self)
        split._trainable = unchanging(rows, trainable)
        return split

    def with_parts(self, **parts: Any) -> "Self":
        """Returns the split with some parts replaced, on the memory of the others.

        What is known of a part that stays, such as its fingerprint, stays known.

        >>> split = SplitBase([[1.0], [2.0]], [0, 1], [])
        >>> split.with_parts(remap=[1, 1]).lookup([0]).tolist()
        [[2.0]]

        Args:
            parts: as the constructor of `SplitTable` takes them. With other `frozen` rows, the `scale`, the
                `frozen_dtype` and the `table` are None unless they are given too.

        Raises:
            SplitError: parts that do not fit together.
        """
        whole: dict[str, Any] = {
            "frozen": self._frozen,
            "remap": self._remap,
            "trainable": self._trainable,
            "vocabulary": self._vocabulary,
            "padding": self.padding,
            "coverage": self.coverage,
        }
        if "frozen" not in parts:
            whole |= {"scale": self.scale, "frozen_dtype": self.frozen_dtype, "table": self.table}
        split = type(self)(**(whole | parts))
        kept = {name: vars(self)[name] for name, part in _KEPT.items() if name in vars(self) and part not in parts}
        vars(split).update(kept)
        return split

    def _widened(self, rows: NDArray[np.int32]) -> NDArray[np.float32]:
        return tables.decode_rows(self._frozen[rows], None if self.scale is None else self.scale[rows])

    def _checked_ids(self, ids: ArrayLike) -> NDArray[Any]:
        array = np.asarray(ids)
        if array.size == 0 and array.dtype.kind == "f":  # NumPy makes [] float64
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise SplitError(f"`ids` must be integers. Received: an array of dtype {array.dtype}.")
        outside = (array < 0) | (array >= self.num_tokens)
        if outside.any():
            raise TokenIdError(out_of_range(array[outside][0], self.num_tokens))
        return array

    def __repr__(self) -> str:
        sizes = ("num_tokens", "dim", "num_frozen", "num_trainable")
        return f"SplitTable({', '.join(f'{name}={getattr(self, name)}' for name in sizes)})"
