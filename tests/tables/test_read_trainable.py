"""Opened trainable tables: equal to what was written, with read-only rows and words read on first use."""

import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError, VocabularyError
from splitembed.tables import (
    fingerprint_remap,
    fingerprint_rows,
    fingerprint_words,
    open_trainable,
    write_trainable,
)
from tests.helpers.bits import same_bits
from tests.helpers.odd_words import ODD_WORDS, any_word, float32_rows

FROZEN = "sha256:" + "0" * 64
ROWS = np.array([[0.5, 1.5], [2.5, 3.5]], np.float32)


@st.composite
def parts(draw):
    """Draw trainable rows of any bits, a remap, and optionally a vocabulary."""
    rows = draw(float32_rows(st.integers(0, 5), st.integers(1, 4)))
    remap = draw(st.lists(st.integers(-len(rows), 2**31 - 1), max_size=10))
    vocabulary = draw(st.none() | st.lists(any_word, min_size=len(remap), max_size=len(remap)))
    padding = draw(st.none() | st.integers(0, len(remap) - 1)) if remap else None
    return rows, np.array(remap, np.int32), vocabulary, padding


@given(parts())
def test_write_then_open_is_the_identity(tmp_path_factory, parts):
    rows, remap, vocabulary, padding = parts
    path = tmp_path_factory.mktemp("trainable") / "trainable.h5"
    fingerprint = write_trainable(
        path, rows, remap, vocabulary=vocabulary, padding=padding, frozen_fingerprint=FROZEN, frozen_path="a/b.h5"
    )
    table = open_trainable(path, verify=True)
    same_bits(table.vectors, rows)
    same_bits(table.remap, remap)
    assert table.vocabulary == vocabulary
    assert (table.padding, table.frozen_path, table.path) == (padding, "a/b.h5", path)
    assert table.frozen_fingerprint == FROZEN
    assert table.fingerprint == fingerprint == fingerprint_rows(rows)
    assert table.remap_fingerprint == fingerprint_remap(remap)
    assert table.vocabulary_fingerprint == ("" if vocabulary is None else fingerprint_words(vocabulary))


def test_P1_odd_tokens_are_read_exactly(tmp_path):
    path = tmp_path / "trainable.h5"
    write_trainable(path, ROWS, np.zeros(len(ODD_WORDS), int), vocabulary=ODD_WORDS, frozen_fingerprint=FROZEN)
    assert list(open_trainable(path, verify=True).vocabulary) == ODD_WORDS


def test_arrays_are_read_only_and_aligned(tmp_path):
    write_trainable(tmp_path / "trainable.h5", ROWS, [0, ~1], frozen_fingerprint=FROZEN)
    table = open_trainable(tmp_path / "trainable.h5")
    for array in (table.vectors, table.remap):
        assert not array.flags.writeable
        assert array.ctypes.data % 64 == 0


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a mapped file cannot be replaced")
def test_rows_are_mapped_and_outlive_their_file(tmp_path):
    path, rows = tmp_path / "trainable.h5", np.arange(8000, dtype=np.float32).reshape(2000, 4)
    write_trainable(path, rows, [0, ~1999], vocabulary=["a", "b"], frozen_fingerprint=FROZEN)
    tables = [open_trainable(path)]
    write_trainable(path, rows + 1, [0, ~1999], frozen_fingerprint=FROZEN)
    tables.append(open_trainable(path))
    path.unlink()
    assert all(table.mapped for table in tables)
    same_bits(tables[0].vectors, rows)
    same_bits(tables[1].vectors, rows + 1)


def test_vocabulary_is_decoded_when_used_and_outlives_its_file(tmp_path):
    path = tmp_path / "trainable.h5"
    write_trainable(path, ROWS, [0, ~1], vocabulary=["a", "b"], frozen_fingerprint=FROZEN)
    table = open_trainable(path)
    assert repr(table.vocabulary) == "<Words: 2>"
    write_trainable(path, ROWS, [0, ~1], vocabulary=["a", "c"], frozen_fingerprint=FROZEN)
    path.unlink()
    assert table.vocabulary == ["a", "b"]


def test_a_table_can_be_pickled(tmp_path):
    write_trainable(tmp_path / "trainable.h5", ROWS, [0, ~1], vocabulary=["a", "b"], frozen_fingerprint=FROZEN)
    table = pickle.loads(pickle.dumps(open_trainable(tmp_path / "trainable.h5")))
    assert table.vocabulary == ["a", "b"]
    same_bits(table.vectors, ROWS)


def test_the_file_costs_kilobytes_beside_its_rows(tmp_path):
    write_trainable(tmp_path / "trainable.h5", ROWS, [0, ~1], vocabulary=["a", "b"], frozen_fingerprint=FROZEN)
    assert os.path.getsize(tmp_path / "trainable.h5") < 10_000


@pytest.mark.parametrize(
    ("rows", "remap", "options", "message"),
    [
        (ROWS, [0, ~2], {}, r"`remap\[1\]` is trainable row 2; expected less than 2"),
        (ROWS, [-(2**31)], {}, "is trainable row 2147483647"),
        (ROWS, [2**31], {}, "must fit int32"),
        (ROWS, [0.5], {}, r"`remap` must be integers \(num_tokens,\)\. Received: float64 \(1,\)"),
        (ROWS, [[0]], {}, r"Received: int64 \(1, 1\)"),
        (ROWS[0], [0], {}, r"real numbers \(num_trainable, dim\)\. Received: float32 \(2,\)"),
        ([["a"]], [0], {}, r"Received: <U1 \(1, 1\)"),
        ([[1e39]], [0], {}, r"Row 0, column 0 holds 1e\+39, which float32 cannot hold"),
        (ROWS, [0, 1], {"vocabulary": ["a"]}, "one token for each id. Received: 1 tokens, 2 ids"),
        (ROWS, [0, 1], {"padding": 2}, "an id from 0 to 1. Received: 2"),
        (ROWS, [0, 1], {"padding": -1}, "an id from 0 to 1. Received: -1"),
    ],
)
def test_arguments_that_do_not_match_are_refused(tmp_path, rows, remap, options, message):
    with pytest.raises(SplitError, match=message):
        write_trainable(tmp_path / "trainable.h5", rows, remap, frozen_fingerprint=FROZEN, **options)
    assert os.listdir(tmp_path) == []


def test_a_token_that_cannot_be_stored_leaves_nothing_behind(tmp_path):
    with pytest.raises(VocabularyError, match="lone surrogate"):
        write_trainable(tmp_path / "trainable.h5", ROWS, [0], vocabulary=["\ud800"], frozen_fingerprint=FROZEN)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("owned", [(), (FROZEN,), (FROZEN, "sha256:other")])
def test_the_file_says_which_frozen_tables_go_with_it(tmp_path, owned):
    write_trainable(tmp_path / "trainable.h5", ROWS, [0], frozen_fingerprint=FROZEN, owned_frozen=owned)
    assert open_trainable(tmp_path / "trainable.h5").owned_frozen == owned
