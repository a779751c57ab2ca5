"""Exports: a dense layer, the trainable table alone, and models that run without splitembed."""

import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import SplitEmbedding, SplitReversibleEmbedding, SplitTable, save_trainable, tables, to_dense
from splitembed.errors import MissingTableError, SplitError, TableFormatError
from tests.helpers.bits import same_bits
from tests.helpers.fresh import run_fresh
from tests.helpers.models import IDS, TARGETS, WORDS, embeddings_in, functional, make_split, sequential


@pytest.fixture(scope="module")
def model() -> keras.Model:
    """Train a model for some steps, so that its rows differ from those of the split."""
    model = functional(SplitEmbedding(make_split(), mask_zero=True, name="tokens"))
    model.compile("sgd", "mse")
    model.fit(IDS, TARGETS, verbose=0)
    return model


@pytest.fixture(scope="module")
def layer(model) -> SplitEmbedding:
    return embeddings_in(model)[0]


def test_dense_layer_has_the_trained_rows(layer):
    dense = to_dense(layer)
    assert type(dense) is keras.layers.Embedding and dense.name == "tokens" and dense.mask_zero
    same_bits(dense(IDS), layer(IDS))
    same_bits(dense.get_weights()[0], layer.to_split().combine())
    # the rows are a copy
    dense.set_weights([np.zeros((6, 3))])
    assert (layer(IDS).numpy() != 0).any()


def test_dense_layer_of_a_split():
    dense = to_dense(make_split())
    same_bits(dense(IDS), make_split().lookup(IDS))
    assert not dense.mask_zero


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_dense_layer_of_low_precision_is_widened(dtype):
    layer = SplitEmbedding(make_split().with_frozen_dtype(dtype))
    assert to_dense(layer).variable_dtype == "float32"
    same_bits(to_dense(layer)(IDS), layer(IDS))
    same_bits(to_dense(layer.to_split()).get_weights()[0], layer.to_split().combine())


def test_dense_layer_keeps_the_dtype_policy(layer):
    mixed = SplitEmbedding(layer.to_split(), dtype="mixed_float16")
    assert to_dense(mixed).dtype_policy.name == "mixed_float16"
    same_bits(to_dense(mixed)(IDS), mixed(IDS))


def test_dense_layer_predicts_the_same_in_the_model(model, layer):
    """The mask is used too: the average excludes padding."""
    dense = functional(to_dense(layer))
    dense.layers[-1].set_weights(model.layers[-1].get_weights())
    np.testing.assert_allclose(dense(IDS), model(IDS), rtol=0, atol=1e-6)


def test_a_layer_with_a_combiner_is_refused():
    layer = SplitEmbedding(make_split(), combiner="mean", name="bags")
    with pytest.raises(SplitError, match=r"'bags' combines rows \('mean'\).*Pass layer.to_split\(\)"):
        to_dense(layer)
    same_bits(to_dense(layer.to_split())(IDS), make_split().lookup(IDS))


def test_trainable_table_alone(layer, tmp_path):
    for given in (layer, layer.to_split()):
        save_trainable(tmp_path / "trainable.h5", given)
        assert [path.name for path in tmp_path.iterdir()] == ["trainable.h5"]
        found = tables.open_trainable(tmp_path / "trainable.h5", verify=True)
        same_bits(found.vectors, layer.trainable_rows.numpy())
        assert (list(found.vocabulary), found.padding) == (WORDS, 0)
        assert found.frozen_fingerprint == make_split().fingerprint
    assert (found.vectors != make_split().trainable).any()


def test_trainable_table_of_a_model_is_that_of_its_only_layer(model, layer, tmp_path):
    for name, given in (("model", model), ("layer", layer)):
        save_trainable(tmp_path / name, given)
    found, expected = (tables.open_trainable(tmp_path / name, verify=True) for name in ("model", "layer"))
    same_bits(found.vectors, expected.vectors)
    assert (found.remap_fingerprint, list(found.vocabulary)) == (expected.remap_fingerprint, WORDS)
    assert found.reverse is None


def test_a_model_with_several_split_layers_or_none_is_refused(tmp_path):
    several = functional(*(SplitEmbedding(make_split(), name=name) for name in ("left", "right")))
    none = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    for given, names in ((several, "'left', 'right'"), (none, "none")):
        with pytest.raises(SplitError, match=f"SplitEmbedding layers of .* are: {names}. Expected exactly one"):
            save_trainable(tmp_path / "never.h5", given)
    assert not list(tmp_path.iterdir())


