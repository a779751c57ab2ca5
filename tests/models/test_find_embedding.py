"""The embedding to split is the named one, KerasHub's `token_embedding` or the only one; others are refused."""

import keras
import numpy as np
import pytest
from keras import layers, ops

import splitembed as se
from splitembed import SplitEmbedding, SplitTable
from splitembed.errors import SplitError
from splitembed.models.find_embedding import find_embedding, layers_in
from tests.helpers import plain_models as pm
from tests.helpers.bits import all_same_bits

pytestmark = pytest.mark.every_backend

needs_reversible = pytest.mark.skipif(pm.REVERSIBLE is None, reason="this Keras has no ReversibleEmbedding")
ONE_EMBEDDING = [name for name in pm.MODELS if name != "positions"]


def built(layer):
    layer.build()
    return layer


# Found


@pytest.mark.parametrize("name", ONE_EMBEDDING)
def test_the_only_embedding_is_found_at_any_depth(name):
    model = pm.make_model(name)
    assert find_embedding(model) is find_embedding(model, pm.TOKENS) is pm.embedding_of(model)


def test_an_embedding_without_a_model_is_found():
    layer = built(pm.embedding())
    assert find_embedding(layer) is layer


def test_the_named_one_of_several_is_found():
    model = pm.make_model("positions")
    tokens, positions = (model.get_layer(name) for name in (pm.TOKENS, "positions"))
    assert find_embedding(model, positions) is find_embedding(model, "positions") is positions
    assert find_embedding(model, tokens) is find_embedding(model, pm.TOKENS) is tokens
    assert layers_in(model, layers.Embedding) == [tokens, positions]


def test_several_without_a_name_are_listed():
    message = r"'tokens' \(20 tokens\), 'positions' \(20 tokens\). Choose one by `layer`"
    with pytest.raises(SplitError, match=message):
        find_embedding(pm.make_model("positions"))


@pytest.mark.parametrize("wrong", ["token", 7, layers.Embedding(3, 2, name="elsewhere")])
def test_a_wrong_name_is_refused_with_the_right_ones(wrong):
    with pytest.raises(SplitError, match=r"'tokens' \(20 tokens\), 'positions' .*names none of them. Received: "):
        find_embedding(pm.make_model("positions"), wrong)


def test_two_with_one_name_are_distinguished_as_objects():
    first, second = (built(pm.embedding()) for _ in range(2))
    ids = keras.Input((pm.LENGTH,), dtype="int32")
    inner = keras.Model(ids, second(ids), name="inner")
    model = keras.Model(ids, layers.Add()([first(ids), inner(ids)]))
    with pytest.raises(SplitError, match="`layer` names several of them. Received: 'tokens'"):
        find_embedding(model, pm.TOKENS)
    assert find_embedding(model, first) is first
    assert find_embedding(model, second) is second


class Named(keras.Model):
    """A model that names its embedding as KerasHub's backbones do."""

    def __init__(self, token_embedding):
        super().__init__()
        self.positions = built(layers.Embedding(pm.LENGTH, pm.DIM, name="positions"))
        self.token_embedding = token_embedding

    def call(self, ids):
        return self.token_embedding(ids) + self.positions(ops.arange(pm.LENGTH))


class Task(keras.Model):
    """A model that holds its backbone as KerasHub's tasks do."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone, self.others = backbone, built(layers.Embedding(3, 2, name="others"))

    def call(self, ids):
        return self.backbone(ids)


@pytest.mark.parametrize("make", [Named, lambda layer: Task(Named(layer))])
def test_the_embedding_that_kerashub_names_is_found(make):
    layer = built(pm.embedding())
    model = make(layer)
    model(pm.ids_of())
    assert find_embedding(model) is layer
    assert find_embedding(model, "positions").name == "positions"


@pytest.mark.parametrize("make", [Named, lambda layer: Task(Named(layer)), lambda layer: pm.positions(layer)])
def test_no_other_embedding_is_split_instead_of_a_split_one(make):
    """Otherwise a second call for more tokens would split the table of BERT's segments or of positions."""
    model = make(built(pm.embedding()))
    model(pm.ids_of())
    pm.split_of(model)
    with pytest.raises(SplitError, match="'tokens' is split already: change which tokens train by replace_split"):
        se.split_embedding(model, [1])
    assert type(find_embedding(model, "positions")) is layers.Embedding


# Refused


def test_a_model_without_an_embedding_is_refused():
    with pytest.raises(SplitError, match="are: none. A model whose layers Keras cannot find"):
        find_embedding(keras.Sequential([layers.Dense(1)]))
    with pytest.raises(SplitError, match="Pass a Keras model. Received: 3 .of type int."):
        find_embedding(3)


class Hides(keras.Model):
    """A model whose embedding is not in an attribute, so that Keras does not find it."""

    def __init__(self):
        super().__init__()
        layer = built(pm.embedding())
        self.look_up = lambda ids: layer(ids)

    def call(self, ids):
        return self.look_up(ids)


