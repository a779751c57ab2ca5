"""What trains around a split layer: its rows, and nothing that did not, whatever became of the model before."""

import keras
import numpy as np
import pytest
from keras import ops

from splitembed import combine_embedding, split_embedding
from splitembed.errors import SplitError
from splitembed.models.trainable_flags import loses_flags

IDS = np.array([[1, 2, 3], [3, 0, 1]])
TARGETS = np.ones((2, 3, 2), np.float32)


def attending_model() -> keras.Model:
    """A functional model with a layer that makes layers for itself, which no config of Keras tells the flags of."""
    ids = keras.Input((None,), dtype="int32")
    rows = keras.layers.Embedding(6, 4, name="tokens")(ids)
    attended = keras.layers.MultiHeadAttention(2, 2, name="attention")(rows, rows)
    return keras.Model(ids, keras.layers.Dense(2, name="head")(attended))


def reloaded(model: keras.Model, path) -> keras.Model:
    model.save(path)
    return keras.models.load_model(path)


def flags(model: keras.Model) -> list[bool]:
    return [each.trainable for each in (*model._flatten_layers(), *model.variables)]


def trained(model: keras.Model) -> list[str]:
    """Trains, and names what has changed."""
    before = [np.array(ops.convert_to_numpy(each)) for each in model.variables]
    model.compile("sgd", "mse")
    model.fit(IDS, TARGETS, verbose=0)
    pairs = zip(model.variables, before, strict=True)
    return [each.path for each, then in pairs if not np.array_equal(ops.convert_to_numpy(each), then)]


def frozen(path) -> keras.Model:
    model = attending_model()
    model.trainable = False
    return model


def frozen_and_loaded(path) -> keras.Model:
    """In a loaded model the layers that the attention makes for itself seem trainable; only the model says no."""
    return reloaded(frozen(path), path)


def frozen_one_by_one(path) -> keras.Model:
    model = attending_model()
    for layer in model.layers:
        layer.trainable = False
    return model


@pytest.mark.parametrize("make", [frozen, frozen_and_loaded, frozen_one_by_one])
def test_rows_alone_train_also_once_the_model_was_saved(make, tmp_path):
    model = make(tmp_path / "base.keras")
    before, kind = flags(model), type(model)
    split_embedding(model, [3], 1)
    assert [each.path for each in model.trainable_variables] == ["tokens/trainable_rows"]
    assert trained(model) == ["tokens/trainable_rows"]
    again = reloaded(model, tmp_path / "split.keras")
    assert [each.path for each in again.trainable_variables] == ["tokens/trainable_rows"]
    assert trained(again) == ["tokens/trainable_rows"]
    assert [each.path for each in reloaded(again, tmp_path / "again.keras").trainable_variables] == [
        "tokens/trainable_rows"
    ]
    combine_embedding(model)
    assert flags(model) == before and type(model) is kind


def test_what_trained_trains_on_once_the_model_was_saved(tmp_path):
    model = attending_model()
    model.get_layer("head").trainable = False
    split_embedding(model, [3])
    names = [each.path for each in model.trainable_variables]
    assert "tokens/trainable_rows" in names and "attention/query/kernel" in names and "head/kernel" not in names
    again = reloaded(model, tmp_path / "split.keras")
    assert [each.path for each in again.trainable_variables] == names
    assert type(again) is type(model) is keras.Model(again.inputs, again.outputs).__class__


def test_what_a_layer_makes_for_itself_loses_its_flag():
    model = attending_model()
    assert not loses_flags(model)
    model.get_layer("attention").trainable = False
    assert loses_flags(model)
    model.get_layer("attention").trainable = True
    model.get_layer("head").trainable = False
    assert not loses_flags(model)


@pytest.mark.parametrize("unfrozen", ["model", "head"])
def test_what_was_unfrozen_since_trains_on_once_the_model_is_plain(unfrozen):
    model = attending_model()
    model.trainable = False
    split_embedding(model, [3])
    (model if unfrozen == "model" else model.get_layer("head")).trainable = True
    combine_embedding(model)
    names = [each.path for each in model.trainable_variables]
    assert names == ([each.path for each in model.variables] if unfrozen == "model" else ["head/kernel", "head/bias"])


def test_a_model_around_the_one_that_was_given_trains_the_rows_too():
    inner = attending_model()
    ids = keras.Input((None,), dtype="int32")
    outer = keras.Model(ids, keras.layers.Dense(2)(inner(ids)))
    outer.compile("adam", "mse")
    outer.fit(IDS, TARGETS, verbose=0)
    before = outer.predict(IDS, verbose=0)
    split_embedding(inner, [3])
    assert np.array_equal(outer.predict(IDS, verbose=0), before)
    layer = inner.get_layer("tokens")
    rows = layer.to_split().trainable
    outer.fit(IDS, TARGETS, verbose=0)
    assert int(outer.optimizer.iterations) == 2 and not np.array_equal(layer.to_split().trainable, rows)
    assert not np.array_equal(outer.predict(IDS, verbose=0), before)


class HoldsKernel(keras.layers.Layer):
    """A head that holds the embedding's weight, and not the embedding."""

    def __init__(self, embedding):
        super().__init__(name="own_head")
        self.kernel = embedding.embeddings

    def call(self, states):
        return ops.matmul(states, ops.transpose(self.kernel))


def test_a_weight_that_another_layer_holds_is_not_taken_from_it():
    ids, embedding = keras.Input((None,), dtype="int32"), keras.layers.Embedding(6, 4, name="tokens")
    states = embedding(ids)
    model = keras.Model(ids, HoldsKernel(embedding)(states))
    with pytest.raises(SplitError, match="'tokens' .* has a weight that 'own_head' .a HoldsKernel. holds as its own"):
        split_embedding(model, [3])
    assert type(embedding) is keras.layers.Embedding
