"""`SplitTable`: a frozen table, a trainable table and the remap between them, in NumPy."""

import copy
import dataclasses
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed import tables
from splitembed.arrays import aligned_empty, as_aligned, as_read_only
from splitembed.coverage import CoverageReport
from splitembed.errors import FingerprintError, SplitError
from splitembed.split import checks, files, thaw_freeze
from splitembed.split.frozen_rows import number_rows
from splitembed.split.grow import grow
from splitembed.split.like import start_like
from splitembed.split.new_vectors import VectorChange, with_frozen
from splitembed.tables.storage import Storage, storage_of
from splitembed.vocabulary import resolve_ids
from splitembed.vocabulary.keras_layers import update_layer
from splitembed.vocabulary.labels import align_rows
from splitembed.vocabulary.tokens import as_text
from splitembed.words import Words, first_indices

# Cached properties, each with the part of a split that it is computed from.
_CACHED = {
    "fingerprint": "frozen",
    "remap_fingerprint": "remap",
    "vocabulary_fingerprint": "vocabulary",
    "index": "vocabulary",
}


class SplitTable:
    """One row for every token, held in two tables: `frozen` never changes, `trainable` is updated by training.

    `remap[id] >= 0` is a row of `frozen`; `remap[id] < 0` is row `~remap[id]` of `trainable`. Several ids may share a
    row. A split never changes: its methods return a new one, which shares the memory of all unchanged parts.

    >>> split = SplitTable.from_arrays(frozen=[[1.0, 1.0], [2.0, 2.0]], remap=[1, ~0, 0], trainable=[[9.0, 9.0]])
    >>> split
    SplitTable(num_tokens=3, dim=2, num_frozen=2, num_trainable=1)
    >>> split.lookup([[0, 1]]).tolist()
    [[[2.0, 2.0], [9.0, 9.0]]]

    Args:
        frozen: `(num_frozen, dim)` float32 or float16, never copied, so that a memory map stays one; int8 with a
            `scale`; or bfloat16 as uint16, with `frozen_dtype`. Any other numbers are converted to float32.
        remap: `(num_tokens,)` integers; a writable array is copied.
        trainable: `(num_trainable, dim)`; stored as float32; a writable array is copied.
        vocabulary: the tokens in id order, or None where ids have no strings.
        padding: the id whose row is zero and frozen, or None.
        scale: float32 `(num_frozen,)`, with int8 rows: a row is `frozen[row] * scale[row]`.
        frozen_dtype: "float32", "float16", "bfloat16" or "int8"; needed only where the dtype of the array is ambiguous.
        table: the opened frozen.h5 that holds the rows of `frozen`; `save` then writes the trainable table alone.
        coverage: the report on matching, where the split was built from pretrained vectors.

    Attributes:
        id_mapping: of a split that `shrink` returned, int64: the new id of each old one, or -1; else None.
        vector_change: of a split that `with_frozen` returned, the tokens that the new vectors lack, and those that only
            they have; else None.
        lookup_layer: the Keras lookup layer from which `build_split` read the vocabulary, so that `replace_split` can
            warn where it was not updated; else None. It is neither saved nor pickled.

    Raises:
        SplitError: shapes, dtypes or rows that do not match.
    """

    id_mapping: NDArray[np.int64] | None = None
    vector_change: VectorChange | None = None
    lookup_layer: Any = None

    def __init__(
        self,
        frozen: ArrayLike,
        remap: ArrayLike,
        trainable: ArrayLike,
        *,
        vocabulary: Any = None,
        padding: int | None = None,
        scale: ArrayLike | None = None,
        frozen_dtype: str | None = None,
        table: tables.FrozenTable | None = None,
        coverage: CoverageReport | None = None,
    ) -> None:
        rows, self.scale = checks.checked_frozen(frozen, scale, frozen_dtype)
        # A read-only array is kept itself, so that splits on one table can be recognised by `is`.
        self._frozen = as_read_only(rows) if rows.flags.writeable else rows
        self._trainable = checks.protected(checks.checked_trainable(trainable, self._frozen.shape[1]), trainable)
        self._remap = checks.protected(checks.checked_remap(remap, len(self._frozen), len(self._trainable)), remap)
        self._vocabulary = checks.checked_vocabulary(checks.as_tokens(vocabulary), len(self._remap))
        self.padding = checks.checked_padding(padding, self._remap, self._frozen)
        self.table = table
        self.coverage = coverage

    @classmethod
    def from_arrays(
        cls,
        frozen: ArrayLike,
        remap: ArrayLike,
        trainable: ArrayLike,
        *,
        vocabulary: Any = None,
        padding: int | None = None,
        scale: ArrayLike | None = None,
    ) -> "SplitTable":
        """Make a split of its parts; see the class for their shapes and dtypes."""
        return cls(frozen, remap, trainable, vocabulary=vocabulary, padding=padding, scale=scale)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        trainable_ids: Any,
        *,
        vocabulary: Any = None,
        padding: int | None = None,
    ) -> "SplitTable":
        """Split one dense matrix: the named rows train, the others are frozen. `combine` is the inverse.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], trainable_ids=[1])
        >>> split.frozen.tolist(), split.trainable.tolist(), split.remap.tolist()
        ([[0.0], [2.0]], [[1.0]], [0, -1, 1])

        Args:
            matrix: `(num_tokens, dim)`; both tables are float32 copies of its rows, in id order. The rows of a pandas
                DataFrame are found by its index: the tokens, or without a `vocabulary` the ids.
            trainable_ids: ids, tokens (with a `vocabulary`) or a boolean mask `(num_tokens,)`.
            vocabulary: the tokens in id order, anything else that `read_vocabulary` reads, or None.
            padding: the id whose row is zero and frozen, or None.

        Raises:
            SplitError: the matrix is not two-dimensional, or the row of the padding id would train or is not zero.
            TokenIdError: an id outside the matrix.
            UnknownTokenError: a token outside the vocabulary.
            VocabularyError: the index of a DataFrame has missing, duplicate or other labels.
        """
        given = checks.as_tokens(vocabulary)
        tokens = None if given is None else as_text(given)
        rows = checks.as_float32("matrix", align_rows("matrix", matrix, tokens))
        index = None if tokens is None else first_indices(tokens)
        chosen = np.zeros(len(rows), bool)
        chosen[resolve_ids(trainable_ids, len(rows), index)] = True
        frozen = aligned_empty((int(np.count_nonzero(~chosen)), rows.shape[1]), np.float32)
        np.compress(~chosen, rows, axis=0, out=frozen)
        return cls(frozen, number_rows(chosen), rows[chosen], vocabulary=tokens, padding=padding)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        frozen: Any = None,
        *,
        verify: bool = False,
        memory_map: tables.MemoryMap = True,
        within: str | os.PathLike[str] | None = None,
    ) -> "SplitTable":
        """Open a split that `save` wrote; its frozen rows are memory-mapped.

        A program that shortens a mapped file in place takes its pages away, and the process ends with SIGBUS when it
        reads one. splitembed never does that. Where others might, and on network file systems, use `memory_map=False`
        or "auto".

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     SplitTable.from_arrays([[1.0]], [0, ~0], [[2.0]]).save(folder)
        ...     SplitTable.open(folder).combine().tolist()
        [[1.0], [2.0]]

        Args:
            directory: the folder that holds trainable.h5, or the path of the trainable table itself.
            frozen: the frozen table's path, or an opened one that several splits share; by default the frozen.h5
                beside the trainable table, else the path that the trainable table records, else the file with its
                fingerprint in a folder that the environment variable SPLITEMBED_PATH lists.
            verify: recompute the fingerprints of everything read.
            memory_map: False reads the frozen rows into memory; "auto" does so where their file lies on a network file
                system (recognised on Linux).
            within: a folder; a recorded path outside it is not opened, as in files that strangers made. None opens any.

        Raises:
            TableFormatError: a file is foreign, cut short, damaged or too new.
            FingerprintError: the two tables do not match.
            FileNotFoundError: a table is missing.
        """
        trainable, table = tables.open_pair(
            directory, frozen, verify=verify, memory_map=memory_map, within=None if within is None else Path(within)
        )
        return cls(
            table.vectors,
            trainable.remap,
            trainable.vectors,
            scale=table.scale,
            frozen_dtype=table.dtype,
            vocabulary=trainable.vocabulary,
            padding=trainable.padding,
            table=table,
        )

    @property
    def frozen(self) -> NDArray[Any]:
        """`(num_frozen, dim)` rows that never change, as they are stored; read-only, memory-mapped if opened so."""
        return self._frozen

    @property
    def storage(self) -> Storage:
        """How the frozen rows are stored."""
        return storage_of(self._frozen.dtype)

    @property
    def frozen_dtype(self) -> str:
        """How the frozen rows are stored: "float32", "float16", "bfloat16" (as uint16) or "int8" (with `scale`)."""
        return self.storage.name

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
        """The tokens in id order, decoded on first use; None where ids have no strings."""
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
        """The ids whose rows train, ascending."""
        return np.flatnonzero(self._remap < 0)

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:...` of the frozen rows; a trainable table records the one of its frozen table."""
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
        """Token to id; for duplicates the first id; empty where ids have no strings."""
        return first_indices(self._vocabulary or [])

    def name_of(self, token_id: Any) -> str:
        """Return a description of an id for messages.

        >>> SplitTable([[0.0]], [0], [], vocabulary=["usr"]).name_of(0), SplitTable([[0.0]], [0], []).name_of(0)
        ("token 'usr' (id 0)", 'id 0')
        """
        return f"id {token_id}" if self._vocabulary is None else f"token {self._vocabulary[token_id]!r} (id {token_id})"

    def ids(self, selection: Any) -> NDArray[np.int64]:
        """Return the ids of tokens, ids, both mixed, or a boolean mask.

        >>> SplitTable([[0.0], [1.0]], [0, 1], [], vocabulary=["a", "b"]).ids(["b", 0]).tolist()
        [1, 0]

        Raises:
            TokenIdError: an id outside the vocabulary.
            UnknownTokenError: a token that is not in the vocabulary.
        """
        return resolve_ids(selection, self.num_tokens, None if self._vocabulary is None else lambda: self.index)

    def lookup(self, ids: ArrayLike) -> NDArray[np.float32]:
        """Return the rows of ids.

        Args:
            ids: integers of any shape.

        Returns:
            float32 `ids.shape + (dim,)`.

        Raises:
            TokenIdError: an id outside `[0, num_tokens)`.
        """
        rows = self._remap[checks.checked_lookup_ids(ids, self.num_tokens)]
        result = np.empty((*rows.shape, self.dim), np.float32)
        is_frozen = rows >= 0
        numbers = rows[is_frozen]
        scale = None if self.scale is None else self.scale[numbers]
        result[is_frozen] = self.storage.decode(self._frozen[numbers], scale)
        result[~is_frozen] = self._trainable[~rows[~is_frozen]]
        return result

    def combine(self) -> NDArray[np.float32]:
        """Build the dense matrix `(num_tokens, dim)`: the inverse of `from_matrix`."""
        return self.lookup(np.arange(self.num_tokens))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write trainable.h5 into a folder, and frozen.h5 beside it unless the split uses an existing file.

        A reader of the folder sees the split before or the new one, never a mixture, and so does everyone after a
        crash. The frozen table of the split before goes only if `save` wrote it for that split alone. Another frozen.h5
        in the folder stays, and the rows of this split get a name with their fingerprint beside it. Nothing is needed
        of the files that the split was opened from. A crash while the first split of a folder is saved can leave a
        frozen table that no trainable.h5 names; the next save of the same rows takes its place.

        Args:
            directory: the folder; it is made if necessary.

        Raises:
            SplitError: the path is a file.
            OSError: the folder cannot be written, or the disk is full; the split before is still there.
        """
        files.save(self, directory)

    def frozen_file(self) -> Path | None:
        """Return the file that the frozen rows were opened from, if it still exists and still holds them."""
        return files.frozen_file(self)

    def save_frozen(self, path: str | os.PathLike[str]) -> None:
        """Write the frozen rows and their words as a frozen.h5, in bounded memory.

        Raises:
            FingerprintError: the rows were changed in place, in memory or in the file that they are mapped from.
        """
        files.save_frozen(self, path)

    def save_trainable(
        self,
        path: str | os.PathLike[str],
        *,
        frozen_path: str | None = None,
        reverse: "SplitTable | None" = None,
    ) -> None:
        """Write the trainable rows, the remap and the vocabulary as a trainable.h5.

        Args:
            path: the file to make or replace.
            frozen_path: the path of the frozen table to record, absolute or relative to the folder of `path`; by
                default the path from which that table was opened.
            reverse: the split of the logits, where weights are not tied; the file then holds its rows and remap too.

        Raises:
            SplitError: `reverse` has other tokens or another dim.
        """
        files.save_trainable(self, path, frozen_path=frozen_path, reverse=reverse)

    def detached(self, *, keep_table: bool = False) -> "SplitTable":
        """Return the split without references to its files, which can then be deleted or replaced.

        Memory maps stay maps, which remain valid after the file is deleted.

        Args:
            keep_table: whether the frozen table stays referenced, so that only the trainable one can be deleted.
        """
        split = self._with()
        if self.table is not None and not keep_table:
            split.table = files.without_path(self.table)
        return split

    def sharing(self, other: "SplitTable") -> "SplitTable":
        """Return the split on the memory of another split's frozen rows, which must be equal.

        >>> frozen = np.ones((2, 1), np.float32)
        >>> first, second = SplitTable(frozen, [0], []), SplitTable(frozen.copy(), [1], [])
        >>> second.sharing(first).frozen is first.frozen
        True

        Raises:
            FingerprintError: the frozen rows differ.
        """
        if self.fingerprint != other.fingerprint:
            raise FingerprintError(
                f"Splits can share only equal frozen rows. Received: {self.fingerprint} and {other.fingerprint}."
            )
        split = self._with(_frozen=other._frozen, scale=other.scale)
        if self.table is not None:
            mapped = other.table is not None and other.table.mapped
            split.table = dataclasses.replace(self.table, vectors=split.frozen, scale=split.scale, mapped=mapped)
        return split

    def with_trainable(self, trainable: ArrayLike) -> "SplitTable":
        """Return the split with other values in its trainable rows.

        Args:
            trainable: `(num_trainable, dim)`.

        Raises:
            SplitError: another shape.
        """
        rows = checks.checked_trainable(trainable, self.dim)
        if len(rows) != self.num_trainable:
            raise SplitError(f"`trainable` must have {self.num_trainable} rows, as before. Received: {len(rows)} rows.")
        return self._with(_trainable=checks.protected(rows, trainable))

    def with_frozen_dtype(self, dtype: str) -> "SplitTable":
        """Return the split with its frozen rows stored in another precision; they are widened when they are read.

        >>> split = SplitTable([[0.5, 1.0]], [0], []).with_frozen_dtype("float16")
        >>> split.frozen.dtype.name, split.lookup([0]).tolist()
        ('float16', [[0.5, 1.0]])

        Args:
            dtype: "float32"; "float16" or "bfloat16", half the bytes; "int8" with a float32 scale a row, a quarter.

        Raises:
            SplitError: a number that the dtype cannot hold; the message names its row.
        """
        if dtype == self.frozen_dtype:
            return self
        rows, scale = tables.encode_rows(self.storage.decode(self._frozen, self.scale), dtype)
        return self.with_parts(frozen=as_aligned(rows), scale=scale, frozen_dtype=dtype)

    def with_parts(self, **parts: Any) -> "SplitTable":
        """Return the split with some parts replaced; the others share their memory and cached properties.

        >>> split = SplitTable([[1.0], [2.0]], [0, 1], [])
        >>> split.with_parts(remap=[1, 1]).lookup([0]).tolist()
        [[2.0]]

        Args:
            parts: arguments of `SplitTable`. With other `frozen` rows, `scale`, `frozen_dtype` and `table` are None
                unless they are given too.

        Raises:
            SplitError: parts that do not match.
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
        cached = {name: vars(self)[name] for name, part in _CACHED.items() if name in vars(self) and part not in parts}
        vars(split).update(cached, lookup_layer=self.lookup_layer)
        return split

    def thaw(self, tokens: Any) -> "SplitTable":
        """Return the split in which more tokens train, each starting from its frozen row: no output changes.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], ["usr"], vocabulary=["the", "usr", "of"])
        >>> split.thaw(["of"]).trainable.tolist()
        [[1.0], [2.0]]

        Each of these tokens gets a trainable row, even where several share a frozen row. The new rows follow the old
        ones, in the order of ids. The frozen table stays mapped and shared, so the cost in memory is the new rows, a
        copy of the trainable rows and the remap (4 bytes a token).

        Args:
            tokens: tokens, ids or a boolean mask `(num_tokens,)`. Tokens that train already are unchanged.

        Raises:
            SplitError: the padding id is among them.
            TokenIdError, UnknownTokenError: as `ids` raises them.
        """
        return thaw_freeze.thaw(self, self.ids(tokens))

    def freeze(self, tokens: Any) -> "SplitTable":
        """Return the split in which some tokens are frozen with their present rows: no output changes.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], ["usr", "of"], vocabulary=["the", "usr", "of"])
        >>> split.freeze(["usr"])
        SplitTable(num_tokens=3, dim=1, num_frozen=2, num_trainable=1)

        Where tokens share a trainable row, as rare ones share that of `[UNK]`, it trains on for those that are not
        named. Unused trainable rows are dropped, the others keep their order; `carried_rows` returns the mapping. The
        split gets a new frozen table with the rows in use (memory for at most `num_frozen * dim` values); a shared
        table is left unchanged.

        Args:
            tokens: tokens, ids or a boolean mask `(num_tokens,)`. Frozen tokens are unchanged.

        Raises:
            SplitError: frozen rows are stored in a lower precision, which would round a row.
            TokenIdError, UnknownTokenError: as `ids` raises them.
        """
        return thaw_freeze.freeze(self, self.ids(tokens))

    def compact(self) -> "SplitTable":
        """Return the split with a new frozen table, without unused rows in either table.

        >>> SplitTable.from_arrays([[0.0], [1.0], [2.0]], [2, ~1], [[3.0], [4.0]]).compact()
        SplitTable(num_tokens=2, dim=1, num_frozen=1, num_trainable=1)

        The frozen rows in use are copied in their precision. No id changes, so that `id_mapping` is kept.
        """
        split = thaw_freeze.compact(self)
        return split if split is self else split._with(id_mapping=self.id_mapping)

    def grow(
        self,
        tokens: Any,
        source: Any = None,
        *,
        trainable_tokens: Any = (),
        fallbacks: Any = (),
        oov_initializer: Any = "uniform",
        like: Mapping[Any, Any] | None = None,
        existing: str = "error",
        seed: Any = None,
        **reading: Any,
    ) -> "SplitTable":
        """Return the split with new tokens at its end: those with a pretrained vector are frozen, the others train.

        >>> split = SplitTable.from_matrix([[0.0], [1.0]], ["usr"], vocabulary=["the", "usr"])
        >>> grown = split.grow(["of", "zzz"], {"of": [2.0]}, oov_initializer="zeros")
        >>> grown, list(grown.vocabulary), grown.combine().tolist()
        (SplitTable(num_tokens=4, dim=1, num_frozen=2, num_trainable=2), ['the', 'usr', 'of', 'zzz'],
         [[0.0], [1.0], [2.0], [0.0]])

        Old ids keep their rows; `update_lookup` brings the lookup layer to the new ids. Rows of the split's own frozen
        table are shared. Rows from another source need a new frozen table, as `freeze` makes one, in the present
        precision; to keep sharing a table, pass `trainable_tokens=tokens`.

        Args:
            tokens: a token, a sequence of them or anything else that `read_vocabulary` reads (a str is a token, not a
                path); where ids have no strings, the number of new ids, which are matched by their decimal digits.
            source: pretrained vectors, as for `read_vectors`; by default the words of the split's table, else its
                frozen tokens; nothing where ids have no strings.
            trainable_tokens: new tokens that train although they have a vector, from which they start: tokens, ids or
                a mask of the grown split.
            fallbacks: other spellings to try, as for `build_split`.
            oov_initializer: initial values of rows without a vector, as for `build_split`.
            like: for a new token, tokens of the grown split whose mean its row starts as, as for `build_split`.
            existing: "error", or "skip" to leave out tokens that the split already has.
            seed: of the initializer; None follows `keras.utils.set_random_seed`.
            **reading: options of `read_vectors`, such as `format` and `allow_pickle`.

        Raises:
            VocabularyError, VectorFormatError: tokens or vectors that cannot be read, or vectors of another dim.
            SplitError: tokens that the split already has, or invalid options.
        """
        grown = grow(
            self,
            tokens,
            source,
            trainable_tokens=trainable_tokens,
            fallbacks=fallbacks,
            oov_initializer=oov_initializer,
            existing=existing,
            seed=seed,
            reading=reading,
        )
        return start_like(grown, like)

    def shrink(self, tokens: Any, *, drop_reserved: bool = False) -> "SplitTable":
        """Return the split without some tokens; its `id_mapping` is the new id of each old one, or -1.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], [2], vocabulary=["the", "usr", "of"])
        >>> smaller = split.shrink(["usr"])
        >>> list(smaller.vocabulary), smaller.id_mapping.tolist()
        (['the', 'of'], [0, -1, 1])

        The others keep their order and their rows. Unused trainable rows are dropped. The frozen table stays mapped
        and shared (`compact` drops its unused rows), so the cost in memory is the vocabulary, the remap and the
        trainable rows.

        Args:
            tokens: tokens, ids or a boolean mask `(num_tokens,)`.
            drop_reserved: whether the padding id and `[UNK]` may be dropped.

        Raises:
            SplitError: the padding id or `[UNK]` is named without `drop_reserved`, or no token remains.
            TokenIdError, UnknownTokenError: as `ids` raises them.
        """
        split, new_ids = thaw_freeze.shrink(self, self.ids(tokens), drop_reserved=drop_reserved)
        return split._with(id_mapping=new_ids)

    def with_frozen(
        self,
        source: Any,
        *,
        missing: str = "train",
        newly_found: str = "keep",
        fallbacks: Any = (),
        vocabulary: Any = None,
        **reading: Any,
    ) -> "SplitTable":
        """Return the split with other pretrained vectors as its frozen rows; `vector_change` reports what changed.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], ["usr"], vocabulary=["the", "usr", "of"])
        >>> other = split.with_frozen({"the": [5.0]})
        >>> other.combine().tolist(), other.vector_change.missing
        ([[5.0], [1.0], [2.0]], ('of',))

        Trainable rows are unchanged. The new frozen rows are those that `build_split` would make: a frozen.h5 is
        shared, of other sources the rows in use are copied, in float32. Padding, "" and `[UNK]` match nothing.

        Args:
            source: pretrained vectors of the same dim, as for `read_vectors`.
            missing: frozen tokens without a vector in the source: "train" from the old vector; "keep" it frozen, in a
                new frozen table; or "error".
            newly_found: tokens that train for want of a vector and have one in the source: "keep" training; or "freeze"
                with the new vector, which replaces the trained row. Tokens whose word is in the split's table train by
                choice and are not counted here; if the table holds no words, all trainable tokens are.
            fallbacks: other spellings to try, as for `build_split`.
            vocabulary: the vocabulary, as for `read_vocabulary`, where it tells more about the tokens than their names:
                how a tokenizer's tokens are spelled in files of vectors, or which ids are reserved.
            **reading: options of `read_vectors`, such as `format` and `allow_pickle`.

        Raises:
            VocabularyError, VectorFormatError: a vocabulary or vectors that cannot be read, or vectors of another dim.
            SplitError: missing tokens under "error", a shared table without a zero row for padding, or another
                vocabulary than that of the split.
        """
        split, change = with_frozen(
            self,
            source,
            missing=missing,
            newly_found=newly_found,
            fallbacks=fallbacks,
            vocabulary=vocabulary,
            reading=reading,
        )
        return split._with(vector_change=change)

    def update_lookup(self, layer: Any) -> None:
        """Set the vocabulary of a Keras lookup layer to that of the split, so that it returns the ids of new tokens.

        ```python
        split = layer.to_split().grow(["meh"])
        split.update_lookup(vectorize)
        splitembed.replace_split(model, layer, split)
        ```

        Call it before `replace_split`, which compiles the model again: a compiled function, and a `tf.data.Dataset`
        that maps the layer, keep the vocabulary of their first call.

        Args:
            layer: a `StringLookup`, `IntegerLookup` or `TextVectorization`. It keeps its mask and OOV tokens, which
                must be the first tokens of the split.

        Raises:
            SplitError: the ids of the split have no strings.
            VocabularyError: the layer maps ids to tokens, has other mask or OOV tokens or a too small `max_tokens`,
                cannot hold a token, or is a `TextVectorization` that was made with `vocabulary=`, which Keras would
                save in place of the new vocabulary.
        """
        if self._vocabulary is None:
            raise SplitError("A lookup layer needs tokens, and the ids of this split have no strings.")
        update_layer(layer, list(self._vocabulary))

    def _with(self, **attributes: Any) -> "SplitTable":
        """Return a copy with other attributes."""
        split = copy.copy(self)
        vars(split).update({"lookup_layer": self.lookup_layer, **attributes})
        return split

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lookup_layer"}

    def __repr__(self) -> str:
        sizes = ("num_tokens", "dim", "num_frozen", "num_trainable")
        return f"SplitTable({', '.join(f'{name}={getattr(self, name)}' for name in sizes)})"


def split_of(split_or_layer: Any, name: str) -> SplitTable:
    """Return a split, or that of a layer with its rows as trained so far.

    Args:
        split_or_layer: a `SplitTable`, or a layer that has one.
        name: name of the argument, for the message.

    Raises:
        SplitError: neither of them.
    """
    is_layer = not isinstance(split_or_layer, SplitTable) and hasattr(split_or_layer, "to_split")
    split = split_or_layer.to_split() if is_layer else split_or_layer
    if isinstance(split, SplitTable):
        return split
    raise SplitError(
        f"`{name}` must be a SplitTable, or a layer that has one. Received: {split_or_layer!r} (of type "
        f"{type(split_or_layer).__name__})."
    )
