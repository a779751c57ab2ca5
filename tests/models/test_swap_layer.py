"""A layer is replaced everywhere in a model, shapes that depend on it are updated, and a failure changes nothing."""

import keras
import numpy as np
import pytest
from keras import layers, ops

import splitembed as se
from splitembed import SplitEmbedding
from splitembed.errors import SplitEmbedError, SplitError
from splitembed.models.swap_layer import containers_of
from tests.helpers import plain_models as pm
from tests.helpers.bits import all_same_bits

pytestmark = pytest.mark.every_backend

needs_reversible = pytest.mark.skipif(pm.REVERSIBLE is None, reason="this Keras has no ReversibleEmbedding")

# The same object, everywhere


def test_every_reference_finds_the_new_layer():
    for name, references in {
        "functional": lambda model: [model.get_layer(pm.TOKENS), model.layers[1], model.operations[1]],
        "sequential": lambda model: [model.get_layer(pm.TOKENS), model.layers[0]],
        "attribute": lambda model: [model.layer, model.layers[0]],
        "list": lambda model: [model.layers_of_mine[0]],
        "dict": lambda model: [model.by_name["embedding"]],
        "made in build": lambda model: [model.layers[0].inside],
        "time distributed": lambda model: [model.layers[1].layer],
        "nested": lambda model: [model.layers[1].get_layer("encoder").get_layer(pm.TOKENS)],
    }.items():
        model = pm.make_model(name)
        layer = pm.embedding_of(model)
        assert pm.split_of(model) is model
        assert all(each is layer for each in references(model)) and references(model), name
        assert type(layer) is SplitEmbedding and layer.name == pm.TOKENS
        assert se.combine_embedding(model) is model
        assert all(each is layer for each in references(model)) and type(layer) is layers.Embedding, name


def test_a_layer_in_the_graphs_of_two_models_is_replaced_in_both():
    """Both models call the split layer; the model around them is given."""
    ids = keras.Input((pm.LENGTH,), dtype="int32")
    layer = pm.embedding()
    rows = layer(ids)
    first, second = keras.Model(ids, rows), keras.Model(ids, layers.Dense(1)(rows))
    both = keras.Model(ids, [first(ids), second(ids)])
    before = pm.numpy(first(pm.ids_of()))
    pm.split_of(both)
    all_same_bits([pm.numpy(first(pm.ids_of()))], [before])
    layer.trainable_rows.assign(layer.trainable_rows + 1)
    expected = pm.rows_of(both)[pm.ids_of()]
    all_same_bits([pm.numpy(first(pm.ids_of()))], [expected])
    np.testing.assert_allclose(pm.numpy(second(pm.ids_of())), pm.numpy(second.layers[-1](expected)), rtol=0, atol=1e-6)


def test_weights_keep_their_order():
    model = pm.make_model("attribute")
    before = [each.path for each in model.weights]
    pm.split_of(model)
    assert model.weights[0] is model.layer.trainable_rows
    se.combine_embedding(model)
    assert [each.path for each in model.weights] == before


def test_containers_follow_the_layers_in_them():
    model = pm.make_model("model in a model")
    containers = containers_of(model, pm.embedding_of(model))
    assert [type(each).__name__ for each in containers] == ["FunctionalFromSize", "Functional", "HoldsModel"]
    assert containers_of(pm.embedding_of(model), pm.embedding_of(model)) == []


def test_a_layer_without_a_model_is_split():
    layer = pm.embedding()
    layer.build()
    before = pm.numpy(layer(pm.ids_of()))
    assert pm.split_of(layer) is layer and isinstance(layer, SplitEmbedding)
    all_same_bits([pm.numpy(layer(pm.ids_of()))], [before])
    assert se.combine_embedding(layer) is layer and type(layer) is layers.Embedding


# Which variables train


def one_by_one(model):
    return [each for each in model._flatten_layers(include_self=False) if not each._layers]


# the layers to freeze before the split
FROZEN = {
    "nothing": lambda model: [],
    "all as a whole": lambda model: [model],
    "all one by one": one_by_one,
    "its container": lambda model: containers_of(model, pm.embedding_of(model))[:1],
    "the layer": lambda model: [pm.embedding_of(model)],
}


