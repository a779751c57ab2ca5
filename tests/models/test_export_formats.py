"""ONNX and TFLite by `model.export`, run by their own runtimes: each id gets its own row."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import SplitEmbedding, SplitTable
from splitembed.errors import SplitEmbedError

NUM_TOKENS, DIM = 50, 4
# float32: the runtimes sum in another order
TOLERANCE = 1e-5
FILES = {"onnx": "model.onnx", "litert": "model.tflite"}


@pytest.fixture(params=FILES)
def form(request) -> str:
    pytest.importorskip("keras.src.export.onnx", reason="this Keras exports to SavedModel alone")
    for module in ("tf2onnx", "onnxruntime") if request.param == "onnx" else ("ai_edge_litert",):
        pytest.importorskip(module)
    return request.param


def run_file(path):
    """Load a file in the runtime of its format, and return a function from ids to the output."""
    if path.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(path)
        return lambda ids: session.run(None, {session.get_inputs()[0].name: ids})[0]
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_path=str(path)).get_signature_runner()
    (name,) = runner.get_input_details()
    return lambda ids: next(iter(runner(**{name: ids}).values()))


def exported(model: keras.Model, form: str, folder):
    path = folder / FILES[form]
    model.export(path, format=form, verbose=False)
    return run_file(path)


def make_split(dtype: str = "float32", trainable_ids=(1, 4, 7), num_tokens: int = NUM_TOKENS) -> SplitTable:
    matrix = np.random.default_rng(0).normal(size=(num_tokens, DIM)).astype(np.float32)
    matrix[0] = 0
    padding = None if 0 in trainable_ids else 0
    return SplitTable.from_matrix(matrix, trainable_ids, padding=padding).with_frozen_dtype(dtype)


def make_model(layer: SplitEmbedding, length: int | None = None, dtype: str | None = "int32") -> keras.Model:
    """Make a model that pools, if the layer does not, with a Dense, and call it once, which ONNX needs."""
    ids = keras.Input((length,), dtype=dtype)
    rows = layer(ids)
    rows = rows if layer.combiner else keras.layers.GlobalAveragePooling1D()(rows)
    model = keras.Model(ids, keras.layers.Dense(3)(rows))
    model(np.ones((1, length or 1), dtype or "float32"))
    return model


def make_ids(dtype: str = "int32", num_tokens: int = NUM_TOKENS) -> np.ndarray:
    ids = np.random.default_rng(1).integers(1, num_tokens, (3, 6))
    ids[1, :2], ids[2, :3] = 0, (1, 4, 7)
    return ids.astype(dtype)


def check(model: keras.Model, run, ids: np.ndarray, wrong: list) -> None:
    """Assert the right output for ids, and NaN for an example with a wrong id, without a change of the others."""
    expected = model.predict(ids, verbose=0)
    np.testing.assert_allclose(run(ids), expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(run(ids[:1]), expected[:1], rtol=0, atol=TOLERANCE)
    for value in wrong:
        spoiled = ids.copy()
        spoiled[0, 2] = value
        found = run(spoiled)
        assert np.isnan(found[0]).all(), f"id {value} gave {found[0]}"
        np.testing.assert_allclose(found[1:], expected[1:], rtol=0, atol=TOLERANCE)


INT32 = np.iinfo(np.int32)
WRONG = [-1, NUM_TOKENS, INT32.max, INT32.min]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_S5_layer_pooling_and_dense_give_the_same_outputs(form, tmp_path, dtype):
    model = make_model(SplitEmbedding(make_split(dtype), mask_zero=True))
    check(model, exported(model, form, tmp_path), make_ids(), WRONG)


@pytest.mark.parametrize(
    ("trainable_ids", "options", "length"),
    [
        ((1, 4, 7), {"combiner": "mean", "mask_zero": True}, None),
        ((1, 4, 7), {"lookup": "static"}, 6),
        ((1, 4, 7), {"trainable_dropout": 0.9, "seed": 0}, None),
        ((), {}, None),
        (range(NUM_TOKENS), {}, None),
    ],
)
def test_every_kind_of_layer_is_exported(form, tmp_path, trainable_ids, options, length):
    model = make_model(SplitEmbedding(make_split(trainable_ids=trainable_ids), **options), length)
    check(model, exported(model, form, tmp_path), make_ids(), WRONG)


@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [
        ("int64", [-1, NUM_TOKENS, 2**32 + 1, 1 - 2**32, 2**63 - 1]),
        ("uint8", [NUM_TOKENS, 255]),
        ("float32", [1.5, -1, NUM_TOKENS, 2.0**32 + 1, np.inf, np.nan]),
    ],
)
def test_ids_of_other_dtypes_are_exported(form, tmp_path, dtype, wrong):
    model = make_model(SplitEmbedding(make_split()), dtype=dtype)
    check(model, exported(model, form, tmp_path), make_ids(dtype), wrong)


def test_a_trained_model_is_exported_as_trained(form, tmp_path):
    model = make_model(SplitEmbedding(make_split(), mask_zero=True))
    model.compile("adam", "mse")
    model.fit(make_ids(), np.ones((3, 3)), epochs=3, verbose=0)
    check(model, exported(model, form, tmp_path), make_ids(), WRONG)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_file_holds_the_tables_once(form, tmp_path, dtype):
    split = make_split(dtype, num_tokens=200_000)
    model = make_model(SplitEmbedding(split))
    run = exported(model, form, tmp_path)
    check(model, run, make_ids(num_tokens=200_000), [-1, 200_000])
    tables = split.frozen.nbytes + split.remap.nbytes + (0 if split.scale is None else split.scale.nbytes)
    assert tables < (tmp_path / FILES[form]).stat().st_size < 1.01 * tables + 20_000


def test_later_calls_and_exports_look_up_as_before(form, tmp_path):
    """A later SavedModel checks ids, and has no table in another precision."""
    split = make_split("float16", num_tokens=20_000)
    model = make_model(SplitEmbedding(split))
    exported(model, form, tmp_path)
    model.export(tmp_path / "saved", verbose=False)
    assert sum(path.stat().st_size for path in (tmp_path / "saved" / "variables").iterdir()) < 2 * split.frozen.nbytes
    saved = tf.saved_model.load(tmp_path / "saved")
    with pytest.raises(tf.errors.InvalidArgumentError, match="20000 is out of range"):
        saved.serve(tf.constant([[20_000]]))


def from_keras_model(model: keras.Model, path) -> None:
    path.write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())


def from_function(model: keras.Model, path) -> None:
    import tf2onnx
    from keras.src.export.tf2onnx_lib import patch_tf2onnx

    # needed with NumPy 2; Keras calls it too
    patch_tf2onnx()
    signature = [tf.TensorSpec((None, None), tf.int32)]
    tf2onnx.convert.from_function(tf.function(model), signature, output_path=path)


def test_calling_the_converters_directly_gives_the_same(form, tmp_path):
    model = make_model(SplitEmbedding(make_split(), mask_zero=True))
    path = tmp_path / FILES[form]
    {"onnx": from_function, "litert": from_keras_model}[form](model, path)
    check(model, run_file(path), make_ids(), WRONG)


def test_a_dynamic_lookup_is_not_exported(form, tmp_path):
    model = make_model(SplitEmbedding(make_split(), lookup="dynamic"))
    with pytest.raises(SplitEmbedError, match='no dynamic lookup.*leave `lookup` at "auto"'):
        exported(model, form, tmp_path)
    assert not (tmp_path / FILES[form]).exists()


@pytest.mark.parametrize("kind", ["Keras's", "split"])
def test_a_model_must_have_run_before_it_is_exported_to_onnx(kind, tmp_path):
    # a rule of Keras for every model, which the README states
    pytest.importorskip("keras.src.export.onnx", reason="this Keras exports to SavedModel alone")
    pytest.importorskip("tf2onnx")
    ids = keras.Input((4,), dtype="int32")
    matrix = np.ones((NUM_TOKENS, DIM), np.float32)
    layer = keras.layers.Embedding(NUM_TOKENS, DIM)
    if kind == "split":
        layer = SplitEmbedding(SplitTable.from_matrix(matrix, [1]))
    model = keras.Model(ids, layer(ids))
    with pytest.raises(ValueError, match="has never called"):
        model.export(tmp_path / "m.onnx", format="onnx", verbose=False)
    model.predict(np.zeros((1, 4), np.int32), verbose=0)
    model.export(tmp_path / "m.onnx", format="onnx", verbose=False)
