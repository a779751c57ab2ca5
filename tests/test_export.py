"""What leaves: a dense layer, the trainable table alone, and exports that need nothing of ours."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from fresh import run_fresh
from models import IDS, TARGETS, WORDS, embeddings_in, functional, make_split, same_bits, sequential

from splitembed import SplitEmbedding, SplitTable, save_trainable, tables, to_dense
from splitembed.errors import MissingTableError, SplitError


@pytest.fixture(scope="module")
def model() -> keras.Model:
    """Trained a little, so that its rows are not the split's."""
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
    dense.set_weights([np.zeros((6, 3))])  # its rows are its own
    assert (layer(IDS).numpy() != 0).any()


def test_dense_layer_of_a_split():
    dense = to_dense(make_split())
    same_bits(dense(IDS), make_split().lookup(IDS))
    assert not dense.mask_zero


def test_trainable_table_alone(layer, tmp_path):
    for given in (layer, layer.to_split()):
        save_trainable(tmp_path / "trainable.h5", given)
        assert [path.name for path in tmp_path.iterdir()] == ["trainable.h5"]
        found = tables.open_trainable(tmp_path / "trainable.h5", verify=True)
        same_bits(found.vectors, layer.trainable_rows.numpy())
        assert (list(found.vocabulary), found.padding) == (WORDS, 0)
        assert found.frozen_fingerprint == make_split().fingerprint
    assert (found.vectors != make_split().trainable).any()


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
def test_anything_else_is_refused(export, given):
    message = rf"(?s)A SplitTable or a SplitEmbedding is needed.*of type {type(given).__name__}"
    with pytest.raises(SplitError, match=message):
        export(given)


# SavedModel

SERVE = """
import sys
import numpy as np, tensorflow as tf
folder = sys.argv[1]
ids = np.load(folder + "/ids.npy")
for name in sys.argv[2:]:
    model = tf.saved_model.load(folder + "/" + name)
    serve = getattr(model, "serve", None) or model.signatures["serving_default"]
    found = serve(tf.constant(ids))
    np.save(folder + "/" + name + ".npy", next(iter(found.values())) if isinstance(found, dict) else found)
    try:
        serve(tf.constant(ids + 20_000))
    except tf.errors.InvalidArgumentError as error:
        assert "out of range: there are 20000 tokens" in str(error)
    else:
        raise AssertionError("ids out of range were served")
assert not any(name.partition(".")[0] == "splitembed" for name in sys.modules)
"""


def test_S3_saved_models_are_served_without_us(tmp_path):
    """From memory and from a mapped frozen.h5; by `model.export` and by `tf.saved_model.save`."""
    matrix = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
    SplitTable.from_matrix(matrix, [1, 4]).save(tmp_path)
    split = SplitTable.open(tmp_path)
    assert split.table.mapped
    in_memory = SplitTable.from_matrix(matrix, [1, 4])
    models = {name: sequential(SplitEmbedding(each)) for name, each in (("in_memory", in_memory), ("mapped", split))}
    ids = np.random.default_rng(1).integers(0, 20_000, (4, 7), np.int32)
    np.save(tmp_path / "ids.npy", ids)
    for name, each in models.items():
        each.export(tmp_path / name)
    tf.saved_model.save(models["mapped"], tmp_path / "plain")
    models["plain"] = models["mapped"]
    run_fresh(SERVE, tmp_path, *models, importable=())
    for name, each in models.items():
        assert (tmp_path / name / "saved_model.pb").stat().st_size < 200_000
        variables = sum(path.stat().st_size for path in (tmp_path / name / "variables").iterdir())
        assert matrix.nbytes < variables < 1.1 * matrix.nbytes  # the table once, with a remap
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), each.predict(ids, verbose=0), rtol=0, atol=1e-6)


def test_an_export_without_tables_never_serves(tmp_path):
    """Newer Kerases walk the layers and stop; older ones export what then always raises."""
    config = SplitEmbedding(make_split()).get_config()
    config["split"]["frozen_fingerprint"] = "sha256:gone"
    model = sequential(SplitEmbedding.from_config(config))

    def export_and_serve():
        model.export(tmp_path / "export")
        exported = tf.saved_model.load(tmp_path / "export")
        exported.serve(tf.constant(IDS, tf.int32))

    with pytest.raises((MissingTableError, tf.errors.InvalidArgumentError), match="has no tables"):
        export_and_serve()
