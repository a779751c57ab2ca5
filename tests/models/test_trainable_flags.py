"""Flags around a split layer: its rows train, and nothing else starts to."""

import keras
import numpy as np
import pytest
from keras import ops

from splitembed import combine_embedding, split_embedding
from splitembed.errors import SplitError

pytestmark = pytest.mark.every_backend

IDS = np.array([[1, 2, 3], [3, 0, 1]])
TARGETS = np.ones((2, 3, 2), np.float32)


def attending_model() -> keras.Model:
    """Make a functional model with a layer that makes layers, whose flags no config of Keras contains."""
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
    """Train for one epoch, and return the paths of the variables that changed."""
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
    """Load a frozen model: the layers that the attention makes have a true flag, and the model a false one."""
    return reloaded(frozen(path), path)


def frozen_one_by_one(path) -> keras.Model:
    model = attending_model()
    for layer in model.layers:
        layer.trainable = False
    return model


@pytest.mark.parametrize("make", [frozen, frozen_and_loaded, frozen_one_by_one])
def test_rows_alone_train_in_a_frozen_model(make, tmp_path):
    model = make(tmp_path / "base.keras")
    before, kind = flags(model), type(model)
    split_embedding(model, [3], 1)
    assert [each.path for each in model.trainable_variables] == ["tokens/trainable_embeddings"]
    assert trained(model) == ["tokens/trainable_embeddings"]
    combine_embedding(model)
    assert flags(model) == before and type(model) is kind


def test_a_loaded_model_keeps_the_flags_in_its_config_alone(tmp_path):
    """Keras itself loses the others: a config has the flag of its layer, and not of the layers that this one makes."""
    model = frozen(tmp_path)
    split_embedding(model, [3], 1)
    again = reloaded(model, tmp_path / "split.keras")
    paths = [each.path for each in again.trainable_variables]
    assert paths[0] == "tokens/trainable_embeddings" and len(paths) > 1
    assert all(path.startswith("attention/") for path in paths[1:])
    # Keras on TensorFlow ignores a flag that the layer has already
    again.get_layer("attention").trainable = True
    again.get_layer("attention").trainable = False
    assert trained(again) == ["tokens/trainable_embeddings"]


@pytest.mark.parametrize("unfrozen", ["model", "head"])
def test_layers_unfrozen_after_the_split_train_on_after_combine(unfrozen):
    model = attending_model()
    model.trainable = False
    split_embedding(model, [3])
    (model if unfrozen == "model" else model.get_layer("head")).trainable = True
    combine_embedding(model)
    names = [each.path for each in model.trainable_variables]
    assert names == ([each.path for each in model.variables] if unfrozen == "model" else ["head/kernel", "head/bias"])


def outer_and_inner():
    """Make a compiled model that has predicted and trained, and return it, the model in it and its predictions."""
    inner = attending_model()
    ids = keras.Input((None,), dtype="int32")
    outer = keras.Model(ids, keras.layers.Dense(2)(inner(ids)))
    outer.compile("adam", "mse", jit_compile=False)
    outer.fit(IDS, TARGETS, verbose=0)
    return outer, inner, outer.predict(IDS, verbose=0)


def test_a_model_around_the_given_one_that_is_handed_over_trains_the_rows_too():
    outer, inner, before = outer_and_inner()
    split_embedding(inner, [3], also=[outer])
    assert np.array_equal(outer.predict(IDS, verbose=0), before)
    layer = inner.get_layer("tokens")
    rows = layer.to_split().trainable
    outer.fit(IDS, TARGETS, verbose=0)
    assert int(outer.optimizer.iterations) == 2 and not np.array_equal(layer.to_split().trainable, rows)
    after = outer.predict(IDS, verbose=0)
    assert not np.array_equal(after, before)
    combine_embedding(inner, also=[outer])
    assert np.array_equal(outer.predict(IDS, verbose=0), after)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends compile per call or not at all")
def test_a_model_that_is_not_handed_over_continues_to_compute_with_the_old_table():
    outer, inner, before = outer_and_inner()
    split_embedding(inner, [3])
    layer = inner.get_layer("tokens")
    layer.trainable_rows.assign(layer.trainable_rows + 1)
    assert np.array_equal(outer.predict(IDS, verbose=0), before)
    now = ops.convert_to_numpy(outer(IDS))
    assert not np.allclose(now, before)
    outer.fit(IDS, TARGETS, verbose=0)
    assert np.array_equal(layer.trainable_rows, layer.to_split().trainable)
    outer.compile("adam", "mse", jit_compile=False)
    np.testing.assert_allclose(outer.predict(IDS, verbose=0), ops.convert_to_numpy(outer(IDS)), rtol=0, atol=1e-6)


def test_a_model_without_the_layer_is_refused_in_also():
    model, other = attending_model(), attending_model()
    with pytest.raises(SplitError, match="`also` must be models that hold 'tokens' too. Received: 'functional"):
        split_embedding(model, [3], also=[other])
    with pytest.raises(SplitError, match="Received: 3 .of type int."):
        split_embedding(model, [3], also=[3])
    assert type(model.get_layer("tokens")) is keras.layers.Embedding


class SharesKernel(keras.layers.Layer):
    """A head that uses the weight of the embedding instead of the embedding."""

    def __init__(self, embedding):
        super().__init__(name="own_head")
        self.kernel = embedding.embeddings

    def call(self, states):
        return ops.matmul(states, ops.transpose(self.kernel))


def test_a_weight_that_another_layer_holds_is_refused():
    ids, embedding = keras.Input((None,), dtype="int32"), keras.layers.Embedding(6, 4, name="tokens")
    states = embedding(ids)
    model = keras.Model(ids, SharesKernel(embedding)(states))
    with pytest.raises(SplitError, match="'tokens' .* has a weight that 'own_head' .a SharesKernel. has too"):
        split_embedding(model, [3])
    assert type(embedding) is keras.layers.Embedding
