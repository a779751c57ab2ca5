"""Hypothesis strategies for splits and for ids of them."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from splitembed import SplitTable

ID_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def rows_of(num_rows: int, dim: int) -> st.SearchStrategy[np.ndarray]:
    """Return a strategy for float32 matrices, with infinities, NaN, negative zeros and subnormal numbers."""
    return arrays(np.float32, (num_rows, dim), elements=st.floats(width=32))


@st.composite
def splits(draw: Any, max_tokens: int = 8, max_rows: int = 5, max_dim: int = 4) -> SplitTable:
    """Draw splits: frozen, trainable or mixed; rows shared or unused; with and without padding."""
    num_frozen, num_trainable = draw(
        st.tuples(st.integers(0, max_rows), st.integers(0, max_rows)).filter(lambda sizes: sum(sizes) > 0)
    )
    dim = draw(st.integers(1, max_dim))
    frozen, trainable = draw(rows_of(num_frozen, dim)), draw(rows_of(num_trainable, dim))
    rows = st.integers(-num_trainable, num_frozen - 1)
    remap = draw(st.lists(rows, min_size=1, max_size=max_tokens))
    padding = draw(st.none() | st.integers(0, len(remap) - 1)) if num_frozen else None
    if padding is not None:
        remap[padding] = draw(st.integers(0, num_frozen - 1))
        frozen[remap[padding]] = 0
    return SplitTable.from_arrays(frozen, remap, trainable, padding=padding)


@st.composite
def splits_and_ids(draw: Any, max_rank: int = 4) -> tuple[SplitTable, np.ndarray]:
    """Draw a split and ids of it, of any integer dtype and of rank 0 to `max_rank`, also empty."""
    split = draw(splits())
    shape = draw(st.just(()) | array_shapes(min_dims=1, max_dims=max_rank, min_side=0, max_side=3))
    ids = arrays(draw(st.sampled_from(ID_DTYPES)), shape, elements=st.integers(0, split.num_tokens - 1))
    return split, draw(ids)
