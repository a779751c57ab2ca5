"""A frozen table, a trainable table and the remap between them: pure NumPy, and the oracle of every test.

Arrays, or one dense matrix, go in; a `SplitTable` comes out. What is read from it stands in `base.py`, its files in
`stored.py`; here are the ways to make one, and to make another of it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import aligned_empty
from splitembed.split import grow as growing
from splitembed.split import new_vectors as swapping
from splitembed.split import thaw_freeze as moves
from splitembed.split.checks import as_float32, index_of
from splitembed.split.files import StoredSplit
from splitembed.vocabulary import resolve_ids


class SplitTable(StoredSplit):
    """One row for every token, held in two tables: `frozen` never changes, `trainable` is what training updates.

    `remap[id] >= 0` is a row of `frozen`; `remap[id] < 0` is row `~remap[id]` of `trainable`. Several ids may share a
    row. A split never changes: what alters it returns a new one on the same memory.

    >>> split = SplitTable.from_arrays(frozen=[[1.0, 1.0], [2.0, 2.0]], remap=[1, ~0, 0], trainable=[[9.0, 9.0]])
    >>> split
    SplitTable(num_tokens=3, dim=2, num_frozen=2, num_trainable=1)
    >>> split.lookup([[0, 1]]).tolist()
    [[[2.0, 2.0], [9.0, 9.0]]]

    Args:
        frozen: `(num_frozen, dim)` float32 or float16, used as it is, never copied, so a memory map stays one; int8
            with a `scale`; or bfloat16 as uint16, with `frozen_dtype`. Any other numbers become float32.
        remap: `(num_tokens,)` integers; an array that can be written to is copied.
        trainable: `(num_trainable, dim)`; stored as float32; copied likewise.
        vocabulary: the tokens in id order, or None where ids have no strings.
        padding: the id whose row is zero and frozen, or None.
        scale: float32 `(num_frozen,)`, with int8 rows: a row is `frozen[row] * scale[row]`.
        frozen_dtype: "float32", "float16", "bfloat16" or "int8", where the array does not say so by itself.
        table: the frozen.h5 whose rows `frozen` are; `save` then writes the trainable table alone.
        coverage: what matching found, where the split was built from vectors.

    Raises:
        SplitError: shapes, dtypes or rows that do not fit together.
    """

    @classmethod
    def from_arrays(
        cls,
        frozen: ArrayLike,
        remap: ArrayLike,
        trainable: ArrayLike,
        *,
        vocabulary: Sequence[str] | None = None,
        padding: int | None = None,
        scale: ArrayLike | None = None,
    ) -> "SplitTable":
        """Makes a split of its parts as they are; see the class for what they must be."""
        return cls(frozen, remap, trainable, vocabulary=vocabulary, padding=padding, scale=scale)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        trainable_ids: Any,
        *,
        vocabulary: Sequence[str] | None = None,
        padding: int | None = None,
    ) -> "SplitTable":
        """Splits one dense matrix: the named rows train, the others are frozen. `combine` is the inverse.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], trainable_ids=[1])
        >>> split.frozen.tolist(), split.trainable.tolist(), split.remap.tolist()
        ([[0.0], [2.0]], [[1.0]], [0, -1, 1])

        Args:
            matrix: `(num_tokens, dim)`; both tables are float32 copies of its rows, in id order.
            trainable_ids: ids, tokens (with a `vocabulary`) or a boolean mask `(num_tokens,)`.
            vocabulary: the tokens in id order, or None.
            padding: the id whose row is zero and stays so, or None.

        Raises:
            SplitError: the matrix is not two-dimensional, or the padding id is to be trained or is not zero.
            TokenIdError: an id outside the matrix.
            UnknownTokenError: a token outside the vocabulary.
        """
        rows = as_float32("matrix", matrix)
        chosen = np.zeros(len(rows), bool)
        chosen[resolve_ids(trainable_ids, len(rows), None if vocabulary is None else index_of(vocabulary))] = True
        frozen = aligned_empty((int(np.count_nonzero(~chosen)), rows.shape[1]), np.float32)
        np.compress(~chosen, rows, axis=0, out=frozen)
        return cls(frozen, remap_of(chosen), rows[chosen], vocabulary=vocabulary, padding=padding)

    def thaw(self, tokens: Any) -> "SplitTable":
        """Returns the split in which more tokens train, each from its frozen row: no output changes by a bit.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], ["usr"], vocabulary=["the", "usr", "of"])
        >>> split.thaw(["of"]).trainable.tolist()
        [[1.0], [2.0]]

        Each of these tokens gets a trainable row of its own, also where it shared the frozen one. The new rows follow
        the old ones, in the order of ids. The frozen table stays as it is, mapped and shared, so memory grows by the
        new rows, a copy of the trainable ones and the remap (4 bytes a token).

        Args:
            tokens: tokens, ids or a boolean mask `(num_tokens,)`. Those that train already go on.

        Raises:
            SplitError: the padding id is among them.
            TokenIdError, UnknownTokenError: as `ids` raises them.
        """
        return moves.thaw(self, self.ids(tokens))

    def freeze(self, tokens: Any) -> "SplitTable":
        """Returns the split in which some tokens are frozen as they are now: no output changes by a bit.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], ["usr", "of"], vocabulary=["the", "usr", "of"])
        >>> split.freeze(["usr"])
        SplitTable(num_tokens=3, dim=1, num_frozen=2, num_trainable=1)

        Where tokens share a trainable row, as rare ones share that of `[UNK]`, it trains on for those that are not
        named. Trainable rows that no token uses are dropped, the others keep their order: `carried_rows` says which
        is which. The frozen rows are added to a table of the split's own, which holds the rows that its ids use and no
        others: memory for all of these (`num_frozen * dim` values at most), also where the split stood on a shared
        table, which stays as it is for others.

        Args:
            tokens: tokens, ids or a boolean mask `(num_tokens,)`. Those that are frozen already stay so.

        Raises:
            SplitError: frozen rows are stored in less than float32, and would hold a row rounded.
            TokenIdError, UnknownTokenError: as `ids` raises them.
        """
        return moves.freeze(self, self.ids(tokens))

    def compact(self) -> "SplitTable":
        """Returns the split without the rows that no id uses, on a frozen table of its own.

        >>> SplitTable.from_arrays([[0.0], [1.0], [2.0]], [2, ~1], [[3.0], [4.0]]).compact()
        SplitTable(num_tokens=2, dim=1, num_frozen=1, num_trainable=1)

        Memory for the frozen rows that ids use; they are stored as they were.
        """
        return moves.compact(self)

    def grow(
        self,
        tokens: Any,
        source: Any = None,
        *,
        trainable_tokens: Any = (),
        fallbacks: Any = (),
        oov_initializer: Any = "uniform",
        existing: str = "error",
        seed: Any = None,
    ) -> "SplitTable":
        """Returns the split with new tokens at its end: those that have a vector are frozen, the others train.

        >>> split = SplitTable.from_matrix([[0.0], [1.0]], ["usr"], vocabulary=["the", "usr"])
        >>> grown = split.grow(["of", "zzz"], {"of": [2.0]}, oov_initializer="zeros")
        >>> grown, list(grown.vocabulary), grown.combine().tolist()
        (SplitTable(num_tokens=4, dim=1, num_frozen=2, num_trainable=2), ['the', 'usr', 'of', 'zzz'],
         [[0.0], [1.0], [2.0], [0.0]])

        Old ids keep their rows, and `vocabulary` is what a lookup layer for the new ids is to be made with. Where
        vectors are the rows that the split stands on already, none is copied; from elsewhere, they make a table of the
        split's own, as `freeze` does, in its precision. That the frozen table stays shared needs
        `trainable_tokens=tokens`.

        Args:
            tokens: a token, a sequence of them or whatever else `read_vocabulary` reads (a str is a token, not a path);
                the number of new ids where ids have no strings, which are matched by their decimal digits.
            source: whatever `read_vectors` reads; None for what the split stands on: the words of its table, else its
                frozen tokens; or no words where ids have no strings.
            trainable_tokens: those of the new tokens that train although they have a vector, from which they start:
                tokens, ids or a mask of the grown split.
            fallbacks: other spellings to try, as `build_split` takes them.
            oov_initializer: how rows start that have no vector, as `build_split` takes it.
            existing: "error", or "skip" to leave out tokens that are there already.
            seed: of the initializer.

        Raises:
            VocabularyError, VectorFormatError: tokens or vectors that cannot be read, or of another dim.
            SplitError: tokens that are there already, or options that do not fit.
        """
        return growing.grow(
            self,
            tokens,
            source,
            trainable_tokens=trainable_tokens,
            fallbacks=fallbacks,
            oov_initializer=oov_initializer,
            existing=existing,
            seed=seed,
        )

    def shrink(self, tokens: Any, *, drop_reserved: bool = False) -> tuple["SplitTable", NDArray[np.int64]]:
        """Returns the split without some tokens, and the new id of each old one.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], [2], vocabulary=["the", "usr", "of"])
        >>> smaller, new_ids = split.shrink(["usr"])
        >>> list(smaller.vocabulary), new_ids.tolist()
        (['the', 'of'], [0, -1, 1])

        The others keep their order and their rows. Trainable rows that no token uses any more are dropped. The frozen
        table stays as it is, mapped and shared: `compact` leaves out what is not used. So memory is that of the
        vocabulary, the remap and the trainable rows.

        Args:
            tokens: tokens, ids or a boolean mask `(num_tokens,)`.
            drop_reserved: whether the padding id and `[UNK]` may be among them.

        Returns:
            The split; and int64 `(num_tokens,)`, the new id of each old one, or -1.

        Raises:
            SplitError: the padding id or `[UNK]` is among them unasked, or no token is left.
            TokenIdError, UnknownTokenError: as `ids` raises them.
        """
        return moves.shrink(self, self.ids(tokens), drop_reserved=drop_reserved)

    def with_frozen(
        self,
        source: Any,
        *,
        lacking: str = "train",
        anew: str = "keep",
        fallbacks: Any = (),
        vocabulary: Any = None,
    ) -> tuple["SplitTable", swapping.VectorChange]:
        """Returns the split with other pretrained vectors under its trained rows, and what that changed.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], ["usr"], vocabulary=["the", "usr", "of"])
        >>> other, change = split.with_frozen({"the": [5.0]})
        >>> other.combine().tolist(), change.lacking
        ([[5.0], [1.0], [2.0]], ('of',))

        What trains keeps its row. The new frozen rows are as `build_split` makes them: a frozen.h5 is shared, of other
        sources the rows that are used are kept, in float32. Padding, "" and `[UNK]` match nothing.

        Args:
            source: whatever `read_vectors` reads, of the same dim.
            lacking: what becomes of frozen tokens that the source lacks: "train", from the old vector; "keep", frozen
                as they are, on a table of the split's own; or "error".
            anew: what becomes of tokens that train and that the source has: "keep", they train on; or "freeze", the
                new vector is in the place of what they learned. Tokens whose word the split's table has trained by
                choice and are not among them; where it holds no words, all that train are.
            fallbacks: other spellings to try, as `build_split` takes them.
            vocabulary: whatever `read_vocabulary` reads, where it says more of the tokens than their names: how a
                tokenizer's are spelled in files of vectors, or which ids are reserved.

        Returns:
            The split; and the `VectorChange`, which names the tokens.

        Raises:
            VocabularyError, VectorFormatError: a vocabulary or vectors that cannot be read, or of another dim.
            SplitError: tokens are lacking under "error", a shared table has no zero row for padding, or the vocabulary
                is not that of the split.
        """
        return swapping.with_frozen(
            self, source, lacking=lacking, anew=anew, fallbacks=fallbacks, vocabulary=vocabulary
        )


def remap_of(is_trainable: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Numbers the rows of both tables in id order, one row a token.

    >>> remap_of(np.array([False, True, False])).tolist()
    [0, -1, 1]
    """
    frozen_row = np.cumsum(~is_trainable, dtype=np.int32) - 1
    return np.where(is_trainable, -np.cumsum(is_trainable, dtype=np.int32), frozen_row)