@pytest.mark.parametrize(
    ("name", "frozen"),
    [
        *(("model in a model", frozen) for frozen in FROZEN),
        *((name, "all as a whole") for name in ("functional", "nested", "list", "made in build", "positions")),
    ],
)
def test_only_the_rows_start_to_train(name, frozen):
    model = pm.make_model(name)
    for each in FROZEN[frozen](model):
        each.trainable = False
    layer = pm.embedding_of(model)
    containers = containers_of(model, layer)
    others = [each for each in pm.other_layers(model) if each not in containers]

    def state():
        return [each.trainable for each in [*containers, *others]], [each.trainable for each in pm.other_weights(model)]

    def trained():
        own = {id(each) for each in layer.weights}
        return {id(each) for each in model.trainable_weights if id(each) not in own}

    before, others_before, was_trainable = state(), trained(), layer.trainable
    pm.split_of(model)
    now = state()
    assert now == ([True] * len(containers) + before[0][len(containers) :], before[1])
    assert trained() == others_before and layer.trainable
    assert [id(each) for each in model.trainable_weights if id(each) not in others_before] == [id(layer.trainable_rows)]
    se.combine_embedding(model)
    assert state() == before and trained() == others_before and layer.trainable == was_trainable
    assert layer.embeddings.trainable == was_trainable


def test_a_frozen_model_that_is_split_twice_is_frozen_again():
    model = pm.make_model("positions")
    model.trainable = False
    pm.split_of(model)
    se.split_embedding(model, [2], layer="positions")
    assert len(model.trainable_weights) == 2
    se.combine_embedding(model)
    assert not model.trainable and not model.trainable_weights
    assert not any(each.trainable for each in model._flatten_layers())


def test_a_model_that_was_unfrozen_after_the_split_stays_unfrozen():
    for name in ("functional", "nested", "made in build"):
        model = pm.make_model(name)
        model.trainable = False
        pm.split_of(model)
        model.trainable = True
        se.combine_embedding(model)
        assert model.trainable and all(each.trainable for each in model._flatten_layers())
        assert len(model.trainable_weights) == len(model.weights)


# Shapes


def summary_of(model):
    lines = []
    model.summary(print_fn=lambda line, *_, **__: lines.append(line), expand_nested=True)
    return "\n".join(lines)


@needs_reversible
def test_shapes_that_follow_are_updated():
    inner = pm.make_language_model()
    ids = keras.Input((None,), dtype="int32")
    logits = keras.Model(ids, inner(ids), name="around")(ids)
    model = keras.Model(ids, [layers.Softmax()(logits), logits[..., :2], ops.max(logits, axis=-1, keepdims=True)])
    pm.split_of(model)
    for number_of_tokens in (pm.GROWN, pm.GROWN):
        assert inner.output_shape == (None, None, number_of_tokens) == inner.outputs[0].shape
        assert model.output_shape == [(None, None, number_of_tokens), (None, None, 2), (None, None, 1)]
        assert inner.compute_output_shape((2, 3)) == (2, 3, number_of_tokens)
        assert model.compute_output_shape((2, 3))[0] == (2, 3, number_of_tokens)
        assert model(keras.Input((3,), dtype="int32"))[0].shape == (None, 3, number_of_tokens)
        assert tuple(model(pm.ids_of(3))[0].shape) == (3, pm.LENGTH, number_of_tokens)
        summary = summary_of(model)
        assert f" {number_of_tokens})" in summary and f" {pm.NUM_TOKENS})" not in summary
        if pm.names_of_ours(model):
            se.combine_embedding(model)


def test_chosen_tokens_alone_change_no_shape():
    model = pm.make_model("functional")
    before = [each.output.shape for each in model.layers]
    se.split_embedding(model, pm.CHOSEN)
    assert [each.output.shape for each in model.layers] == before


@pytest.mark.parametrize("name", ["made in build", "functional from a size", "model in a model"])
def test_containers_have_the_new_number_of_tokens(name):
    model = pm.make_model(name)
    container = model.layers[0] if name == "made in build" else model
    attribute = "vocab_size" if name == "model in a model" else "vocabulary_size"
    pm.split_of(model)
    assert getattr(container, attribute) == pm.GROWN
    se.combine_embedding(model)
    assert getattr(container, attribute) == pm.GROWN == container.get_config()[attribute]


def test_a_different_size_is_not_changed():
    model = pm.make_model("functional from a size")
    model.vocabulary_size = 7
    pm.split_of(model)
    assert model.vocabulary_size == 7


# Failures


class Bias(layers.Layer):
    """A layer with a number for each token."""

    def build(self, shape):
        self.bias = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, logits):
        return logits + self.bias


class BiasWithShape(Bias):
    def compute_output_shape(self, shape):
        return shape


def after_logits(make_parts):
    def make():
        inner = pm.make_language_model()
        tensor = inner.output
        for part in make_parts():
            tensor = part(tensor)
        return keras.Model(inner.input, tensor)

    return make


def in_a_nested_model():
    ids = keras.Input((None,), dtype="int32")
    inner = after_logits(lambda: [layers.Dense(3)])()
    return keras.Model(ids, layers.Softmax()(inner(ids)))


def around_a_model():
    ids = keras.Input((None,), dtype="int32")
    return keras.Model(ids, layers.Dense(2)(pm.make_language_model()(ids)))


