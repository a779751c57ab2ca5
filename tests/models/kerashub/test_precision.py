"""Split KerasHub models in other dtypes, and compiled by XLA."""

import keras
import numpy as np
import pytest

import splitembed as se
from tests.helpers import hub_models as hub
from tests.helpers.bits import all_same_bits

POLICIES = ["mixed_bfloat16", "mixed_float16", "bfloat16"]
OTHERS = [("llama", "bfloat16"), ("gemma", "mixed_bfloat16"), ("bart", "mixed_float16")]


@pytest.mark.parametrize(("name", "policy"), [*(("gpt2", policy) for policy in POLICIES), *OTHERS])
def test_no_output_changes_by_a_bit(name, policy):
    task = hub.make_task(name, dtype=policy)
    inputs, embedding = hub.inputs_for(task), task.backbone.token_embedding
    ids = next(value for key, value in inputs.items() if key.endswith("token_ids"))
    states = np.random.default_rng(0).normal(size=(3, 4, hub.DIM))

    def outputs() -> list[np.ndarray]:
        # the layer outside the model, as in generation
        alone = keras.ops.cast(states, embedding.compute_dtype)
        logits = hub.flat(embedding(alone, reverse=True))
        found = [*hub.outputs_of(task, inputs), *(each[..., : hub.NUM_TOKENS] for each in logits)]
        return [*found, *hub.flat(embedding(ids))]

    before = outputs()
    hub.split(task, name)
    after = outputs()
    assert [each.dtype for each in after] == [each.dtype for each in before]
    if hub.FAMILIES[name].generates:
        after = hub.old_columns(after[:2]) + after[2:]
    all_same_bits(after, before)
    split_outputs = outputs()
    se.combine_embedding(task)
    all_same_bits(outputs(), split_outputs)
    assert embedding.dtype_policy.name == policy
    assert embedding.embeddings.dtype == ("bfloat16" if policy == "bfloat16" else "float32")


@pytest.mark.parametrize("policy", POLICIES)
def test_training_changes_only_the_named_rows(policy):
    task = hub.make_task("gpt2", dtype=policy)
    hub.freeze(task)
    hub.split(task, "gpt2")
    assert [each.dtype for each in task.trainable_variables] == ["float32"]
    hub.compile_task(task, keras.optimizers.Adam(0.05))
    others, tables, frozen = hub.other_weights(task), hub.tables_of(task), hub.frozen_bytes(task)
    highest = hub.NUM_TOKENS + hub.NUM_NEW
    inputs, targets = hub.inputs_for(task, highest), hub.targets_for(task, highest)
    first, *_, last = task.fit(inputs, targets, epochs=5, verbose=0).history["loss"]
    assert last < first
    for path, value in hub.other_weights(task).items():
        np.testing.assert_array_equal(value, others[path])
    assert hub.frozen_bytes(task) == frozen
    moved = (hub.tables_of(task)[0] != tables[0]).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(moved), hub.TRAINED)


def test_greedy_generation_stays_the_same():
    task = hub.make_task("gemma", dtype="bfloat16")
    prompts = hub.prompts_for(task)
    before = hub.generated(task, prompts)
    hub.split(task, "gemma")
    np.testing.assert_array_equal(hub.generated(task, prompts), before)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_in_xla_outputs_and_training_equal_a_dense_twin_up_to_rounding(name):
    task, dense = (hub.make_task(name, jit_compile=True) for _ in range(2))
    hub.split(task, name)
    assert task.jit_compile
    inputs, targets = hub.inputs_for(task), hub.targets_for(task)
    found, expected = (model.predict(inputs, verbose=0) for model in (task, dense))
    np.testing.assert_allclose(found[..., : expected.shape[-1]], expected, rtol=0, atol=1e-5)
    hub.freeze(task)
    task.backbone.token_embedding.trainable = True
    hub.compile_task(task, keras.optimizers.Adam(0.05), jit_compile=True)
    others, tables = hub.other_weights(task), hub.tables_of(task)
    losses = [task.train_on_batch(inputs, targets)[0] for _ in range(4)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]
    hub.same_weights(hub.other_weights(task), others)
    for before, after in zip(tables, hub.tables_of(task), strict=True):
        assert set(np.flatnonzero((before != after).any(axis=1))) <= set(hub.TRAINED)
        assert (before[hub.CHOSEN] != after[hub.CHOSEN]).all()


def test_in_xla_generation_stays_the_same():
    task = hub.make_task("gemma", jit_compile=True)
    prompts = hub.prompts_for(task)
    before = hub.generated(task, prompts)
    hub.split(task, "gemma")
    np.testing.assert_array_equal(hub.generated(task, prompts), before)
