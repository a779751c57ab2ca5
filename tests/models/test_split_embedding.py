"""A split model computes the same outputs, trains only chosen and new tokens, and can be combined again."""

import gc
import sys
import warnings
import weakref

import keras
import numpy as np
import pytest
from keras import layers, ops

import splitembed as se
from splitembed import SplitEmbedding
from splitembed.errors import NewTokenWarning, SplitError, UnknownTokenError
from tests.helpers import plain_models as pm
from tests.helpers.bits import all_same_bits
from tests.helpers.fresh import run_fresh
from tests.helpers.slow import others_slow

pytestmark = pytest.mark.every_backend

needs_reversible = pytest.mark.skipif(pm.REVERSIBLE is None, reason="this Keras has no ReversibleEmbedding")
on_tensorflow = pytest.mark.skipif(pm.BACKEND != "tensorflow", reason="TensorFlow's own")
# float32: some steps with sums in another order
TOLERANCE = 1e-5
GROWN_IDS = pm.ids_of(highest=pm.GROWN)
FROZEN = [token for token in range(pm.NUM_TOKENS) if token not in pm.CHOSEN]
LANGUAGE_MODELS = {
    "tied": {},
    "untied": {"tie_weights": False},
    "soft cap": {"logit_soft_cap": 1.5},
    "untied, soft cap": {"tie_weights": False, "logit_soft_cap": 1.5},
    "reverse dtype": {"reverse_dtype": "bfloat16"},
}


def grown(model, ids=GROWN_IDS):
    return pm.outputs_of(model, ids)


# Outputs


@pytest.mark.parametrize("name", pm.MODELS)
def test_no_output_changes_by_a_bit(name):
    model = pm.make_model(name)
    before, kinds, config = pm.outputs_of(model), [type(each) for each in model._flatten_layers()], model.get_config()
    names = [(each.name, each.path) for each in model.weights]
    assert pm.split_of(model) is model
    all_same_bits(pm.outputs_of(model), before)
    with_new = grown(model)
    assert np.isfinite(with_new).all()
    assert se.combine_embedding(model) is model
    all_same_bits(pm.outputs_of(model), before)
    all_same_bits(grown(model), with_new)
    assert [type(each) for each in model._flatten_layers()] == kinds and not pm.names_of_ours(model)
    assert [(each.name, each.path) for each in model.weights] == names
    assert "splitembed" not in repr(model.get_config()) and model.get_config().keys() == config.keys()


@on_tensorflow
@pytest.mark.parametrize("name", ["functional", "nested", "masked", "list"])
def test_no_output_of_a_compiled_function_changes_by_a_bit(name):
    import tensorflow as tf

    model = pm.make_model(name)

    def run(ids):
        return pm.numpy(tf.function(lambda given: model(given))(tf.constant(ids)))

    before = run(pm.ids_of())
    pm.split_of(model)
    all_same_bits([run(pm.ids_of())], [before])
    with_new = run(GROWN_IDS)
    se.combine_embedding(model)
    all_same_bits([run(pm.ids_of()), run(GROWN_IDS)], [before, with_new])


@needs_reversible
@pytest.mark.parametrize("new", [0, pm.NUM_NEW])
@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_no_logit_changes_by_a_bit(kind, new):
    model = pm.compiled(pm.make_language_model(**LANGUAGE_MODELS[kind]), loss=None)
    before = pm.outputs_of(model)
    se.split_embedding(model, pm.CHOSEN, new)
    after = pm.outputs_of(model)
    assert {each.shape[-1] for each in after} == {pm.NUM_TOKENS + new}
    all_same_bits([np.ascontiguousarray(each[..., : pm.NUM_TOKENS]) for each in after], before)
    with_new = grown(model) if new else after
    se.combine_embedding(model)
    for found, expected in zip(grown(model) if new else pm.outputs_of(model), with_new, strict=True):
        # until the tables are combined, new columns are the result of a separate product
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.05 if kind == "reverse dtype" else TOLERANCE)


