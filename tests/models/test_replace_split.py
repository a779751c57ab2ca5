"""After replace_split, training continues as that of a dense reference, in every kind of model."""

import keras
import numpy as np
import pytest
from keras import ops

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.errors import SplitError
from splitembed.gradients import PartialEmbedding
from splitembed.layers.reversible import SplitReversibleEmbedding
from splitembed.models.replace_split import replace_split
from tests.helpers.slow import others_slow

DIM, TOKENS = 4, ["", "[UNK]", "a", "b", "c", "d", "e"]
MATRIX = np.random.default_rng(0).normal(size=(len(TOKENS), DIM)).astype(np.float32)
MATRIX[0] = 0
TRAINABLE = [1, 4]

OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: keras.optimizers.Adam(0.05, amsgrad=True),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.02, momentum=0.5, centered=True),
    "adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.05),
    "lion": lambda: keras.optimizers.Lion(0.02),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
}
# These update rows by more than their gradients, so that a dense table with frozen rows is no reference.
OTHERS = {
    "adamw": lambda: keras.optimizers.AdamW(0.05, weight_decay=0.1),
    "adafactor": lambda: keras.optimizers.Adafactor(0.05),
    "ftrl": lambda: keras.optimizers.Ftrl(0.1),
    "lazy adam": lambda: LazyAdam(0.05),
    "ema": lambda: keras.optimizers.Adam(0.05, use_ema=True),
    "accumulating": lambda: keras.optimizers.Adam(0.05, gradient_accumulation_steps=2),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.05), initial_scale=2.0),
}

HAS_MUON, HAS_MULTI = (hasattr(keras.optimizers, name) for name in ("Muon", "MultiOptimizer"))
if HAS_MUON:
    OTHERS["muon"] = lambda: keras.optimizers.Muon(0.05)


class DenseTable(keras.layers.Layer):
    """The reference: a dense table in which a mask selects the rows that get gradients."""

    def build(self, shape):
        self.table = self.add_weight(shape=MATRIX.shape, initializer=lambda *_, **__: ops.convert_to_tensor(MATRIX))
        self.mask = self.add_weight(shape=(len(TOKENS), 1), trainable=False, initializer="zeros")

    def call(self, ids):
        masked = self.mask * self.table + ops.stop_gradient((1 - self.mask) * self.table)
        return ops.take(masked, ids, axis=0)


def split_of(trainable=TRAINABLE) -> SplitTable:
    return SplitTable.from_matrix(MATRIX, trainable, vocabulary=TOKENS, padding=0)


def model_on(layer, optimizer, **options):
    ids = keras.Input((None,), dtype="int32")
    rows = keras.layers.GlobalAveragePooling1D()(layer(ids))
    dense = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(seed=1), name="head")
    model = keras.Model(ids, dense(rows))
    model.compile(optimizer, "mse", **options)
    return model


def batches(count, num_tokens=7, seed=3):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield generator.integers(0, num_tokens, (5, 6)), generator.normal(size=(5, 1)).astype(np.float32)


def train(model, pairs):
    for ids, targets in pairs:
        model.train_on_batch(ids, targets)


def layer_of(model) -> SplitEmbedding:
    return next(each for each in model._flatten_layers() if isinstance(each, SplitEmbedding))


