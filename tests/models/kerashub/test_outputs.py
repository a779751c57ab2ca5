"""A KerasHub model computes the same outputs before and after its embedding is split and combined."""

import keras
import numpy as np
import pytest

import splitembed as se
from splitembed.errors import SplitError
from tests.helpers import hub_models as hub
from tests.helpers.bits import all_same_bits


@pytest.mark.parametrize("name", [*hub.MASKED_MODELS, "gpt2"])
def test_no_output_changes_by_a_bit(name):
    model = hub.make_task(name)
    inputs = hub.inputs_for(model)
    before, embedding = hub.outputs_of(model, inputs), hub.embedding_of(model)
    assert se.split_embedding(model, hub.CHOSEN) is model
    assert hub.embedding_of(model) is embedding and isinstance(embedding, se.SplitReversibleEmbedding)
    all_same_bits(hub.outputs_of(model, inputs), before)
    assert se.combine_embedding(model) is model
    all_same_bits(hub.outputs_of(model, inputs), before)


@pytest.mark.parametrize(
    ("name", "kind"), [("gpt2", "backbone"), *((name, "task") for name in hub.FAMILIES if hub.num_new(name))]
)
def test_new_tokens_do_not_change_the_columns_of_old_ones(name, kind):
    model = hub.MAKE[kind](name)
    inputs = hub.inputs_for(model)
    before = hub.outputs_of(model, inputs)
    hub.split(model, name)
    after = hub.outputs_of(model, inputs)
    if hub.FAMILIES[name].generates and kind == "task":
        assert {each.shape[-1] for each in after} == {hub.NUM_TOKENS + hub.NUM_NEW}
        after = hub.old_columns(after)
    all_same_bits(after, before)
    with_new = hub.inputs_for(model, hub.NUM_TOKENS + hub.NUM_NEW)
    split_outputs = hub.outputs_of(model, with_new)
    se.combine_embedding(model)
    all_same_bits(hub.outputs_of(model, with_new), split_outputs)


@pytest.mark.parametrize("name", ["llama", "gemma"])
def test_greedy_generation_stays_the_same(name):
    task = hub.make_task(name)
    prompts = hub.prompts_for(task)
    before = hub.generated(task, prompts)
    assert (before[:, 3:] != 0).any()
    hub.split(task, name)
    np.testing.assert_array_equal(hub.generated(task, prompts), before)
    se.combine_embedding(task)
    np.testing.assert_array_equal(hub.generated(task, prompts), before)


def test_scores_of_a_text_are_the_same():
    task = hub.make_task("gpt2")
    ids = hub.inputs_for(task)["token_ids"]
    before = [task.score(ids).numpy()]
    hub.split(task, "gpt2")
    all_same_bits(hub.old_columns([task.score(ids).numpy()]), before)


@pytest.mark.parametrize("shape", [(1, 1), (2, 16), (8, 64)])
def test_logits_of_a_larger_table_are_the_same_for_any_number_of_states(shape):
    # the order of the sums in a product depends on the sizes; generation has one token at a time
    backbone = hub.make_backbone("gpt2", vocabulary_size=3000, hidden_dim=256)
    states = np.random.default_rng(0).normal(size=(*shape, 256)).astype(np.float32)
    before = hub.flat(backbone.token_embedding(states, reverse=True))
    se.split_embedding(backbone, hub.CHOSEN, hub.NUM_NEW)
    after = hub.flat(backbone.token_embedding(states, reverse=True))
    all_same_bits([np.ascontiguousarray(each[..., :3000]) for each in after], before)


@pytest.mark.parametrize("name", ["bert classifier", "llama", "bart"])
def test_sizes_are_those_of_the_grown_vocabulary(name):
    task = hub.make_task(name)
    hub.split(task, name)
    grown = hub.NUM_TOKENS + hub.NUM_NEW
    for _ in range(2):
        assert task.backbone.vocabulary_size == task.backbone.token_embedding.input_dim == grown
        if hub.FAMILIES[name].generates:
            assert task.output_shape[-1] == task.output.shape[-1] == grown
            assert task.compute_output_shape(dict.fromkeys(task.input, (3, 8)))[-1] == grown
        task.summary(print_fn=lambda *_, **__: None)
        se.combine_embedding(task) if hub.is_split(task.backbone.token_embedding) else None
    assert task.backbone.get_config()["vocabulary_size"] == grown


def test_a_layer_around_the_embedding_has_the_new_sizes():
    backbone = hub.make_backbone("distilbert masked")
    around = backbone.embeddings
    se.split_embedding(backbone, (), hub.NUM_NEW)
    assert backbone.token_embedding is around.token_embedding
    assert around.vocabulary_size == backbone.vocabulary_size == hub.NUM_TOKENS + hub.NUM_NEW
    se.combine_embedding(backbone)
    assert around.get_config()["vocabulary_size"] == hub.NUM_TOKENS + hub.NUM_NEW
    assert type(around) is hub.keras_hub.layers.TokenAndPositionEmbedding