@pytest.mark.parametrize("policy", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("kind", ["plain", *(["tied", "untied"] if pm.REVERSIBLE is not None else [])])
def test_no_output_changes_under_any_policy(kind, policy):
    if kind == "plain":
        model = pm.shake(pm.functional(pm.embedding(dtype=policy)))
    else:
        model = pm.make_language_model(tie_weights=kind == "tied", dtype=policy)
    layer = pm.embedding_of(model)
    stored = layer.embeddings.dtype
    states = ops.cast(pm.table(3, seed=5), layer.compute_dtype)

    def outputs():
        found = [layer(pm.ids_of())] if kind == "plain" else [layer(pm.ids_of()), layer(states, reverse=True)]
        return [pm.numpy(ops.cast(each, "float32"))[..., : pm.NUM_TOKENS] for each in found]

    before = [np.ascontiguousarray(each) for each in outputs()]
    pm.split_of(model)
    all_same_bits([np.ascontiguousarray(each) for each in outputs()], before)
    assert layer.frozen_dtype == stored and layer.dtype_policy.name == policy
    assert layer.trainable_rows.dtype == "float32"
    layer.trainable_rows.assign(layer.trainable_rows + 0.125)
    rows = pm.rows_of(model)
    se.combine_embedding(model)
    assert layer.embeddings.dtype == stored and layer.dtype_policy.name == policy
    np.testing.assert_array_equal(pm.rows_of(model), pm.numpy(ops.cast(ops.cast(rows, stored), "float32")))
    all_same_bits([pm.rows_of(model)[FROZEN]], [pm.numpy(ops.cast(ops.cast(pm.table(), stored), "float32"))[FROZEN]])


def test_id_0_is_masked_even_if_its_row_is_not_zero():
    model = pm.make_model("masked")
    layer = pm.embedding_of(model)
    ids = pm.ids_of()
    assert pm.table()[0].all() and (ids == 0).any()
    before = pm.outputs_of(model)
    se.split_embedding(model, [0, *pm.CHOSEN], 1)
    assert layer.mask_zero and layer.supports_masking
    np.testing.assert_array_equal(pm.numpy(layer.compute_mask(ids)), ids != 0)
    all_same_bits([pm.numpy(layer(ids))], [pm.table()[ids]])
    all_same_bits(pm.outputs_of(model), before)
    pm.compiled(model).train_on_batch(ids, pm.targets_of())
    layer.trainable_rows.assign(layer.trainable_rows + 1)
    np.testing.assert_allclose(pm.numpy(layer(ids))[ids == 0], (pm.rows_of(model)[0]) * np.ones(((ids == 0).sum(), 1)))
    se.combine_embedding(model)
    assert layer.mask_zero and layer.supports_masking
    np.testing.assert_array_equal(pm.numpy(layer.compute_mask(ids)), ids != 0)


def test_regularizers_and_constraints_are_kept():
    options = {
        "embeddings_regularizer": keras.regularizers.L2(0.5),
        "embeddings_constraint": keras.constraints.MaxNorm(0.25, axis=1),
    }
    model = pm.compiled(pm.shake(pm.functional(pm.embedding(**options))), keras.optimizers.SGD(0.1))
    before = pm.outputs_of(model)
    layer = pm.embedding_of(pm.split_of(model))
    all_same_bits(pm.outputs_of(model), before)
    rows = pm.rows_of(model)
    np.testing.assert_allclose(pm.numpy(model.losses[0]), 0.5 * np.square(rows[pm.TRAINED]).sum(), rtol=1e-6)
    model.train_on_batch(GROWN_IDS, pm.targets_of())
    assert np.linalg.norm(pm.rows_of(model)[pm.TRAINED], axis=1).max() < 0.2501
    all_same_bits([pm.rows_of(model)[FROZEN]], [rows[FROZEN]])
    se.combine_embedding(model)
    assert type(layer.embeddings_regularizer) is keras.regularizers.L2
    assert type(layer.embeddings_constraint) is keras.constraints.MaxNorm
    np.testing.assert_allclose(pm.numpy(model.losses[0]), 0.5 * np.square(pm.rows_of(model)).sum(), rtol=1e-6)


# Training


class DenseGradient(layers.Embedding):
    """Keras's layer with a dense gradient, in which duplicate ids are summed before an optimizer squares them."""

    def call(self, ids):
        return ops.matmul(ops.one_hot(ids, self.input_dim), self.embeddings)


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.05),
    "AdamW": lambda: keras.optimizers.AdamW(0.05, weight_decay=0.5),
}
if pm.BACKEND == "tensorflow":
    OPTIMIZERS["LazyAdam"] = lambda: se.LazyAdam(0.05)


def twin_of(model, make, optimizer, **options):
    """Make a dense model with the rows and the other weights of a split one."""
    twin = make()
    pm.embedding_of(twin).embeddings.assign(pm.rows_of(model))
    for mine, other in zip(pm.other_weights(model), pm.other_weights(twin), strict=True):
        other.assign(mine)
    make_optimizer = OPTIMIZERS["Adam" if optimizer == "LazyAdam" else optimizer]
    return pm.compiled(twin, make_optimizer(), **options)


def hold(twin, rows, trained=pm.TRAINED):
    """Assign the old values to the rows that do not train."""
    now = pm.rows_of(twin)
    held = rows.copy()
    held[trained] = now[trained]
    pm.embedding_of(twin).embeddings.assign(held)