@pytest.mark.parametrize("optimizer", others_slow(OPTIMIZERS, ["sgd", "adam", "schedule"]))
def test_a_history_of_changes_equals_a_dense_reference(optimizer):
    """Thaw, grow by a token without occurrences, and freeze; after each change both models train on."""
    reference = DenseTable()
    dense = model_on(reference, OPTIMIZERS[optimizer]())
    model = model_on(SplitEmbedding(split_of()), OPTIMIZERS[optimizer]())
    trainable = set(TRAINABLE)
    changes = [lambda s: s, lambda s: s.thaw(["a", "e"]), lambda s: s.grow(["new"], seed=0), lambda s: s.freeze(["c"])]
    sets = [trainable, trainable | {2, 6}, trainable | {2, 6}, trainable - {4} | {2, 6}]
    for seed, (change, rows) in enumerate(zip(changes, sets, strict=True)):
        before = layer_of(model).to_split().lookup(range(len(TOKENS)))
        model = replace_split(model, layer_of(model), change(layer_of(model).to_split()))
        assert layer_of(model).to_split().lookup(range(len(TOKENS))).tobytes() == before.tobytes()
        mask = np.zeros((len(TOKENS), 1), np.float32)
        mask[list(rows)] = 1
        reference.mask.assign(mask)
        if optimizer in ("sgd", "lion", "rmsprop", "adam", "nadam", "schedule") and seed == 3:
            # in the dense reference, momentum keeps moving a row that was frozen
            break
        train(model, batches(3, seed=seed))
        train(dense, batches(3, seed=seed))
        learned = layer_of(model).to_split().lookup(range(len(TOKENS)))
        np.testing.assert_allclose(learned, ops.convert_to_numpy(reference.table), rtol=2e-5, atol=2e-6)
        assert int(model.optimizer.iterations) == int(dense.optimizer.iterations)


@pytest.mark.parametrize("optimizer", others_slow(OPTIMIZERS | OTHERS, ["adam", "adamw", "lazy adam", "loss scale"]))
def test_replacing_by_the_same_changes_nothing_to_the_bit(optimizer):
    make = (OPTIMIZERS | OTHERS)[optimizer]
    model, other = (model_on(SplitEmbedding(split_of()), make()) for _ in range(2))
    for round_number in range(2):
        train(model, batches(3, seed=round_number))
        train(other, batches(3, seed=round_number))
        other = replace_split(other, layer_of(other), layer_of(other).to_split())
        found, expected = layer_of(other).to_split(), layer_of(model).to_split()
        assert found.combine().tobytes() == expected.combine().tobytes()
        for after, before in zip(other.optimizer.variables, model.optimizer.variables, strict=True):
            assert ops.convert_to_numpy(after).tobytes() == ops.convert_to_numpy(before).tobytes(), after.path


def test_slots_of_surviving_rows_are_kept_and_new_ones_start_again():
    model = model_on(SplitEmbedding(split_of()), keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.25))
    train(model, batches(4))
    old = ops.convert_to_numpy(model.optimizer._accumulators[0])
    split = layer_of(model).to_split().thaw(["e"]).shrink(["c", "a"])
    new_ids = split.id_mapping
    model = replace_split(model, layer_of(model), split)
    assert list(split.vocabulary) == ["", "[UNK]", "b", "d", "e"] and new_ids.tolist() == [0, 1, -1, 2, -1, 3, 4]
    new = ops.convert_to_numpy(model.optimizer._accumulators[0])
    # the rows of [UNK] and "e"
    assert new.tolist() == [old[0].tolist(), [0.25] * DIM]
    train(model, batches(2, num_tokens=5))


def test_ids_without_strings_are_mapped_by_new_ids():
    split = SplitTable.from_matrix(MATRIX, [2, 4, 5])
    model = model_on(SplitEmbedding(split), keras.optimizers.Adagrad(0.1))
    train(model, batches(4))
    old = ops.convert_to_numpy(model.optimizer._accumulators[0])
    smaller = layer_of(model).to_split().shrink([0, 2])
    new_ids = smaller.id_mapping
    model = replace_split(model, layer_of(model), smaller, new_ids=new_ids)
    assert ops.convert_to_numpy(model.optimizer._accumulators[0]).tolist() == old[1:].tolist()
    train(model, batches(2, num_tokens=5))


def test_a_moving_average_starts_at_the_frozen_row():
    model = model_on(SplitEmbedding(split_of()), keras.optimizers.Adam(0.05, use_ema=True))
    train(model, batches(3))
    model = replace_split(model, layer_of(model), layer_of(model).to_split().thaw(["a"]))
    average = ops.convert_to_numpy(model.optimizer._model_variables_moving_average[0])
    assert average[2].tolist() == MATRIX[2].tolist()


class Subclassed(keras.Model):
    """A model with the layer in another model, which is in an attribute."""

    def __init__(self, layer):
        super().__init__()
        self.encoder = keras.Sequential([layer, keras.layers.GlobalAveragePooling1D()])
        self.head = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, ids):
        return self.head(self.encoder(ids))