def test_a_head_with_a_bias_for_each_token_is_refused_by_name():
    task = hub.make_task("bert masked")
    inputs, kinds = hub.inputs_for(task), [type(each) for each in task._flatten_layers()]
    before, flags = hub.outputs_of(task, inputs), hub.other_flags(task)
    with pytest.raises(SplitError, match="mlm_head"):
        se.split_embedding(task, hub.CHOSEN, hub.NUM_NEW)
    assert [type(each) for each in task._flatten_layers()] == kinds and hub.other_flags(task) == flags
    assert task.backbone.vocabulary_size == hub.NUM_TOKENS and not hub.classes_of_ours(task)
    all_same_bits(hub.outputs_of(task, inputs), before)


OTHERS = {
    "a plain Embedding": lambda: hub.models.ESMBackbone(hub.NUM_TOKENS, 1, 2, hub.DIM, 32),
    "another dim than the model's": lambda: hub.models.AlbertBackbone(hub.NUM_TOKENS, 1, 2, 8, hub.DIM, 32),
    "an encoder and a decoder": lambda: hub.models.T5Backbone(hub.NUM_TOKENS, 1, 2, hub.DIM, 32),
    "a mask in the layer around it": lambda: hub.models.RobertaBackbone(hub.NUM_TOKENS, 1, 2, hub.DIM, 32),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_of_backbones_are_split(kind):
    backbone = OTHERS[kind]()
    inputs = hub.inputs_for(backbone)
    before, rows = hub.flat(backbone(inputs)), backbone.token_embedding.get_weights()[0]
    se.split_embedding(backbone, hub.CHOSEN, hub.NUM_NEW)
    all_same_bits(hub.flat(backbone(inputs)), before)
    se.combine_embedding(backbone)
    all_same_bits(hub.flat(backbone(inputs)), before)
    combined = backbone.token_embedding.get_weights()[0]
    np.testing.assert_array_equal(combined[: hub.NUM_TOKENS], rows)
    again = type(backbone).from_config(backbone.get_config())
    again.set_weights(backbone.get_weights())
    all_same_bits(hub.flat(again(inputs)), before)


def test_a_head_inside_the_backbone_is_refused_by_name():
    sizes = {"gate_lora": 4, "mv_lora": 4, "aaa_lora": 4, "decay_lora": 4, "head_size": 8}
    backbone = hub.models.RWKV7Backbone(
        vocabulary_size=hub.NUM_TOKENS, hidden_size=hub.DIM, num_layers=1, intermediate_dim=32, **sizes
    )
    with pytest.raises(SplitError, match="head"):
        se.split_embedding(backbone, (), hub.NUM_NEW)
    assert backbone.vocabulary_size == hub.NUM_TOKENS and not hub.classes_of_ours(backbone)
    assert hub.is_split(se.split_embedding(backbone, hub.CHOSEN).token_embedding)


@pytest.mark.parametrize(
    ("name", "trained"),
    [("gpt2", False), ("bert masked", True), ("llama", True), ("bart", True)],
)
def test_combine_is_the_inverse(name, trained):
    task = hub.make_task(name)
    if trained:
        task.backbone.trainable = False
    kinds = [type(each) for each in task._flatten_layers()]
    config = task.get_config()
    paths = [(each.path, each.trainable) for each in task.weights]
    flags, others, tables = hub.other_flags(task), hub.other_weights(task), hub.tables_of(task)
    flag = task.backbone.token_embedding.trainable
    hub.split(task, name)
    assert hub.classes_of_ours(task)
    if trained:
        task.train_on_batch(hub.inputs_for(task), hub.targets_for(task))
        others, tables = hub.other_weights(task), hub.tables_of(task)
    se.combine_embedding(task)
    assert [type(each) for each in task._flatten_layers()] == kinds and not hub.classes_of_ours(task)
    assert [(each.path, each.trainable) for each in task.weights] == paths
    assert hub.other_flags(task) == flags and task.backbone.token_embedding.trainable == flag
    hub.same_weights(hub.other_weights(task), others)
    all_same_bits([each[: len(before)] for each, before in zip(hub.tables_of(task), tables, strict=True)], tables)
    assert all(len(each) == hub.NUM_TOKENS + hub.num_new(name) for each in hub.tables_of(task))
    config["backbone"]["config"]["vocabulary_size"] += hub.num_new(name)
    assert task.get_config() == config
    assert keras.saving.serialize_keras_object(task)["class_name"] == type(task).__name__