def same_after_each_step(model, twin, batches, *, frozen_others=False):
    rows, others = pm.rows_of(model), pm.values_of(pm.other_weights(model))
    for ids, targets in batches:
        inputs = pm.inputs_for(model, ids)
        losses = [each.train_on_batch(inputs, targets) for each in (model, twin)]
        hold(twin, rows)
        np.testing.assert_allclose(*losses, rtol=TOLERANCE, atol=TOLERANCE)
        np.testing.assert_allclose(pm.rows_of(model), pm.rows_of(twin), rtol=0, atol=TOLERANCE)
        for mine, other in zip(pm.other_weights(model), pm.other_weights(twin), strict=True):
            np.testing.assert_allclose(pm.numpy(mine), pm.numpy(other), rtol=0, atol=TOLERANCE)
    now = pm.rows_of(model)
    all_same_bits([now[FROZEN]], [rows[FROZEN]])
    all_same_bits([pm.embedding_of(model).to_split().frozen], [pm.table()])
    assert (now[pm.TRAINED] != rows[pm.TRAINED]).all()
    if frozen_others:
        all_same_bits(pm.values_of(pm.other_weights(model)), others)


def batches_of(num=4, highest=pm.GROWN):
    return [(pm.ids_of(highest=highest, seed=10 + index), pm.targets_of(seed=index)) for index in range(num)]


@pytest.mark.parametrize(
    ("optimizer", "frozen"),
    [*((optimizer, False) for optimizer in OPTIMIZERS if optimizer in ("momentum", "LazyAdam")), ("AdamW", True)],
)
def test_training_equals_a_dense_twin(optimizer, frozen):
    model = pm.make_model("functional")
    model.trainable = not frozen
    pm.compiled(pm.split_of(model), OPTIMIZERS[optimizer]())
    twin = twin_of(model, lambda: pm.make_model("functional", pm.GROWN, kind=DenseGradient), optimizer)
    for each in pm.other_layers(twin) if frozen else ():
        each._trainable = each._trainable if each._layers else False
        for weight in each._trainable_variables:
            weight.trainable = False
    twin.compile(twin.optimizer, "mse", jit_compile=False)
    same_after_each_step(model, twin, batches_of(), frozen_others=frozen)


@pytest.mark.parametrize(
    "name", others_slow(["shared", "masked", "nested", "dict", "model in time distributed"], ["shared", "nested"])
)
def test_training_equals_a_dense_twin_in_every_kind_of_model(name):
    model = pm.compiled(pm.split_of(pm.make_model(name)), OPTIMIZERS["AdamW"]())
    twin = twin_of(model, lambda: pm.make_model(name, pm.GROWN, kind=DenseGradient), "AdamW")
    batches = batches_of()
    # this model does not use the last id of a text
    if name == "shared":
        batches = [(np.roll(ids, 1, axis=0)[:, ::-1].copy(), targets) for ids, targets in batches]
        for ids, _ in batches:
            ids[0, :4], ids[1, :1] = pm.TRAINED[:4], pm.TRAINED[4:]
    same_after_each_step(model, twin, batches)


if pm.REVERSIBLE is not None:

    class DenseReversible(pm.REVERSIBLE):
        """Keras's layer with a dense gradient."""

        def call(self, inputs, reverse=False):
            if reverse:
                return super().call(inputs, reverse=True)
            return ops.matmul(ops.one_hot(inputs, self.input_dim), self.embeddings)


