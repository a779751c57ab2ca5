"""Initial rows: statistics, seeds, the rows read of a large reference, and refused arguments."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError
from splitembed.initializers.by_name import MAX_REFERENCE_ROWS, initialize_rows
from splitembed.vectors import WordVectors
from splitembed.words import Words

ROOT = Path(__file__).parents[2]
NAMES = ["zeros", "uniform", "normal", "mean"]


def reference_rows(num_rows=500):
    generator = np.random.default_rng(3)
    return generator.normal([1.0, -2.0, 0.0, 5.0], [0.1, 2.0, 1.0, 0.01], (num_rows, 4)).astype(np.float32)


@given(st.sampled_from(NAMES), st.integers(0, 5), st.integers(1, 5), st.integers(0, 2**32))
def test_rows_are_finite_float32_of_the_given_shape_and_follow_the_seed(name, num_rows, dim, seed):
    reference = np.random.default_rng(seed).standard_normal((3, dim)).astype(np.float32)
    rows = initialize_rows(name, num_rows, dim, reference=reference, seed=seed)
    assert (rows.dtype, rows.shape) == (np.float32, (num_rows, dim))
    assert np.isfinite(rows).all()
    assert rows.flags.writeable
    np.testing.assert_array_equal(rows, initialize_rows(name, num_rows, dim, reference=reference, seed=seed))


def test_zeros_are_zero_and_mean_is_the_mean_in_float64():
    reference = reference_rows()
    assert not initialize_rows("zeros", 3, 4).any()
    mean = reference.astype(np.float64).mean(axis=0).astype(np.float32)
    np.testing.assert_array_equal(initialize_rows("mean", 3, 4, reference=reference), np.tile(mean, (3, 1)))


def test_uniform_fills_the_range_of_keras_embedding():
    rows = initialize_rows("uniform", 20_000, 2, seed=1)
    assert -0.05 <= rows.min() < -0.0499
    assert 0.0499 < rows.max() <= 0.05
    # Standard error of the mean: 0.1 / sqrt(12 * 20,000) = 0.0002; five of them.
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=0.001)


def test_normal_matches_each_dimension_of_the_reference():
    reference = reference_rows()
    rows = initialize_rows("normal", 40_000, 4, reference=reference, seed=1)
    spread = reference.std(axis=0)
    # Standard errors over 40,000 rows: 0.5 % of the spread for the mean, 0.35 % for the spread; four of them.
    np.testing.assert_array_less(np.abs(rows.mean(axis=0) - reference.mean(axis=0)), 0.02 * spread)
    np.testing.assert_allclose(rows.std(axis=0), spread, rtol=0.015)
    columns = np.corrcoef(rows.T) - np.eye(4)
    assert np.abs(columns).max() < 0.03


def test_statistics_are_computed_in_float64():
    # float32 sums of these are wrong in the third digit.
    reference = np.full((60_000, 1), 1000.1, np.float32)
    assert initialize_rows("mean", 1, 1, reference=reference)[0, 0] == np.float32(1000.1)
    np.testing.assert_allclose(initialize_rows("normal", 9, 1, reference=reference, seed=0), 1000.1, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ">f4"])
def test_a_reference_can_have_any_float_dtype(dtype):
    reference = np.array([[1, 2], [3, 6]], dtype)
    assert initialize_rows("mean", 1, 2, reference=reference).tolist() == [[2, 4]]


def test_a_reference_can_be_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    reference = np.array([[1, 2], [3, 6]], ml_dtypes.bfloat16)
    assert initialize_rows("mean", 1, 2, reference=reference).tolist() == [[2, 4]]


class Watched:
    """An array that records the rows read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.read = array, array.shape, array.dtype, []

    def __len__(self):
        return len(self.array)

    def __getitem__(self, key):
        self.read.append(key)
        return self.array[key]


@pytest.mark.parametrize("num_rows", [1, MAX_REFERENCE_ROWS, MAX_REFERENCE_ROWS + 1, 200_000])
def test_at_most_65536_evenly_spaced_rows_are_read(num_rows):
    reference = Watched(np.arange(num_rows, dtype=np.float64).reshape(-1, 1))
    initialize_rows("mean", 1, 1, reference=reference)
    (key,) = reference.read
    rows = np.arange(num_rows)[key]
    assert min(num_rows, MAX_REFERENCE_ROWS // 2) < len(rows) + 1 <= MAX_REFERENCE_ROWS + 1
    assert len(set(np.diff(rows))) <= 1
    assert rows[0] == 0
    assert num_rows - rows[-1] <= key.step


def test_only_sampled_rows_of_a_memory_map_count(tmp_path):
    reference = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (3 * MAX_REFERENCE_ROWS, 2))
    reference[:] = np.inf
    reference[::3] = [1.0, 2.0]
    assert initialize_rows("mean", 1, 2, reference=reference).tolist() == [[1, 2]]
    np.testing.assert_array_equal(initialize_rows("normal", 2, 2, reference=reference, seed=0), [[1, 2], [1, 2]])


