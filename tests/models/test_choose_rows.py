"""The choice of frozen rows to train: by the stated formulas, on a problem whose answer is known, and its errors."""

import keras
import numpy as np
import pytest

import splitembed as se
from splitembed.errors import SplitError
from splitembed.models import choose_rows as module
from splitembed.models.choose_rows import SCORES, best_rows, choose_rows
from splitembed.models.row_gradients import RowGradients

DIM, EXAMPLES = 4, 400
VOCABULARY = ["", "[UNK]", "the", "of", "good", "bad", "fine", "never"]
NAMES = {name: number for number, name in enumerate(VOCABULARY)}


def problem():
    """Return a model in which the vectors of good and bad are the same, so that only training can tell them apart."""
    vectors = {name: np.ones(DIM) for name in VOCABULARY[2:]}
    split = se.build_split(VOCABULARY, vectors, seed=0)
    ids = keras.Input((None,), dtype="int32")
    mean = keras.layers.GlobalAveragePooling1D()(se.SplitEmbedding(split, mask_zero=True, name="words")(ids))
    model = keras.Model(ids, keras.layers.Dense(1, kernel_initializer="ones")(mean))
    model.compile(se.LazyAdam(0.01), "mse")
    generator = np.random.default_rng(0)
    words = np.array([NAMES["good"], NAMES["bad"], NAMES["fine"]])
    picked = generator.choice(3, EXAMPLES, p=[0.3, 0.3, 0.4])
    # every text has five common words, and one that decides
    x = np.stack([np.full(EXAMPLES, NAMES["the"])] * 3 + [np.full(EXAMPLES, NAMES["of"])] * 2 + [words[picked]], axis=1)
    model.layers[-1].bias.assign([-4.0])
    return model, (x.astype(np.int32), np.float32([1.0, -1.0, 0.0])[picked][:, None])


@pytest.mark.parametrize("method", ["consistency", "gain"])
def test_the_words_that_decide_come_first(method):
    model, data = problem()
    ids = se.choose_rows(model, "words", data, 2, method=method)
    assert ids.dtype == np.int64 and set(ids) == {NAMES["good"], NAMES["bad"]}
    layer = model.get_layer("words")
    before = layer.to_split().num_trainable
    se.replace_split(model, layer, layer.to_split().thaw(ids))
    assert layer.num_trainable == before + 2


def test_only_frozen_tokens_that_occur_are_chosen():
    model, (x, y) = problem()
    x[:, 0], x[:, 1] = 0, NAMES["[UNK]"]
    ids = choose_rows(model, None, (x, y), 100)
    assert sorted(ids) == [NAMES[name] for name in ("the", "of", "good", "bad", "fine")]
    np.testing.assert_array_equal(ids[:3], choose_rows(model, model.get_layer("words"), (x, y), 3))


def test_other_tokens_can_be_chosen_from():
    model, (x, y) = problem()
    x[::2, 0], x[:, 1] = NAMES["[UNK]"], 0
    split = model.get_layer("words").to_split()
    assert choose_rows(model, "words", (x, y), 100, tokens=split.remap < 0).tolist() == [NAMES["[UNK]"]]
    assert set(choose_rows(model, "words", (x, y), 100, tokens=["", "of", "good", "never"])) == {3, 4}


def test_scores_have_the_stated_formulas():
    counts = np.array([0, 4, 1, 100, 9, 9])
    summed, squares = np.array([9, 8, 1.5, 30, 0, 0]), np.array([1, 4, 1, 400, 0, 0.0])
    gradients = RowGradients(counts, summed, squares)
    # 2, 1.5, 0.075, 0 and 0; equal scores in the order of the ids
    assert best_rows(gradients, SCORES["consistency"], 10).tolist() == [1, 2, 3, 4, 5]
    # 4, 1.5, 1.5, 0 and 0
    assert best_rows(gradients, SCORES["gain"], 10).tolist() == [1, 2, 3, 4, 5]
    summed[3] = 40
    assert best_rows(gradients, SCORES["gain"], 2).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "`budget` must be an integer, 1 or more. Received: 0."),
        ({"budget": True}, "`budget` must be an integer, 1 or more. Received: True."),
        ({"budget": 2.5}, "Received: 2.5."),
        ({"method": "frequency"}, "`method` must be one of 'gain', 'consistency'. Received: 'frequency'."),
        ({"layer": "rows"}, "Expected one that is or is named 'rows'"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    model, data = problem()
    options = {"layer": "words", "budget": 1, **options}
    with pytest.raises(SplitError, match=message.replace("(", r"\(")):
        choose_rows(model, options.pop("layer"), data, **options)


def test_a_model_that_is_not_compiled_is_refused():
    model, data = problem()
    model = keras.Model(model.inputs, model.outputs, name="bare")
    with pytest.raises(SplitError, match="`model` must be compiled, with the loss that it trains on. Received: 'bare'"):
        choose_rows(model, "words", data, 1)


def test_another_backend_is_refused(monkeypatch):
    model, data = problem()
    monkeypatch.setattr(module.keras.backend, "backend", lambda: "jax")
    with pytest.raises(SplitError, match="choose_rows needs the backend TensorFlow. Keras runs on jax."):
        choose_rows(model, "words", data, 1)