@needs_reversible
@pytest.mark.parametrize(
    ("kind", "optimizer"),
    [
        *(("tied", name) for name in OPTIMIZERS if name != "SGD"),
        *(("untied", name) for name in ("AdamW", "LazyAdam") if name in OPTIMIZERS),
        ("soft cap", "Adam"),
    ],
)
def test_a_language_model_trains_as_its_dense_twin(kind, optimizer):
    options = LANGUAGE_MODELS[kind]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = pm.compiled(pm.split_of(pm.make_language_model(**options)), OPTIMIZERS[optimizer](), loss=loss)
    layer = pm.embedding_of(model)
    make = lambda: pm.make_language_model(pm.GROWN, DenseReversible, **options)  # noqa: E731
    twin = make()
    reverse = None if layer.reverse_embedding is None else layer.reverse_embedding.to_split()
    dense = pm.embedding_of(twin)
    dense.embeddings.assign(pm.rows_of(model))
    if reverse is not None:
        dense.reverse_embeddings.assign(reverse.combine().T)
    for mine, other in zip(pm.other_weights(model), pm.other_weights(twin), strict=True):
        other.assign(mine)
    make_optimizer = OPTIMIZERS["Adam" if optimizer == "LazyAdam" else optimizer]
    pm.compiled(twin, make_optimizer(), loss=loss)
    rows = pm.rows_of(model)
    for ids, _ in batches_of():
        following = np.roll(ids, -1, axis=1)
        losses = [each.train_on_batch(ids, following) for each in (model, twin)]
        hold(twin, rows)
        np.testing.assert_allclose(*losses, rtol=TOLERANCE, atol=TOLERANCE)
        np.testing.assert_allclose(pm.rows_of(model), pm.rows_of(twin), rtol=0, atol=TOLERANCE)
        if reverse is not None:
            before = reverse.combine()
            held = before.copy()
            held[pm.TRAINED] = pm.numpy(dense.reverse_embeddings).T[pm.TRAINED]
            dense.reverse_embeddings.assign(held.T)
            now = layer.reverse_embedding.to_split().combine()
            np.testing.assert_allclose(now, held, rtol=0, atol=TOLERANCE)
            all_same_bits([now[FROZEN]], [before[FROZEN]])
    all_same_bits([pm.rows_of(model)[FROZEN]], [rows[FROZEN]])
    assert (pm.rows_of(model)[pm.TRAINED] != rows[pm.TRAINED]).all()


# Compiled models continue to train

CONTINUED = {
    **{name: OPTIMIZERS[name] for name in ("momentum", "Adam", "AdamW")},
    "RMSprop": lambda: keras.optimizers.RMSprop(0.02),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.7)),
    "average": lambda: keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.5),
}


def distinct_batches(num=3):
    """Make batches without duplicate ids, for which Keras's sparse gradient is right; each has every chosen token."""
    generator = np.random.default_rng(6)
    ids = [generator.permutation(np.r_[pm.CHOSEN, generator.permutation(FROZEN)[:12]]) for _ in range(num)]
    return [
        (each.reshape(3, pm.LENGTH).astype(np.int32), pm.targets_of(3, seed=index)) for index, each in enumerate(ids)
    ]


@pytest.mark.parametrize("optimizer", others_slow(CONTINUED, ["AdamW", "schedule", "average"]))
def test_a_trained_model_trains_on_as_a_dense_one(optimizer):
    """Compare a dense, then split, then combined model with a dense one whose frozen rows are reset at each step."""
    model = pm.compiled(pm.make_model("functional"), CONTINUED[optimizer]())
    reference = pm.compiled(pm.make_model("functional", pm.GROWN, kind=DenseGradient), CONTINUED[optimizer]())
    for mine, other in zip(pm.other_weights(model), pm.other_weights(reference), strict=True):
        other.assign(mine)
    layer, dense = pm.embedding_of(model), pm.embedding_of(reference)

    def rows_agree(trained):
        np.testing.assert_allclose(pm.rows_of(model), pm.rows_of(reference)[: layer.input_dim], rtol=0, atol=TOLERANCE)
        for mine, other in zip(pm.other_weights(model), pm.other_weights(reference), strict=True):
            np.testing.assert_allclose(pm.numpy(mine), pm.numpy(other), rtol=0, atol=TOLERANCE)
        assert int(pm.numpy(model.optimizer.iterations)) == int(pm.numpy(reference.optimizer.iterations))

    def step(ids, targets, trained):
        before = pm.rows_of(reference)
        for each in (model, reference):
            each.train_on_batch(ids, targets)
        hold(reference, before, trained)
        rows_agree(trained)

    for ids, targets in distinct_batches():
        step(ids, targets, list(range(pm.NUM_TOKENS)))
    start = np.full((pm.NUM_NEW, pm.DIM), 0.25, np.float32)
    pm.split_of(model, initializer=lambda shape, dtype=None: start)
    dense.embeddings.assign(np.concatenate([pm.rows_of(reference)[: pm.NUM_TOKENS], start]))
    if optimizer == "average":
        fresh = pm.numpy(reference.optimizer._model_variables_moving_average[0])
        fresh[pm.NUM_TOKENS :] = start
        reference.optimizer._model_variables_moving_average[0].assign(fresh)
    rows_agree(pm.TRAINED)
    for ids, targets in batches_of(3):
        step(ids, targets, pm.TRAINED)
    slots = [pm.numpy(each) for each in model.optimizer.variables if each.shape == layer.trainable_rows.shape]
    se.combine_embedding(model)
    rows_agree(pm.TRAINED)
    carried = [pm.numpy(each) for each in model.optimizer.variables if each.shape == layer.embeddings.shape]
    assert len(slots) == len(carried) > 0
    order = [*range(pm.NUM_TOKENS, pm.GROWN), *pm.CHOSEN]
    all_same_bits([np.ascontiguousarray(each[order]) for each in carried], slots)
    model.train_on_batch(GROWN_IDS, pm.targets_of())
    assert int(pm.numpy(model.optimizer.iterations)) == 7