class Direct(keras.Model):
    """A model with the layer in an attribute."""

    def __init__(self, layer):
        super().__init__()
        self.embedding, self.head = layer, keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, ids):
        return self.head(ops.mean(self.embedding(ids), axis=1))


def sequential(layer):
    return keras.Sequential(
        [keras.Input((None,), dtype="int32"), layer, keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
    )


def nested(layer):
    inner_ids = keras.Input((None,), dtype="int32")
    inner = keras.Model(inner_ids, layer(inner_ids), name="encoder")
    ids = keras.Input((None,), dtype="int32")
    return keras.Model(ids, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(inner(ids))))


@pytest.mark.parametrize("make", [sequential, nested, Subclassed, Direct])
def test_every_kind_of_model(make):
    model = make(SplitEmbedding(split_of(), name="words"))
    model.compile("adam", "mse", metrics=["mae"])
    train(model, batches(2))
    ids = next(batches(1))[0]
    before = model.predict(ids, verbose=0)
    kernel = model.trainable_variables[-2]
    replaced = replace_split(model, "words", layer_of(model).to_split().thaw(["a", "d"]))
    assert replaced.predict(ids, verbose=0).tobytes() == before.tobytes()
    assert [tuple(each.shape) for each in replaced.trainable_variables] == [(4, DIM), (DIM, 1), (1,)]
    assert replaced.trainable_variables[-2] is kernel and type(replaced) is type(model)
    assert len([each for each in replaced._flatten_layers() if isinstance(each, SplitEmbedding)]) == 1
    train(replaced, batches(2))
    assert int(replaced.optimizer.iterations) == 4
    assert not np.array_equal(layer_of(replaced).to_split().lookup([2]), MATRIX[[2]])
    assert np.array_equal(layer_of(replaced).to_split().lookup([6]), MATRIX[[6]])


def test_a_partial_embedding_becomes_a_split_embedding():
    model = model_on(PartialEmbedding(7, MATRIX, TRAINABLE, vocabulary=TOKENS, mask_zero=True), "adam")
    train(model, batches(2))
    replaced = replace_split(model, layer_of(model), layer_of(model).to_split().thaw(["a"]))
    assert type(layer_of(replaced)) is SplitEmbedding and layer_of(replaced).mask_zero
    assert layer_of(replaced).num_trainable == 3
    train(replaced, batches(2))


def test_a_model_that_is_not_compiled_keeps_its_flags():
    ids = keras.Input((None,), dtype="int32")
    head = keras.layers.Dense(1, trainable=False)
    model = keras.Model(
        ids, head(keras.layers.GlobalAveragePooling1D()(SplitEmbedding(split_of(), mask_zero=True)(ids)))
    )
    replaced = replace_split(model, layer_of(model), split_of().thaw(["a"]))
    assert not replaced.compiled and replaced.layers[-1] is head and not head.trainable
    assert layer_of(replaced).mask_zero and layer_of(replaced).name == layer_of(model).name


def test_invalid_splits_and_layers_are_refused():
    model = model_on(SplitEmbedding(split_of(), name="words"), "adam")
    train(model, batches(2))
    with pytest.raises(SplitError, match="2 of 2 trainable rows of `new_split` are not those of the layer"):
        replace_split(model, "words", split_of().thaw(["a"]))
    with pytest.raises(SplitError, match="layers .* are: 'words'. Expected one that is or is named 'word'"):
        replace_split(model, "word", split_of())
    with pytest.raises(SplitError, match="`new_split` has dim 2; the layer 'words' has 4"):
        replace_split(model, "words", SplitTable.from_matrix([[0.0, 1.0]], [0]))
    with pytest.raises(SplitError, match=r"`new_split` must be a SplitTable, or a layer .* \(of type tuple\)"):
        replace_split(model, "words", (split_of(), None))


class Holder(keras.layers.Layer):
    """A layer that holds the embedding in a list."""

    def __init__(self, layer):
        super().__init__()
        self.parts = [layer]

    def call(self, ids):
        return self.parts[0](ids)


