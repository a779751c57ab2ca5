"""The description of a split, and the registry of live splits."""

import dataclasses

import numpy as np
import pytest

from splitembed import SplitTable
from splitembed.errors import FingerprintError, SplitError
from splitembed.layers.spec import LIVE, SplitSpec, live_on, live_with_frozen, summarize
from tests.helpers.models import make_split


@pytest.fixture(autouse=True)
def _empty_registry():
    LIVE.clear()
    yield
    LIVE.clear()


def test_spec_has_the_sizes_and_fingerprints_of_the_split():
    split = make_split()
    spec = SplitSpec.of(split)
    assert (spec.num_tokens, spec.num_frozen, spec.num_trainable, spec.dim, spec.padding) == (6, 4, 2, 3, 0)
    assert spec.frozen_fingerprint == split.fingerprint and spec.frozen_dtype == "float32"


def test_training_changes_only_the_trainable_fingerprint():
    split = make_split()
    before, after = SplitSpec.of(split), SplitSpec.of(split.with_trainable(split.trainable + 1))
    assert before.tables() == after.tables() and before != after
    before.refuse_other(after.tables(), "The file")


@pytest.mark.parametrize("name", SplitSpec.of(make_split()).tables())
def test_other_and_missing_tables_are_refused(name):
    spec = SplitSpec.of(make_split())
    for found, text in (({**spec.tables(), name: "other"}, "other"), ({}, "missing")):
        with pytest.raises(FingerprintError, match=f"The file belongs to another split: its .* is {text}"):
            spec.refuse_other(found, "The file")


def test_live_splits_are_found_by_their_tables_until_they_are_deleted():
    split = make_split()
    spec = SplitSpec.of(split)
    LIVE[spec] = split
    trained = SplitSpec.of(split.with_trainable(split.trainable + 1))
    assert LIVE.get(trained) is None and live_on(trained) is split
    assert live_with_frozen(split.fingerprint) is split
    assert live_on(dataclasses.replace(spec, remap_fingerprint="other")) is None
    assert live_with_frozen("other") is None
    del split
    assert live_on(spec) is None


def test_summary_counts_the_scales_of_int8_rows():
    split = SplitTable.from_matrix(np.eye(4, dtype=np.float32), [3]).with_frozen_dtype("int8")
    line = summarize(SplitSpec.of(split)).split("\n")[1]
    assert line.split() == ["frozen", "3", "12", "24", "int8"]


CONFIG = dataclasses.asdict(SplitSpec.of(make_split()))


def test_a_config_is_read_as_it_was_written():
    assert SplitSpec.from_config(CONFIG) == SplitSpec.of(make_split())
    without = {name: value for name, value in CONFIG.items() if name != "frozen_dtype"}
    assert SplitSpec.from_config(without) == SplitSpec.of(make_split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "`dim` is 0; expected"),
        ({"dim": "3"}, "`dim` is '3'"),
        ({"num_tokens": -1}, "`num_tokens` is -1"),
        ({"num_frozen": True}, "`num_frozen` is True"),
        ({"num_trainable": 2.0}, "`num_trainable` is 2.0"),
        ({"padding": 6}, "`padding` is 6; expected None, or an id below 6"),
        ({"padding": [0]}, "`padding` is"),
        ({"frozen_fingerprint": "../../etc"}, "`frozen_fingerprint` is '../../etc'"),
        ({"remap_fingerprint": 7}, "`remap_fingerprint` is 7"),
        ({"frozen_dtype": "object"}, "`frozen_dtype` is 'object'; expected one of float32"),
        ({"frozen_dtype": ["int8"]}, "`frozen_dtype` is"),
        ({"more": 1}, "`its keys` is"),
    ],
)
def test_a_config_that_no_split_has_is_refused(change, message):
    with pytest.raises(SplitError, match=f"The saved config of a split is damaged: {message}"):
        SplitSpec.from_config({**CONFIG, **change})
    with pytest.raises(SplitError, match="its keys"):
        SplitSpec.from_config(None)