def test_other_arguments_of_compile_are_kept():
    model = pm.make_model("functional")
    model.compile(
        keras.optimizers.Adam(0.1), "mae", metrics=["mse"], run_eagerly=True, steps_per_execution=1, jit_compile=False
    )
    model.train_on_batch(pm.ids_of(), pm.targets_of())
    pm.split_of(model)
    assert model.run_eagerly and model.loss == "mae" and model.compiled
    results = model.evaluate(GROWN_IDS, pm.targets_of(), verbose=0, return_dict=True)
    difference = grown(model)[0] - pm.targets_of()
    np.testing.assert_allclose(results["loss"], np.abs(difference).mean(), rtol=1e-5)
    np.testing.assert_allclose(results["mse"], np.square(difference).mean(), rtol=1e-5)


@pytest.mark.parametrize("left_out", ["bias", "embeddings", "the layer"])
def test_exclusions_from_weight_decay_are_kept(left_out):
    model = pm.make_model("functional")
    layer, bias = pm.embedding_of(model), model.layers[-1].bias
    optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.5)
    named = {"var_list": [layer.embeddings]} if left_out == "the layer" else {"var_names": [left_out]}
    optimizer.exclude_from_weight_decay(**named)
    pm.compiled(model, optimizer)

    def decayed():
        """Return the factors of the rows and the bias in a step without a gradient."""
        bias.assign([4.0])
        rows = pm.rows_of(model)
        model.train_on_batch(pm.ids_of(), pm.targets_of(), sample_weight=np.zeros(6))
        trained = slice(None) if isinstance(layer, layers.Embedding) else layer.to_split().trainable_ids
        return [np.unique(np.round(pm.rows_of(model)[trained] / rows[trained], 4)), pm.numpy(bias) / 4]

    rows, others = (1.0, 0.95) if left_out != "bias" else (0.95, 1.0)
    np.testing.assert_allclose(np.concatenate(decayed()), [rows, others], rtol=1e-3)
    pm.split_of(model)
    np.testing.assert_allclose(np.concatenate(decayed()), [rows, others], rtol=1e-3)
    se.combine_embedding(model)
    np.testing.assert_allclose(np.concatenate(decayed()), [rows, others], rtol=1e-3)


def test_a_loss_scale_optimizer_keeps_its_state():
    model = pm.shake(pm.functional(pm.embedding(dtype="mixed_float16")))
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.05), initial_scale=64.0)
    pm.compiled(model, optimizer)
    model.train_on_batch(pm.ids_of(), pm.targets_of())
    slots = [pm.numpy(each) for each in optimizer.inner_optimizer.variables if each.shape == (pm.NUM_TOKENS, pm.DIM)]
    layer = pm.embedding_of(pm.split_of(model))
    assert type(model.optimizer) is keras.optimizers.LossScaleOptimizer
    inner = model.optimizer.inner_optimizer
    assert int(pm.numpy(inner.iterations)) == 1
    carried = [pm.numpy(each) for each in inner.variables if each.shape == layer.trainable_rows.shape]
    all_same_bits([each[pm.NUM_NEW :] for each in carried], [each[pm.CHOSEN] for each in slots])
    model.train_on_batch(GROWN_IDS, pm.targets_of())