def test_trainable_tables_of_an_untied_layer_are_in_one_file(tmp_path):
    layer = SplitReversibleEmbedding(make_split(), tie_weights=False, reverse_split=make_split(1))
    layer.build()
    for part, value in ((layer, 5), (layer.reverse_embedding, 6)):
        part.trainable_rows.assign(np.full(part.trainable_rows.shape, value))
    save_trainable(tmp_path / "layer", layer)
    save_trainable(tmp_path / "model", sequential(layer))
    for name in ("layer", "model"):
        found = tables.open_trainable(tmp_path / name, verify=True)
        for table, split, value in ((found, make_split(), 5), (found.reverse, make_split(1), 6)):
            assert table.vectors.shape == (2, 3) and (table.vectors == value).all()
            assert table.frozen_fingerprint == split.fingerprint
            same_bits(table.remap, split.remap)
    with pytest.raises(TableFormatError, match="holds two trainable tables"):
        SplitTable.open(tmp_path / "layer")


def test_an_untied_layer_with_two_vocabularies_is_refused(tmp_path):
    other = make_split(1).with_parts(vocabulary=["", "a", "b", "c", "d", "e"])
    layer = SplitReversibleEmbedding(make_split(), tie_weights=False, reverse_split=other)
    with pytest.raises(SplitError, match="must have the vocabulary of the split"):
        save_trainable(tmp_path / "never.h5", layer)


def test_a_shared_frozen_table_and_a_trained_one_predict_the_same(tmp_path):
    make_split().save(tmp_path)
    trained = functional(SplitEmbedding(SplitTable.open(tmp_path)))
    trained.compile("sgd", "mse")
    trained.fit(IDS, TARGETS, verbose=0)
    save_trainable(tmp_path / "mine.h5", embeddings_in(trained)[0])
    opened = SplitTable.open(tmp_path / "mine.h5", tmp_path / "frozen.h5", verify=True)
    same_bits(SplitEmbedding(opened)(IDS), embeddings_in(trained)[0](IDS))


@pytest.mark.parametrize("export", [to_dense, lambda given: save_trainable("never.h5", given)])
@pytest.mark.parametrize("given", [np.ones((2, 3)), None, keras.layers.Embedding(2, 3)])
def test_other_arguments_are_refused(export, given):
    message = rf"(?s)must be a SplitTable, or a layer that has one.*of type {type(given).__name__}"
    with pytest.raises(SplitError, match=message):
        export(given)


# SavedModel

SERVE = """
import sys
# makes its import fail
sys.modules["splitembed"] = None
import numpy as np, tensorflow as tf
folder, num_tokens = sys.argv[1], int(sys.argv[2])
ids = np.load(folder + "/ids.npy")
for name in sys.argv[3:]:
    model = tf.saved_model.load(folder + "/" + name)
    serve = getattr(model, "serve", None) or model.signatures["serving_default"]
    found = serve(tf.constant(ids))
    np.save(folder + "/" + name + ".npy", next(iter(found.values())) if isinstance(found, dict) else found)
    for wrong in (-1, num_tokens, 2**31 - 1):
        try:
            serve(tf.constant(np.where(ids == ids[0, 0], np.int32(wrong), ids)))
        except tf.errors.InvalidArgumentError as error:
            assert f"{wrong} is out of range: there are {num_tokens} tokens" in str(error), error
        else:
            raise AssertionError(f"id {wrong} was served")
"""


def served(folder: Path, num_tokens: int, ids: np.ndarray, *names: str) -> list[np.ndarray]:
    """Return the output of each SavedModel in the folder, from a process that cannot import splitembed."""
    np.save(folder / "ids.npy", ids)
    run_fresh(SERVE, folder, str(num_tokens), *names, importable=())
    return [np.load(folder / f"{name}.npy") for name in names]


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def some_ids(num_tokens: int) -> np.ndarray:
    return np.append(np.random.default_rng(1).integers(0, num_tokens, 26), [1, 4]).astype(np.int32).reshape(4, 7)