def test_an_embedding_that_keras_does_not_find_is_refused():
    with pytest.raises(SplitError, match="because it does not hold them in attributes, cannot be split"):
        se.split_embedding(Hides(), [1])


def test_a_split_embedding_is_refused():
    model = pm.split_of(pm.make_model("functional"))
    with pytest.raises(SplitError, match="'tokens' is split already"):
        find_embedding(model)
    with pytest.raises(SplitError, match="'tokens' is split already"):
        find_embedding(model, pm.TOKENS)


def test_an_unbuilt_embedding_is_refused():
    model = pm.unbuilt_sequential(pm.embedding())
    with pytest.raises(SplitError, match="'tokens' .a Embedding. has no weights yet. Call the model once"):
        find_embedding(model)


def test_a_dtype_without_a_storage_is_refused():
    with pytest.raises(SplitError, match="is stored as float64; float32, float16, bfloat16 can be split"):
        find_embedding(built(pm.embedding(dtype="float64")))


def quantized(mode):
    model = pm.make_model("functional")
    model.quantize(mode)
    return model


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_quantized_embedding_is_refused(mode):
    if mode == "int4" and pm.REVERSIBLE is None:
        pytest.skip("this Keras knows no int4")
    model = quantized(mode)
    before = pm.outputs_of(model)
    with pytest.raises(SplitError, match=rf"is quantized \({mode}\). Split the model first, then quantize"):
        se.split_embedding(model, [1])
    all_same_bits(pm.outputs_of(model), before)


def test_other_layers_may_be_quantized():
    model = pm.make_model("functional")
    model.layers[-1].quantize("int8")
    before = pm.outputs_of(model)
    all_same_bits(pm.outputs_of(pm.split_of(model)), before)


def test_an_embedding_with_lora_is_refused_until_it_is_merged(tmp_path):
    model, other = (pm.make_model("functional") for _ in range(2))
    layer = pm.embedding_of(model)
    layer.enable_lora(2)
    layer.lora_embeddings_b.assign(np.ones(layer.lora_embeddings_b.shape))
    with pytest.raises(SplitError, match="has LoRA. Enable LoRA on other layers; or save the weights, which merges it"):
        se.split_embedding(model, [1])
    model.save_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5")
    for found, expected in zip(pm.outputs_of(pm.split_of(other)), pm.outputs_of(model), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_lora_on_other_layers_keeps_training():
    model = pm.make_model("functional")
    model.layers[-1].enable_lora(2)
    before = pm.outputs_of(model)
    all_same_bits(pm.outputs_of(pm.split_of(model)), before)
    # the split's rows, two factors of LoRA, the bias
    assert len(model.trainable_weights) == 4


class Scales(layers.Embedding):
    def call(self, ids):
        return 2 * super().call(ids)


class Masks(layers.Embedding):
    def compute_mask(self, ids, mask=None):
        return ops.not_equal(ids, 1)


class Normalizes(layers.Embedding):
    @property
    def embeddings(self):
        return super().embeddings / 2


class Calls(layers.Embedding):
    def __call__(self, ids, *args, **kwargs):
        return super().__call__(ids * 0, *args, **kwargs)


@pytest.mark.parametrize("kind", [Scales, Masks, Normalizes, Calls])
def test_a_class_that_computes_differently_is_refused(kind):
    model = pm.functional(pm.embedding(kind=kind))
    message = rf"'tokens' .a {kind.__name__}. overrides how an embedding computes, which a split layer would not do"
    with pytest.raises(SplitError, match=message):
        find_embedding(model)


class Renamed(layers.Embedding):
    """A subclass without overrides."""


def test_a_subclass_without_overrides_is_split():
    model = pm.shake(pm.functional(pm.embedding(kind=Renamed)))
    before = pm.outputs_of(model)
    all_same_bits(pm.outputs_of(pm.split_of(model)), before)


# Split layers


@needs_reversible
def test_layers_inside_a_split_layer_are_not_listed():
    layer = built(pm.embedding(kind=pm.REVERSIBLE, tie_weights=False))
    se.split_embedding(layer, pm.CHOSEN)
    assert layers_in(layer, SplitEmbedding) == [layer]
    assert isinstance(layer.reverse_embedding, SplitEmbedding)


def test_layers_are_selected_by_their_class():
    ids = keras.Input((pm.LENGTH,), dtype="int32")
    split = SplitEmbedding(SplitTable.from_matrix(np.ones((3, 2)), [1]))
    plain = layers.Embedding(3, 2)
    model = keras.Model(ids, [split(ids), plain(ids)])
    assert layers_in(model, SplitEmbedding) == [split]
    assert layers_in(model, layers.Embedding) == [plain]
    assert layers_in(model, (layers.Embedding, SplitEmbedding)) == [split, plain]
    assert layers_in("no model", SplitEmbedding) == []