def test_an_optimizer_without_a_config_is_refused_and_nothing_changes():
    class Schedule(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return ops.cast(0.1, "float32")

    model = pm.compiled(pm.make_model("functional"), keras.optimizers.Adam(Schedule()))
    model.train_on_batch(pm.ids_of(), pm.targets_of())
    before, optimizer = pm.outputs_of(model), model.optimizer
    with pytest.raises(SplitError, match="The model's optimizer, Adam, cannot be made again for other variables"):
        pm.split_of(model)
    assert not pm.names_of_ours(model) and model.optimizer is optimizer and model.compiled
    all_same_bits(pm.outputs_of(model), before)
    model.train_on_batch(pm.ids_of(), pm.targets_of())
    assert (pm.rows_of(model)[pm.ids_of()[0]] != pm.table()[pm.ids_of()[0]]).all()


# Tokens and rows


def test_rows_are_in_the_documented_order():
    model = pm.split_of(pm.make_model("functional"))
    split = pm.embedding_of(model).to_split()
    all_same_bits([split.frozen], [pm.table()])
    expected = np.arange(pm.GROWN, dtype=np.int32)
    expected[pm.NUM_TOKENS :] = ~np.arange(pm.NUM_NEW)
    expected[pm.CHOSEN] = ~np.arange(pm.NUM_NEW, len(pm.TRAINED))
    assert split.remap.tolist() == expected.tolist() and split.padding is None and split.vocabulary is None
    assert split.fingerprint == se.split_embedding(pm.make_model("sequential"), [7]).layers[0].to_split().fingerprint


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ([4, 1, 4], [1, 4]),
        (np.isin(np.arange(pm.NUM_TOKENS), [3, 9]), [3, 9]),
        (["w2", 5, "w19"], [2, 5, 19]),
        (range(pm.NUM_TOKENS), list(range(pm.NUM_TOKENS))),
    ],
)
def test_tokens_are_given_as_ids_masks_or_names(chosen, ids):
    words = [f"w{number}" for number in range(pm.NUM_TOKENS)]
    model = se.split_embedding(pm.make_model("functional"), chosen, ["<call>"], vocabulary=words)
    split = pm.embedding_of(model).to_split()
    assert split.trainable_ids.tolist() == [*ids, pm.NUM_TOKENS]
    assert list(split.vocabulary) == [*words, "<call>"] and split.index["<call>"] == pm.NUM_TOKENS


def test_a_number_of_new_tokens_takes_names_from_the_vocabulary():
    words = [f"w{number}" for number in range(pm.GROWN)]
    model = se.split_embedding(pm.make_model("functional"), ["w3"], pm.NUM_NEW, vocabulary=words)
    split = pm.embedding_of(model).to_split()
    assert list(split.vocabulary) == words and split.trainable_ids.tolist() == [3, 20, 21]
    with pytest.raises(UnknownTokenError, match="because the names of the model.s tokens are unknown"):
        se.split_embedding(pm.make_model("functional"), ["w3"])


def test_nothing_to_train_is_refused():
    for chosen in ((), [], np.zeros(pm.NUM_TOKENS, bool)):
        with pytest.raises(SplitError, match="Nothing would train: name `trainable_tokens`, `new_tokens` or both"):
            se.split_embedding(pm.make_model("functional"), chosen)


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        ("mean", np.tile(pm.table().mean(0, dtype=np.float64).astype(np.float32), (pm.NUM_NEW, 1))),
        ("zeros", np.zeros((pm.NUM_NEW, pm.DIM), np.float32)),
        (lambda shape, dtype=None: np.arange(8.0).reshape(shape), np.arange(8, dtype=np.float32).reshape(2, 4)),
        (keras.initializers.Constant(0.5), np.full((pm.NUM_NEW, pm.DIM), 0.5, np.float32)),
        ("ones", np.ones((pm.NUM_NEW, pm.DIM), np.float32)),
    ],
)
def test_new_rows_start_as_the_initializer_says(initializer, expected):
    model = pm.split_of(pm.make_model("functional"), initializer=initializer)
    found = pm.rows_of(model)
    np.testing.assert_allclose(found[pm.NUM_TOKENS :], expected, rtol=0, atol=1e-7)
    all_same_bits([found[: pm.NUM_TOKENS]], [pm.table()])


def test_random_rows_depend_on_the_seed_and_the_table():
    found = [
        pm.rows_of(se.split_embedding(pm.make_model("functional"), (), 4000, "normal", seed=seed))[pm.NUM_TOKENS :]
        for seed in (1, 1, 2)
    ]
    all_same_bits([found[0]], [found[1]])
    assert found[0].tobytes() != found[2].tobytes()
    np.testing.assert_allclose(found[0].mean(0), pm.table().mean(0), atol=0.08)
    np.testing.assert_allclose(found[0].std(0), pm.table().std(0), atol=0.08)