def test_S3_saved_models_are_served_without_splitembed(tmp_path):
    """From memory and from a mapped frozen.h5; by `model.export` and by `tf.saved_model.save`."""
    matrix = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
    SplitTable.from_matrix(matrix, [1, 4]).save(tmp_path)
    split = SplitTable.open(tmp_path)
    assert split.table.mapped
    in_memory = SplitTable.from_matrix(matrix, [1, 4])
    models = {name: sequential(SplitEmbedding(each)) for name, each in (("in_memory", in_memory), ("mapped", split))}
    for name, each in models.items():
        each.export(tmp_path / name, verbose=False)
    tf.saved_model.save(models["mapped"], tmp_path / "plain")
    models["plain"] = models["mapped"]
    ids = some_ids(20_000)
    found = served(tmp_path, 20_000, ids, *models)
    for (name, each), rows in zip(models.items(), found, strict=True):
        assert (tmp_path / name / "saved_model.pb").stat().st_size < 200_000
        # the table once, with a remap
        assert matrix.nbytes < size_of(tmp_path / name) < 1.1 * matrix.nbytes
        np.testing.assert_allclose(rows, each.predict(ids, verbose=0), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("num_tokens", "dtypes"),
    [pytest.param(400_000, ["float32"], marks=pytest.mark.slow), (50_000, ["float16", "bfloat16", "int8"])],
)
def test_saved_models_outlive_their_sources_and_their_folder(tmp_path, num_tokens, dtypes):
    matrix = np.random.default_rng(0).normal(size=(num_tokens, 50)).astype(np.float32)
    ids, models = some_ids(num_tokens), {}
    for dtype in dtypes:
        SplitTable.from_matrix(matrix, [1, 4]).with_frozen_dtype(dtype).save(tmp_path / "sources" / dtype)
        split = SplitTable.open(tmp_path / "sources" / dtype)
        assert split.table.mapped and split.frozen_dtype == dtype
        models[dtype] = sequential(SplitEmbedding(split))
        models[dtype].export(tmp_path / "here" / dtype, verbose=False)
    shutil.rmtree(tmp_path / "sources")
    shutil.move(tmp_path / "here", tmp_path / "there")
    found = served(tmp_path / "there", num_tokens, ids, *dtypes)
    for (dtype, model), rows in zip(models.items(), found, strict=True):
        np.testing.assert_allclose(rows, model.predict(ids, verbose=0), rtol=0, atol=1e-6)
        assert (tmp_path / "there" / dtype / "saved_model.pb").stat().st_size < 1_000_000
        one_copy = bytes_of_tables(embeddings_in(model)[0].to_split())
        assert one_copy < size_of(tmp_path / "there" / dtype) < 1.1 * one_copy


def bytes_of_tables(split: SplitTable) -> int:
    scale = 0 if split.scale is None else split.scale.nbytes
    return split.frozen.nbytes + split.trainable.nbytes + split.remap.nbytes + scale


EXPORT_LARGE = """
import sys
import keras, numpy as np
from splitembed import SplitEmbedding, SplitTable
from benchmarks.accuracy.memory import PeakMemory

split = SplitTable.open(sys.argv[1])
assert split.table.mapped and split.frozen.nbytes >= 2.4e9
ids = keras.Input((None,), dtype="int32")
with PeakMemory() as peak:
    model = keras.Model(ids, SplitEmbedding(split)(ids))
    model.export(sys.argv[2], verbose=False)
print(-1 if peak.growth is None else peak.growth)
"""


@pytest.mark.slow
def test_tables_above_2_gb_are_exported_in_little_memory(tmp_path):
    num_tokens, dim = 2_000_100, 300
    rows = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(num_tokens - 2, dim))
    rows[:: num_tokens // 20] = np.random.default_rng(0).normal(size=rows[:: num_tokens // 20].shape)
    remap = np.append([-1, -2], np.arange(num_tokens - 2)).astype(np.int32)
    (tmp_path / "sources").mkdir()
    tables.write_frozen(tmp_path / "sources" / "frozen.h5", rows)
    frozen = tables.open_frozen(tmp_path / "sources" / "frozen.h5")
    split = SplitTable(frozen.vectors, remap, np.ones((2, dim)), table=frozen)
    split.save(tmp_path / "sources")
    (tmp_path / "rows").unlink()
    growth = int(run_fresh(EXPORT_LARGE, tmp_path / "sources", tmp_path / "here" / "model").split()[-1])
    assert growth < 200_000_000
    shutil.rmtree(tmp_path / "sources")
    shutil.move(tmp_path / "here", tmp_path / "there")
    ids = np.append(np.arange(0, num_tokens, num_tokens // 20) + 2, [0, 1, num_tokens - 1])[None].astype(np.int32)
    ids = np.minimum(ids, num_tokens - 1)
    (found,) = served(tmp_path / "there", num_tokens, ids, "model")
    same_bits(found, split.lookup(ids))
    assert (tmp_path / "there" / "model" / "saved_model.pb").stat().st_size < 1_000_000
    assert split.frozen.nbytes < size_of(tmp_path / "there" / "model") < 1.1 * split.frozen.nbytes


def test_an_export_without_tables_never_serves(tmp_path):
    """Newer versions of Keras raise an error; older ones export a model that raises one at each call."""
    config = SplitEmbedding(make_split()).get_config()
    config["split"]["frozen_fingerprint"] = "sha256:" + "0" * 64
    model = sequential(SplitEmbedding.from_config(config))

    def export_and_serve():
        model.export(tmp_path / "export")
        exported = tf.saved_model.load(tmp_path / "export")
        exported.serve(tf.constant(IDS, tf.int32))

    with pytest.raises((MissingTableError, tf.errors.InvalidArgumentError), match="has no tables"):
        export_and_serve()
