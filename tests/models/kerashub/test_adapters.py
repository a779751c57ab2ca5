"""The small file of a split KerasHub model loads onto its base, and onto no other model."""

import re

import numpy as np
import pytest

import splitembed as se
from splitembed.errors import FingerprintError
from tests.helpers import hub_models as hub
from tests.helpers.bits import all_same_bits


def train_and_save(name, path, **options):
    """Train only the rows of a task, and write its small file."""
    task = hub.make_task(name, **options)
    hub.freeze(task)
    hub.split(task, name)
    task.train_on_batch(hub.inputs_for(task), hub.targets_for(task))
    se.save_trainable(path, task)
    return task


@pytest.mark.parametrize("name", hub.KINDS)
def test_the_file_on_the_base_gives_the_trained_model(name, tmp_path):
    path = tmp_path / "rows.h5"
    task = train_and_save(name, path)
    assert path.stat().st_size < 100_000
    base = hub.make_task(name)
    hub.freeze(base)
    inputs = hub.inputs_for(base, hub.NUM_TOKENS + hub.num_new(name))
    assert se.load_trainable(path, base) is base
    all_same_bits(hub.flat(base(inputs)), hub.flat(task(inputs)))
    assert base.backbone.vocabulary_size == hub.NUM_TOKENS + hub.num_new(name)
    assert [each.path for each in base.trainable_variables] == [each.path for each in task.trainable_variables]
    se.combine_embedding(base)
    all_same_bits(hub.tables_of(base), hub.tables_of(task))


def test_the_file_loads_onto_a_backbone_and_onto_a_split_model(tmp_path):
    path = tmp_path / "rows.h5"
    task = train_and_save("gpt2", path)
    base = hub.make_task("gpt2")
    backbone = se.load_trainable(path, base.backbone, also=[base])
    assert base.output_shape[-1] == hub.NUM_TOKENS + hub.NUM_NEW
    all_same_bits(hub.tables_of(backbone), hub.tables_of(task))
    other = se.split_embedding(hub.make_task("gpt2"), [5], 1)
    se.load_trainable(path, other)
    all_same_bits(hub.tables_of(other), hub.tables_of(task))


@pytest.mark.parametrize("is_split", [False, True])
def test_another_base_is_refused_with_both_fingerprints(is_split, tmp_path):
    path = tmp_path / "rows.h5"
    train_and_save("gpt2", path)
    other = hub.make_task("gpt2", seed=1)
    if is_split:
        hub.split(other, "gpt2")
    inputs = hub.inputs_for(other)
    before = hub.outputs_of(other, inputs)
    with pytest.raises(FingerprintError) as raised:
        se.load_trainable(path, other)
    assert len(set(re.findall(r"sha256:[0-9a-f]{64}", str(raised.value)))) == 2
    assert "token_embedding" in str(raised.value)
    assert hub.is_split(other.backbone.token_embedding) == is_split
    all_same_bits(hub.outputs_of(other, inputs), before)


def test_ten_tokens_on_a_vocabulary_of_256_000_take_under_a_megabyte(tmp_path):
    path = tmp_path / "rows.h5"
    options = {"vocabulary_size": 256_000, "hidden_dim": 64, "num_layers": 1}
    task = hub.make_task("gemma", **options)
    task.backbone.trainable = False
    se.split_embedding(task, new_tokens=10)
    ids = np.arange(256_000, 256_010)
    task.backbone.token_embedding.assign_rows(ids, np.random.default_rng(0).normal(size=(10, 64)))
    se.save_trainable(path, task)
    assert path.stat().st_size < 1_000_000
    base = se.load_trainable(path, hub.make_task("gemma", **options))
    inputs = {"token_ids": ids[None, :8].astype(np.int32), "padding_mask": np.ones((1, 8), np.int32)}
    all_same_bits(hub.flat(base(inputs)), hub.flat(task(inputs)))