class FromLayer(keras.Model):
    """A functional model whose constructor takes a layer."""

    def __init__(self, layer):
        ids = keras.Input((None,), dtype="int32")
        super().__init__(ids, layer(ids))


@pytest.mark.parametrize("make", [lambda layer: keras.Sequential([Holder(layer)]), FromLayer])
def test_a_layer_is_replaced_in_lists_and_subclassed_models(make):
    layer = SplitEmbedding(split_of())
    model, ids = make(layer), np.array([[1, 2, 6]])
    before = ops.convert_to_numpy(model(ids))
    model.compile("sgd", "mse")
    replaced = replace_split(model, layer, layer.to_split().thaw(["a"]))
    assert replaced is model and model.compiled and np.array_equal(ops.convert_to_numpy(model(ids)), before)
    model.fit(ids, before + 1, verbose=0)
    changed = (ops.convert_to_numpy(model(ids)) != before).any(axis=-1)
    # [UNK] and "a" train, "e" does not
    assert changed.tolist() == [[True, True, False]]


@pytest.mark.parametrize("tie_weights", [True, False])
def test_a_language_model_trains_on_with_more_tokens(tie_weights):
    split, reverse = split_of(), None if tie_weights else SplitTable.from_matrix(MATRIX[::-1], [2], vocabulary=TOKENS)
    layer = SplitReversibleEmbedding(split, tie_weights, reverse_split=reverse, name="words")
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer(layer(ids), reverse=True))
    model.compile(keras.optimizers.Adam(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batch = np.array([[1, 2, 3]]), np.array([[2, 3, 4]])
    model.fit(*batch, verbose=0)
    splits = [layer.to_split(), *([] if tie_weights else [layer.reverse_embedding.to_split()])]
    before, slots = model.predict(batch[0], verbose=0), [np.array(each) for each in model.optimizer.variables[2:]]
    grown = [each.grow(["new"], seed=0).thaw(["a"]) for each in splits]
    replace_split(model, "words", grown[0], new_reverse_split=None if tie_weights else grown[1])
    assert model.output_shape == (None, None, len(TOKENS) + 1)
    np.testing.assert_allclose(model.predict(batch[0], verbose=0)[..., :-1], before, rtol=1e-5, atol=1e-6)
    for now, then in zip(model.optimizer.variables[2:], slots, strict=True):
        assert np.array_equal(ops.convert_to_numpy(now)[: len(then)], then)
    model.fit(*batch, verbose=0)
    with pytest.raises(SplitError, match="`new_reverse_split` is for|the table of the logits 7: pass"):
        replace_split(model, "words", layer.to_split(), new_reverse_split=split)


@pytest.mark.skipif(not HAS_MUON, reason="this Keras has no Muon")
def test_muon_trains_the_rows_by_adam_whatever_the_name_of_the_layer():
    model = model_on(
        SplitEmbedding(split_of(), name="words"), keras.optimizers.Muon(0.05, weight_decay=0.0, adam_weight_decay=0.0)
    )
    before = layer_of(model).to_split().combine()
    train(model, [(np.full((5, 6), 4), np.ones((5, 1), np.float32))])
    moved = np.flatnonzero((layer_of(model).to_split().combine() != before).any(axis=1))
    # the orthogonal update of the whole matrix would move all trainable rows
    assert moved.tolist() == [4]


def test_an_optimizer_whose_state_cannot_be_moved_is_refused():
    class Hidden(keras.optimizers.SGD):
        def build(self, variables):
            super().build(variables)
            self.slots = {each.path: keras.Variable(each) for each in variables}

    optimizers = [Hidden(0.1)]
    if HAS_MULTI:
        optimizers.append(keras.optimizers.MultiOptimizer(keras.optimizers.OptimizerMap(keras.optimizers.SGD(0.1))))
    for optimizer in optimizers:
        model = model_on(SplitEmbedding(split_of()), optimizer)
        optimizer.build(model.trainable_variables)
        layer = layer_of(model)
        with pytest.raises(SplitError, match=r"keeps its state in a form that cannot be moved .* after this call"):
            replace_split(model, layer, layer.to_split().thaw(["a"]))
        assert layer_of(model) is layer and model.optimizer is optimizer