@pytest.mark.parametrize("name", ["normal", "mean"])
def test_N3_rows_that_are_not_finite_are_ignored(name):
    clean = reference_rows(20)
    dirty = np.insert(clean, [0, 7, 7], [[np.nan, 0, 0, 0], [0, np.inf, 0, 0], [0, 0, 0, -np.inf]], axis=0)
    expected = initialize_rows(name, 3, 4, reference=clean, seed=5)
    np.testing.assert_array_equal(initialize_rows(name, 3, 4, reference=dirty, seed=5), expected)


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_seeds_and_successive_draws_give_different_rows(name):
    reference = reference_rows()
    first, second = (initialize_rows(name, 5, 4, reference=reference, seed=seed) for seed in (1, 2))
    assert (first != second).all()
    generator = np.random.default_rng(1)
    np.testing.assert_array_equal(initialize_rows(name, 5, 4, reference=reference, seed=generator), first)
    assert (initialize_rows(name, 5, 4, reference=reference, seed=generator) != first).all()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (None, "needs `reference` rows. Received: none. Use"),
        (np.empty((0, 2), np.float32), "Received: none"),
        (np.full((3, 2), np.nan, np.float32), "NaN or infinity in each of the 3 rows read"),
        (
            np.zeros((3, 4), np.float32),
            r"floats of shape \(num_reference, 2\). Received: shape \(3, 4\)",
        ),
        (np.zeros(2, np.float32), r"Received: shape \(2,\), dtype float32"),
        (np.zeros((3, 2), np.int8), "dtype int8"),
    ],
)
def test_invalid_references_are_refused(reference, message):
    with pytest.raises(SplitError, match=message):
        initialize_rows("mean", 1, 2, reference=reference)


def test_statistics_beyond_float32_are_refused():
    with pytest.raises(SplitError, match="The initializer 'normal' must return values that are finite in float32"):
        initialize_rows("normal", 100, 1, reference=np.array([[-1e38], [3e38], [3e38]], np.float32) * 1.1, seed=0)


def test_zero_rows_need_no_reference():
    assert initialize_rows("normal", 0, 3).shape == (0, 3)


@pytest.mark.parametrize(("num_rows", "dim"), [(-1, 2), (2, 0)])
def test_invalid_shapes_are_refused(num_rows, dim):
    with pytest.raises(SplitError, match=rf"Received: \({num_rows}, {dim}\)"):
        initialize_rows("zeros", num_rows, dim)


# Callables and Keras


def test_a_callable_is_given_shape_and_dtype_and_its_array_is_copied():
    made = np.arange(6, dtype=np.float32).reshape(2, 3)
    rows = initialize_rows(lambda shape, dtype=None: made if (shape, dtype) == ((2, 3), "float32") else None, 2, 3)
    np.testing.assert_array_equal(rows, made)
    assert rows.dtype == np.float32
    assert not np.shares_memory(rows, made)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros((3, 2)), r"must return numbers of shape \(2, 3\). Received: shape \(3, 2\), dtype float64"),
        (np.zeros(3), r"Received: shape \(3,\)"),
        (0.0, r"Received: shape \(\)"),
        (np.zeros((2, 3), complex), "dtype complex128"),
        (np.full((2, 3), "0"), "dtype <U1"),
        (np.full((2, 3), 1e300), "must return values that are finite in float32"),
    ],
)
def test_invalid_results_are_refused(result, message):
    with pytest.raises(SplitError, match=message):
        initialize_rows(lambda shape, dtype: result, 2, 3)


@pytest.mark.parametrize("initializer", [None, 3, np.zeros((2, 3)), {"class_name": "Zeros"}])
def test_other_types_are_refused(initializer):
    with pytest.raises(SplitError, match=f"must be a name or a callable .* Received: {type(initializer).__name__}."):
        initialize_rows(initializer, 2, 3)


def test_keras_objects_keep_their_seed():
    import keras

    initializer = keras.initializers.GlorotNormal(seed=11)
    rows = initialize_rows(initializer, 6, 4, seed=1)
    np.testing.assert_array_equal(rows, keras.ops.convert_to_numpy(initializer((6, 4), dtype="float32")))
    np.testing.assert_array_equal(rows, initialize_rows(initializer, 6, 4, seed=2))
    assert rows.flags.writeable


