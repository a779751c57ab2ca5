"""New tokens: their rows in and after the model's table, where the rows come from, and who is warned about them."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from splitembed import SplitTable
from splitembed.errors import NewTokenWarning, SplitError
from splitembed.models.new_tokens import NewTokens, checked, refuse_gaps, warn_of_heads, warn_of_unknown
from tests.helpers.bits import same_bits

TABLE = SplitTable.from_matrix(np.random.default_rng(0).normal(size=(5, 3)), [])
NO_IDS = np.zeros(0, np.int64)


def new(*ids: int, names=None, keeps_names=False) -> NewTokens:
    return NewTokens(list(ids), names, TABLE.num_tokens, keeps_names)


@pytest.mark.parametrize("given", [3, ["a", "b"], {"a": 7, "b": 2}, "a"])
def test_numbers_names_and_ids_are_accepted(given):
    # in the order of the ids
    expected = {"a": ["a"]} if given == "a" else {}
    assert checked(given) == expected.get("a", given)
    if isinstance(given, dict):
        assert list(checked(given)) == ["b", "a"]


def test_ids_that_leave_a_gap_are_refused():
    refuse_gaps([2, 5, 6], ["a", "b", "c"], 5)
    with pytest.raises(SplitError, match="'c' has the id 7, but .* 5 rows and the next new row has the id 6"):
        refuse_gaps([5, 7], ["b", "c"], 5)


@pytest.mark.parametrize("ids", [(5, 6), (3, 4), (1, 4, 5)])
def test_rows_of_new_and_chosen_tokens_train(ids):
    split = new(*ids).rows_of(TABLE, np.array([0, 4]), "mean", 0, {})
    assert split.trainable_ids.tolist() == sorted({0, 4, *ids}) and split.fingerprint == TABLE.fingerprint
    np.testing.assert_allclose(split.lookup(ids), np.tile(TABLE.combine().mean(0), (len(ids), 1)), rtol=1e-6)
    kept = np.setdiff1d(np.arange(5), ids)
    same_bits(split.lookup(kept), TABLE.lookup(kept))


def test_each_trainable_row_knows_its_row_before():
    added = new(2, 5, 6)
    split = added.rows_of(TABLE, np.array([0, 4]), "zeros", 0, {})
    before = added.rows_before(split)
    assert {row: before[~split.remap[row]] for row in (0, 2, 4, 5, 6)} == {0: 0, 2: -1, 4: 4, 5: -1, 6: -1}


def test_names_are_kept_with_the_vocabulary():
    named = TABLE.with_parts(vocabulary=list("abcde"))
    split = new(5, 6, names=["<x>", "<y>"], keeps_names=True).rows_of(named, NO_IDS, "zeros", 0, {})
    assert list(split.vocabulary) == [*"abcde", "<x>", "<y>"]


def test_a_tokenizer_without_the_ids_gives_a_warning():
    tokenizer = SimpleNamespace()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_unknown(new(5, names=["<x>"]), [tokenizer], [{"<x>": 5}])
        warn_of_unknown(new(5), [tokenizer], [dict.fromkeys("abcdef", 0)])
    for index in ({"<x>": 4}, {}):
        with pytest.warns(
            NewTokenWarning, match=r"SimpleNamespace does not know the new tokens '<x>' \(id 5\): `generate`"
        ):
            warn_of_unknown(new(5, names=["<x>"]), [tokenizer], [index])
    with pytest.warns(NewTokenWarning, match="new tokens ids 5, 6"):
        warn_of_unknown(new(5, 6), [tokenizer], [dict.fromkeys("abcdef", 0)])


def test_a_head_of_the_former_tokens_gives_a_warning():
    class Dense:
        name, units = "head", 5

    with pytest.warns(NewTokenWarning, match="its layer 'head' has an output for each of the former 5 tokens"):
        warn_of_heads(new(5), [Dense()])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # a reserved row has an output
        warn_of_heads(new(4), [Dense()])
