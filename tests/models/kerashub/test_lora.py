"""LoRA and int8 on other layers of a split model; an embedding that has either is refused."""

import keras
import numpy as np
import pytest

import splitembed as se
from splitembed.errors import SplitError
from tests.helpers import hub_models as hub
from tests.helpers.bits import all_same_bits

pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method:UserWarning")
LORA = ["gpt2", "llama"]
RANK = 2


def lora_paths(model) -> set[str]:
    return {each.path for each in model.weights if "lora" in each.path}


def changed_by_training(task) -> set[str]:
    """Train for two steps, and return the paths of the other weights that changed."""
    hub.compile_task(task, keras.optimizers.AdamW(0.05, weight_decay=0.1))
    highest = task.backbone.vocabulary_size
    before, tables, frozen = hub.other_weights(task), hub.tables_of(task), hub.frozen_bytes(task)
    for seed in range(2):
        task.train_on_batch(hub.inputs_for(task, highest, seed), hub.targets_for(task, highest, seed))
    assert hub.frozen_bytes(task) == frozen
    for old, new in zip(tables, hub.tables_of(task), strict=True):
        np.testing.assert_array_equal(np.flatnonzero((old != new).any(axis=1)), hub.TRAINED)
    after = hub.other_weights(task)
    return {path for path, value in before.items() if value.tobytes() != after[path].tobytes()}


@pytest.mark.parametrize("name", LORA)
def test_lora_before_the_split_trains_with_the_rows(name):
    task = hub.make_task(name)
    hub.freeze(task)
    task.backbone.enable_lora(RANK)
    inputs, trains = hub.inputs_for(task.backbone), {each.path for each in task.trainable_variables}
    before = hub.outputs_of(task.backbone, inputs)
    # query and value of two layers, two factors each; KerasHub trains biases too
    assert len(lora_paths(task)) == 8
    assert lora_paths(task) <= trains
    hub.split(task, name)
    all_same_bits(hub.outputs_of(task.backbone, inputs), before)
    assert changed_by_training(task) == trains


@pytest.mark.parametrize("name", LORA)
def test_lora_after_the_split_trains_with_the_rows(name):
    task = hub.make_task(name)
    hub.freeze(task)
    hub.split(task, name)
    task.backbone.enable_lora(RANK)
    trains = {each.path for each in task.trainable_variables}
    assert len(lora_paths(task)) == 8 and lora_paths(task) <= trains
    # enable_lora has frozen every layer
    task.backbone.token_embedding.trainable = True
    assert changed_by_training(task) == trains
    inputs = hub.inputs_for(task, hub.NUM_TOKENS + hub.NUM_NEW)
    before = hub.flat(task(inputs))
    se.combine_embedding(task)
    all_same_bits(hub.flat(task(inputs)), before)


def test_lora_weights_by_number_are_refused_while_a_model_is_split(tmp_path):
    """KerasHub names a layer by its number among those with weights."""
    path = tmp_path / "dense.lora.h5"
    backbone = hub.make_backbone("llama")
    backbone.enable_lora(RANK)
    backbone.save_lora_weights(path)
    before = path.read_bytes()
    hub.split(backbone, "llama")
    for change in ("save_lora_weights", "load_lora_weights"):
        with pytest.raises(NotImplementedError, match=f"{change}.*token_embedding.*combine_embedding"):
            getattr(backbone, change)(path)
    assert path.read_bytes() == before
    se.combine_embedding(backbone).load_lora_weights(path)


@pytest.mark.parametrize("name", ["gpt2", "distilbert masked"])
def test_lora_on_the_embedding_is_refused_by_name(name):
    task = hub.make_task(name)
    task.backbone.token_embedding.enable_lora(RANK)
    _assert_refused(task, "token_embedding.*LoRA")


def test_a_quantized_embedding_is_refused_by_name():
    task = hub.make_task("llama", num_layers=1)
    task.backbone.quantize("int8")
    _assert_refused(task, r"token_embedding.*quantized \(int8\)")


def _assert_refused(task, message) -> None:
    inputs, kinds = hub.inputs_for(task), [type(each) for each in task._flatten_layers()]
    before, flags = hub.flat(task(inputs)), hub.other_flags(task)
    for model in (task, task.backbone):
        with pytest.raises(SplitError, match=message):
            se.split_embedding(model, hub.CHOSEN)
    assert [type(each) for each in task._flatten_layers()] == kinds and hub.other_flags(task) == flags
    assert not hub.classes_of_ours(task)
    all_same_bits(hub.flat(task(inputs)), before)


def test_the_other_layers_can_be_quantized_after_the_split():
    task, dense = (hub.make_task("gpt2", num_layers=1) for _ in range(2))
    hub.split(task, "gpt2")
    tables, inputs = hub.tables_of(task), hub.inputs_for(task)
    with pytest.warns(UserWarning, match="SplitReversibleEmbedding|token_embedding"):
        task.backbone.quantize("int8")
    all_same_bits(hub.tables_of(task), tables)
    assert any(each.dtype == "int8" for each in task.backbone.weights)
    found, expected = hub.flat(task(inputs))[0][..., : hub.NUM_TOKENS], hub.flat(dense(inputs))[0]
    # the tolerance of int8
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.3)


@pytest.mark.parametrize("change", ["enable_lora", "quantize"])
def test_the_split_layer_refuses_both(change):
    backbone = se.split_embedding(hub.make_backbone("gpt2"), hub.CHOSEN)
    with pytest.raises(NotImplementedError, match="token_embedding"):
        getattr(backbone.token_embedding, change)(*([RANK] if change == "enable_lora" else ["int8"]))