FAIL = {
    "dense": after_logits(lambda: [layers.Softmax(), layers.Dense(3)]),
    "bias": after_logits(lambda: [Bias()]),
    "bias with an output shape": after_logits(lambda: [BiasWithShape()]),
    "layer normalization": after_logits(lambda: [layers.LayerNormalization()]),
    "batch normalization": after_logits(lambda: [layers.BatchNormalization()]),
    "reshape": after_logits(lambda: [layers.GlobalMaxPooling1D(), layers.Reshape((2, pm.NUM_TOKENS // 2))]),
    "constant": after_logits(lambda: [lambda logits: logits + np.ones(pm.NUM_TOKENS, np.float32)]),
    "nested": in_a_nested_model,
    "around": around_a_model,
}


@needs_reversible
@pytest.mark.parametrize("case", FAIL)
def test_a_failure_changes_nothing(case):
    model = FAIL[case]()
    model.trainable = False
    model.layers[-1].trainable = True
    layer, inputs = pm.embedding_of(model), pm.ids_of()
    pm.compiled(model, keras.optimizers.Adam(0.1), loss=None)

    def state():
        everything = model._flatten_layers()
        return {
            "classes": [type(each) for each in everything],
            "flags": [each.trainable for each in everything],
            "attributes": [id(vars(layer)), sorted(vars(layer))],
            "weights": [id(each) for each in model.weights],
            "shapes": [
                tensor.shape
                for each in everything
                if hasattr(each, "_nodes_by_depth")
                for nodes in each._nodes_by_depth.values()
                for node in nodes
                for tensor in node.outputs
            ],
            "optimizer": (id(model.optimizer), model.compiled, id(model.predict_function)),
        }

    outputs, before = pm.outputs_of(model, inputs), state()
    with pytest.raises(SplitError, match="has 20 tokens and cannot have 22: its .* was built for the old number"):
        pm.split_of(model)
    assert state() == before
    all_same_bits(pm.outputs_of(model, inputs), outputs)
    # without new tokens no shape changes
    se.split_embedding(model, pm.CHOSEN)
    all_same_bits(pm.outputs_of(model, inputs), outputs)


def test_invalid_arguments_change_nothing():
    model = pm.compiled(pm.make_model("functional"))
    outputs, optimizer, attributes = pm.outputs_of(model), model.optimizer, id(vars(pm.embedding_of(model)))
    for arguments, options in [
        (([pm.NUM_TOKENS],), {}),
        ((["the"],), {}),
        ((pm.CHOSEN, -1), {}),
        ((pm.CHOSEN, 2, "no such initializer"), {}),
        ((pm.CHOSEN, 2), {"seed": "x"}),
        ((pm.CHOSEN, 2), {"vocabulary": 3}),
        ((), {}),
        (([], 0), {}),
    ]:
        with pytest.raises(SplitEmbedError):
            se.split_embedding(model, *arguments, **options)
        assert id(vars(pm.embedding_of(model))) == attributes and not pm.names_of_ours(model)
    assert model.optimizer is optimizer
    all_same_bits(pm.outputs_of(model), outputs)


# Functions that were traced before


@pytest.mark.parametrize("name", ["functional", "nested", "attribute"])
def test_compiled_functions_are_traced_again(name):
    model = pm.compiled(pm.make_model(name), keras.optimizers.SGD(0.5))
    ids, targets = pm.ids_of(), pm.targets_of()
    for inner in model._flatten_layers():
        if isinstance(inner, keras.Model):
            inner.predict(ids, verbose=0) if name != "nested" or inner is not model.layers[-1] else None

    def step():
        model.train_on_batch(ids, targets)
        for predicted in (model.predict(ids, verbose=0), model.predict_on_batch(ids)):
            np.testing.assert_allclose(predicted, pm.numpy(model(ids)), rtol=0, atol=1e-6)
        loss = model.evaluate(ids, targets, verbose=0)
        np.testing.assert_allclose(loss, np.mean((pm.numpy(model(ids)) - targets) ** 2), rtol=1e-5)

    step()
    pm.split_of(model)
    rows, frozen = pm.rows_of(model), [each for each in range(pm.NUM_TOKENS) if each not in pm.CHOSEN]
    step()
    trained = pm.rows_of(model)
    all_same_bits([trained[frozen]], [rows[frozen]])
    assert (trained[pm.CHOSEN] != rows[pm.CHOSEN]).all()
    ids = pm.ids_of(highest=pm.GROWN)
    step()
    se.combine_embedding(model)
    step()
    assert (pm.rows_of(model)[frozen] != rows[frozen]).any()
    for inner in model._flatten_layers():
        if isinstance(inner, keras.Model) and inner is not model:
            np.testing.assert_allclose(inner.predict(ids, verbose=0), pm.numpy(inner(ids)), rtol=0, atol=1e-6)