@pytest.mark.parametrize("name", ["glorot_uniform", "RandomNormal", "identity"])
def test_names_of_keras_follow_the_given_seed(name):
    first, again, other = (initialize_rows(name, 6, 4, seed=seed) for seed in (1, 1, 2))
    assert (first.dtype, first.shape) == (np.float32, (6, 4))
    np.testing.assert_array_equal(first, again)
    assert (first == other).all() == (name == "identity")


def test_a_name_of_keras_draws_from_the_generator():
    generator = np.random.default_rng(1)
    assert (
        initialize_rows("he_normal", 6, 4, seed=generator) != initialize_rows("he_normal", 6, 4, seed=generator)
    ).any()


@pytest.mark.parametrize("name", ["glorot", "", "constant"])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(SplitError, match=f"must be a known name, or an object. Received: '{name}'. Names: ") as caught:
        initialize_rows(name, 0, 4)
    names = str(caught.value).partition("Names: ")[2].partition(".")[0].split(", ")
    assert {*NAMES, "subwords", "ngrams", "glorot_uniform", "he_normal"} <= set(names)
    assert name not in names
    for known in set(names) - {"constant"}:
        initialize_rows(known, 0, 4)


def test_a_class_is_refused():
    import keras

    with pytest.raises(SplitError, match=r"must be an instance. Received: the class HeNormal. Pass HeNormal\(\.\.\.\)"):
        initialize_rows(keras.initializers.HeNormal, 2, 3)


def test_names_of_this_package_do_not_import_keras():
    code = """
import sys
from splitembed.initializers.by_name import initialize_rows
for name in ("zeros", "uniform", "normal", "mean"):
    initialize_rows(name, 2, 1, reference=[[1.0]])
initialize_rows(lambda shape, dtype: [[1.0], [2.0]], 2, 1)
print("loaded:", *{"keras", "tensorflow"} & sys.modules.keys())"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("loaded:\n", "")


# Initializers that use the tokens


class Lengths:
    """Rows of the length of the token, whether words are known, and a random number."""

    def make_rows(self, tokens, known, generator):
        return np.array([[len(token), known is not None, generator.random()] for token in tokens])


def test_an_object_makes_rows_from_tokens():
    rows = initialize_rows(Lengths(), ["a", "the"], 3, seed=4)
    assert rows.dtype == np.float32 and rows[:, :2].tolist() == [[1, 0], [3, 0]]
    np.testing.assert_array_equal(rows, initialize_rows(Lengths(), ("a", "the"), 3, seed=4))
    assert (rows[:, 2] != initialize_rows(Lengths(), ["a", "the"], 3, seed=5)[:, 2]).all()
    known = WordVectors(["of"], np.ones((1, 3), np.float32))
    assert initialize_rows(Lengths(), ["a"], 3, known=known)[0, 1] == 1


@pytest.mark.parametrize("name", ["uniform", "glorot_uniform"])
def test_other_initializers_accept_tokens_or_their_number(name):
    rows = initialize_rows(name, 3, 4, seed=1)
    for tokens in (["a", "b", "c"], ("a", "b", "c"), Words.from_list("abc"), np.int64(3)):
        np.testing.assert_array_equal(initialize_rows(name, tokens, 4, seed=1), rows)


@pytest.mark.parametrize("initializer", ["subwords", "ngrams", Lengths()])
def test_zero_tokens_need_no_known_words(initializer):
    assert initialize_rows(initializer, [], 3).shape == initialize_rows(initializer, 0, 3).shape == (0, 3)


@pytest.mark.parametrize("tokens", ["the", b"the"])
def test_a_string_in_place_of_tokens_is_refused(tokens):
    with pytest.raises(SplitError, match="must be a sequence of tokens, or their number. Received: b?'the'"):
        initialize_rows("zeros", tokens, 3)


def test_rows_made_from_tokens_are_checked():
    class Wrong:
        def __init__(self, rows):
            self.rows = rows

        def make_rows(self, tokens, known, generator):
            return self.rows

    with pytest.raises(SplitError, match=r"must return numbers of shape \(1, 2\). Received: shape \(2, 1\)"):
        initialize_rows(Wrong(np.zeros((2, 1))), ["a"], 2)
    with pytest.raises(SplitError, match="must return values that are finite in float32"):
        initialize_rows(Wrong(np.full((1, 2), np.nan)), ["a"], 2)
    with pytest.raises(SplitError, match=r"must be an instance. Received: the class Wrong. Pass Wrong\(\.\.\.\)"):
        initialize_rows(Wrong, ["a"], 2)


@pytest.mark.parametrize("seed", [-1, 1.5, "x"])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(SplitError, match=r"`seed` must be an integer, 0 or more.* Received: "):
        initialize_rows("uniform", 1, 1, seed=seed)
