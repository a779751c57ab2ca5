"""Training a split KerasHub model: only the named rows change, as in a dense twin."""

import keras
import numpy as np
import pytest

import splitembed as se
from tests.helpers import hub_models as hub

OPTIMIZERS = {
    "Adam": lambda: keras.optimizers.Adam(0.05),
    "AdamW": lambda: keras.optimizers.AdamW(0.05, weight_decay=0.1),
    "LazyAdam": lambda: se.LazyAdam(0.05),
}
# float32: some steps in which sums are in another order
TOLERANCE = 1e-5


def grown(name: str) -> int:
    return hub.NUM_TOKENS + hub.num_new(name)


def trained(name: str) -> list[int]:
    return [token for token in hub.TRAINED if token < grown(name)]


@pytest.mark.parametrize("name", ["bert classifier", "gpt2", "bart"])
def test_every_other_layer_keeps_its_flag(name):
    task = hub.make_task(name)
    layers = [each for each in task._flatten_layers() if each.weights and not list(each._flatten_layers())[1:]]
    for each in layers[::2]:
        each.trainable = False
    before, flags = hub.other_flags(task), {each.path: each.trainable for each in task.weights}
    hub.split(task, name)
    assert hub.other_flags(task) == before
    own = {id(each) for each in hub.own_variables(task)}
    assert all(each.trainable == flags[each.path] for each in task.weights if id(each) not in own)
    assert own <= {id(each) for each in task.trainable_variables}


@pytest.mark.parametrize("name", hub.KINDS)
def test_in_a_frozen_model_the_rows_alone_train(name):
    task = hub.make_task(name)
    hub.freeze(task)
    assert not task.trainable_variables
    hub.split(task, name)
    assert {id(each) for each in task.trainable_variables} == {id(each) for each in hub.own_variables(task)}
    assert all(each.shape == (len(trained(name)), hub.DIM) for each in task.trainable_variables)
    backbone = task.backbone
    assert [each.path for each in backbone.trainable_variables] == [each.path for each in task.trainable_variables]
    se.combine_embedding(task)
    assert not task.trainable_variables and not task.backbone.trainable


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [*((name, "Adam") for name in hub.KINDS), ("gpt2", "AdamW"), ("gpt2", "LazyAdam"), ("llama", "LazyAdam")],
)
def test_training_changes_only_the_named_rows(name, optimizer):
    task = hub.make_task(name)
    hub.freeze(task)
    hub.split(task, name)
    hub.compile_task(task, OPTIMIZERS[optimizer]())
    others, tables, frozen = hub.other_weights(task), hub.tables_of(task), hub.frozen_bytes(task)
    inputs, targets = hub.inputs_for(task, grown(name)), hub.targets_for(task, grown(name))
    first, *_, last = task.fit(inputs, targets, epochs=4, batch_size=3, verbose=0).history["loss"]
    assert last < first
    hub.same_weights(hub.other_weights(task), others)
    assert hub.frozen_bytes(task) == frozen
    for before, after in zip(tables, hub.tables_of(task), strict=True):
        np.testing.assert_array_equal(np.flatnonzero((before != after).any(axis=1)), sorted(trained(name)))


@pytest.mark.parametrize("name", [*hub.KINDS, "gemma"])
def test_training_equals_that_of_a_dense_twin(name):
    task = hub.make_task(name)
    hub.split(task, name)
    twin = hub.make_task(name, vocabulary_size=grown(name))
    others = hub.other_weights(task)
    for weight in twin.weights:
        if weight.path in others:
            weight.assign(others[weight.path])
    start = hub.tables_of(task)
    hub.set_tables(twin, start)
    is_held = ~np.isin(np.arange(grown(name)), trained(name))[:, None]
    for seed in range(4):
        inputs, targets = hub.inputs_for(task, grown(name), seed), hub.targets_for(task, grown(name), seed)
        losses = [model.train_on_batch(inputs, targets)[0] for model in (task, twin)]
        tables = [np.where(is_held, held, now) for held, now in zip(start, hub.tables_of(twin), strict=True)]
        hub.set_tables(twin, tables)
        np.testing.assert_allclose(*losses, rtol=0, atol=TOLERANCE)
        for ours, theirs in zip(hub.tables_of(task), tables, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)
        ours, theirs = hub.other_weights(task), hub.other_weights(twin)
        assert ours.keys() == theirs.keys()
        for path in ours:
            np.testing.assert_allclose(ours[path], theirs[path], rtol=0, atol=TOLERANCE, err_msg=path)
    assert all((now != before).any() for now, before in zip(hub.tables_of(task), start, strict=True))


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_splitting_and_combining_midway_does_not_change_training(name):
    # with every token chosen a split model is a dense one, so that Adam's moments must be kept through both changes
    task, twin = (hub.make_task(name, optimizer=keras.optimizers.Adam(0.01), num_layers=1) for _ in range(2))

    def train_both() -> None:
        for seed in range(2):
            inputs, targets = hub.inputs_for(task), hub.targets_for(task, seed=seed)
            # each id once, because Keras's Adam squares the slices of a repeated row of an untied Embedding one by one
            inputs["token_ids"] = np.random.default_rng(seed).permutation(hub.NUM_TOKENS)[:24].reshape(3, hub.LENGTH)
            for model in (task, twin):
                model.train_on_batch(inputs, targets)
        for ours, theirs in zip(hub.tables_of(task), hub.tables_of(twin), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)

    train_both()
    se.split_embedding(task, range(hub.NUM_TOKENS))
    train_both()
    assert int(task.optimizer.iterations) == 4
    se.combine_embedding(task)
    train_both()
    for ours, theirs in zip(hub.other_weights(task).values(), hub.other_weights(twin).values(), strict=True):
        # the gradient of a key's bias is noise
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=10 * TOLERANCE)


@pytest.mark.parametrize("name", ["bert classifier", "gpt2"])
def test_arguments_of_compile_are_kept(name):
    task = hub.make_task(name, optimizer=keras.optimizers.RMSprop(0.02), num_layers=1)
    family = hub.FAMILIES[name]
    if family.generates:
        task.compile(
            optimizer=keras.optimizers.RMSprop(0.02),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1),
            weighted_metrics=["sparse_categorical_crossentropy"],
            sampler=hub.keras_hub.samplers.TopKSampler(k=2, seed=3),
            jit_compile=False,
        )
    inputs, targets = hub.inputs_for(task), hub.targets_for(task)
    before, kept = task.evaluate(inputs, targets, verbose=0), getattr(task, "sampler", None)
    for change in (lambda: hub.split(task, name), lambda: se.combine_embedding(task)):
        change()
        # a logit for each new token is in the loss's denominator
        tolerance = 1e-6 if name == "bert classifier" else 0.2
        np.testing.assert_allclose(task.evaluate(inputs, targets, verbose=0), before, atol=tolerance)
        assert getattr(task, "sampler", None) is kept and not task.jit_compile
        assert isinstance(task.optimizer, keras.optimizers.RMSprop)
        assert float(task.optimizer.learning_rate) == np.float32(0.02)
        task.train_on_batch(inputs, targets)
        before = task.evaluate(inputs, targets, verbose=0)
    if family.generates:
        assert task.loss.ignore_class == 1