@needs_reversible
def test_new_rows_of_an_untied_layer_are_the_mean_of_each_table():
    model = pm.make_language_model(tie_weights=False)
    layer = pm.embedding_of(model)
    expected = pm.numpy(layer.reverse_embeddings).T.mean(0)
    pm.split_of(model)
    found = layer.reverse_embedding.to_split().combine()[pm.NUM_TOKENS :]
    np.testing.assert_allclose(found, np.tile(expected, (pm.NUM_NEW, 1)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("wrong", ["men", np.zeros((2, 4)), 3, lambda shape, dtype=None: np.zeros((1, 4))])
def test_an_invalid_initializer_is_refused(wrong):
    model = pm.make_model("functional")
    with pytest.raises(SplitError, match="initializer"):
        pm.split_of(model, initializer=wrong)
    assert not pm.names_of_ours(model)


# Repeated splits


def test_a_combined_model_is_split_again():
    model = pm.make_model("functional from a size")
    pm.split_of(model)
    se.combine_embedding(model)
    outputs = grown(model)
    se.split_embedding(model, [0, 21], 3)
    all_same_bits(grown(model), outputs)
    split = pm.embedding_of(model).to_split()
    assert (split.num_tokens, split.num_frozen, split.num_trainable) == (25, 22, 5)
    assert model.vocabulary_size == 25
    se.combine_embedding(model)
    all_same_bits(grown(model), outputs)
    with pytest.raises(SplitError, match="has no SplitEmbedding to combine"):
        se.combine_embedding(model)


def test_two_layers_of_one_model_are_split():
    model = pm.compiled(pm.make_model("positions"), keras.optimizers.Adam(0.1))
    before = pm.outputs_of(model)
    pm.split_of(model)
    se.split_embedding(model, [0, 2], layer="positions")
    all_same_bits(pm.outputs_of(model), before)
    others = pm.values_of(model.get_layer("positions").to_split().frozen for _ in range(1))
    model.train_on_batch(GROWN_IDS, pm.targets_of())
    positions = model.get_layer("positions").to_split()
    all_same_bits([positions.frozen], others)
    moved = (positions.combine() != positions.frozen).any(1)
    assert np.flatnonzero(moved).tolist() == [0, 2]
    outputs = grown(model)
    se.combine_embedding(model)
    assert not pm.names_of_ours(model)
    all_same_bits(grown(model), outputs)
    assert int(pm.numpy(model.optimizer.iterations)) == 1


def test_a_split_layer_is_put_on_a_changed_split():
    model = pm.split_of(pm.make_model("functional"))
    layer = pm.embedding_of(model)
    outputs = grown(model)
    model = se.replace_split(model, layer, layer.to_split().thaw([7]).grow(1, seed=0))
    all_same_bits(grown(model), outputs)
    se.combine_embedding(model)
    all_same_bits(grown(model), outputs)
    assert pm.embedding_of(model).input_dim == pm.GROWN + 1 and not pm.names_of_ours(model)


def test_a_layer_that_was_never_plain_is_combined():
    split = se.SplitTable.from_matrix(pm.table(), pm.CHOSEN)
    model = pm.functional(SplitEmbedding(split, name=pm.TOKENS))
    before = pm.outputs_of(model)
    se.combine_embedding(model)
    assert type(pm.embedding_of(model)) is layers.Embedding and pm.embedding_of(model).trainable
    all_same_bits(pm.outputs_of(model), before)


def test_a_layer_with_a_combiner_is_not_combined():
    split = se.SplitTable.from_matrix(pm.table(), pm.CHOSEN)
    ids = keras.Input((pm.LENGTH,), dtype="int32")
    model = keras.Model(ids, SplitEmbedding(split, combiner="mean", name=pm.TOKENS)(ids))
    with pytest.raises(SplitError, match="'tokens' combines rows"):
        se.combine_embedding(model)
    assert isinstance(pm.embedding_of(model), SplitEmbedding)


# Memory


@on_tensorflow
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_table_is_not_copied(dtype):
    layer = layers.Embedding(512, 16, dtype=dtype)
    layer.build()
    address = np.asarray(memoryview(_bits(layer.embeddings.value.read_value()))).ctypes.data
    se.split_embedding(layer, [3], 2)
    assert layer.to_split().frozen.ctypes.data == address
    held = layer._constants.frozen.read_value()
    assert np.asarray(memoryview(_bits(held))).ctypes.data == address


def _bits(tensor):
    import tensorflow as tf

    return tf.bitcast(tensor, tf.uint16) if tensor.dtype == tf.bfloat16 else tensor


def test_nothing_holds_the_old_variable_and_its_slots():
    model = pm.compiled(pm.make_model("model in a model"), keras.optimizers.Adam(0.1))
    model.train_on_batch(pm.ids_of(), pm.targets_of())
    model.predict(pm.ids_of(), verbose=0)
    shape = (pm.NUM_TOKENS, pm.DIM)
    old = [weakref.ref(each) for each in [*model.variables, *model.optimizer.variables] if tuple(each.shape) == shape]
    assert len(old) == 3
    pm.split_of(model)
    gc.collect()
    assert not [each().path for each in old if each() is not None]
    split = [weakref.ref(each) for each in pm.embedding_of(model).weights]
    se.combine_embedding(model)
    gc.collect()
    assert not [each().path for each in split if each() is not None]


@on_tensorflow
@pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is Linux's")
def test_a_table_of_200_MB_is_neither_copied_nor_read():
    found = run_fresh("""
import os
import splitembed as se, keras, numpy as np

# in MB
def resident(kind="RssAnon"):
    line = next(line for line in open("/proc/self/status") if line.startswith(kind))
    return int(line.split()[1]) / 1024

def model_of(num_tokens):
    ids = keras.Input((8,), dtype="int32")
    layer = keras.layers.Embedding(num_tokens, 100, embeddings_initializer="zeros")
    return keras.Model(ids, layer(ids))

def trained(model):
    model.compile("sgd", "mse", run_eagerly=True)
    model.train_on_batch(np.arange(8)[None], np.ones((1, 8, 100)))

# the memory that TensorFlow takes at first use
trained(se.split_embedding(model_of(9), [1], 2, "zeros"))
model = model_of(500_000)
before = resident()
se.split_embedding(model, [5, 499_999], 10, "zeros")
trained(model)
print("MB", resident() - before)
""")
    grown_by = float(found.split("MB")[-1])
    assert grown_by < 20


# Ids of new tokens, and what does not know them


def reader(num_rows, *, head=0):
    ids = keras.Input((None,), dtype="int32")
    rows = keras.layers.Embedding(num_rows, 4, name="embedding")(ids)
    return keras.Model(ids, keras.layers.Dense(head or 3, name="head")(rows))


def test_new_tokens_use_the_reserved_rows_of_a_table_first():
    model = reader(8)
    table = pm.numpy(model.get_layer("embedding").embeddings)
    names = ["<pad>", "<unk>", "the", "cat", "sat"]
    se.split_embedding(model, ["cat"], ["<call>"], initializer="zeros", vocabulary=names)
    split = model.get_layer("embedding").to_split()
    assert split.num_tokens == 8 and split.trainable_ids.tolist() == [3, 5]
    assert not split.lookup(5).any()
    np.testing.assert_array_equal(np.delete(split.combine(), 5, 0), np.delete(table, 5, 0))


def test_rows_of_new_tokens_in_and_after_the_table_differ():
    model = reader(6)
    new = {"<a>": 5, "<b>": 6, "<c>": 7}
    se.split_embedding(model, new_tokens=new, initializer="uniform", seed=0)
    split = model.get_layer("embedding").to_split()
    assert split.num_tokens == 8 and split.trainable_ids.tolist() == [5, 6, 7]
    assert len(np.unique(split.lookup([5, 6, 7]), axis=0)) == 3


def test_slots_of_reserved_rows_start_again():
    model = reader(6)
    model.compile(keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.25), "mse")
    model.train_on_batch(np.arange(6)[None], np.zeros((1, 6, 3)))
    old = pm.numpy(model.optimizer._accumulators[0])
    se.split_embedding(model, [2], {"<new>": 5})
    slots = pm.numpy(model.optimizer._accumulators[0])
    np.testing.assert_array_equal(slots, [old[2], np.full(4, 0.25)])


def test_a_head_without_outputs_for_new_tokens_gives_a_warning():
    with pytest.warns(
        NewTokenWarning, match="reads the new tokens and never predicts them: its layer 'head' .* 6 tokens"
    ):
        se.split_embedding(reader(6, head=6), new_tokens=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NewTokenWarning)
        se.split_embedding(reader(6, head=3), new_tokens=2)
        se.split_embedding(reader(6, head=6), [1])
        # a reserved row has an output
        se.split_embedding(reader(6, head=6), new_tokens={"<new>": 5})


@pytest.mark.parametrize("tied", [True, False])
def test_new_tokens_start_like_others(tied):
    if pm.REVERSIBLE is None:
        model, tables = reader(6), 1
    else:
        ids = keras.Input((None,), dtype="int32")
        layer = pm.REVERSIBLE(6, 4, tie_weights=tied, name="embedding")
        model, tables = keras.Model(ids, layer(layer(ids), reverse=True)), 1 if tied else 2
    names = ["a", "b", "c", "d", "e", "f"]
    like = {"<x>": ["b", "c"], 7: [0, 0, 5]}
    se.split_embedding(model, new_tokens=["<x>", "<y>"], like=like, vocabulary=names)
    layer = model.get_layer("embedding")
    for split in [layer.to_split(), layer.reverse_embedding.to_split()] if tables == 2 else [layer.to_split()]:
        rows = split.combine()
        np.testing.assert_allclose(rows[6:], [rows[[1, 2]].mean(0), rows[[0, 0, 5]].mean(0)], rtol=1e-6)
    for wrong, message in (({"a": ["b"]}, "new tokens. Received: 'a'; the new ones are '<x>' .id 6."), ([1], "a dict")):
        with pytest.raises(SplitError, match=message):
            se.split_embedding(reader(6), new_tokens=["<x>"], like=wrong, vocabulary=names)
