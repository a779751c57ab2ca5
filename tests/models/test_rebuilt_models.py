"""Models around a split layer: saved, loaded and cloned with it, or refused where Keras would rebuild them."""

import copy
import pickle

import h5py
import keras
import numpy as np
import pytest
from keras import layers, ops

import splitembed as se
from splitembed import SplitEmbedding
from splitembed.errors import FingerprintError, SplitError
from splitembed.layers.spec import LIVE
from splitembed.models.rebuilt_models import REFUSED, config_holds
from tests.helpers import plain_models as pm
from tests.helpers.bits import all_same_bits
from tests.helpers.fresh import run_fresh

pytestmark = pytest.mark.every_backend

needs_reversible = pytest.mark.skipif(pm.REVERSIBLE is None, reason="this Keras has no ReversibleEmbedding")
on_tensorflow = pytest.mark.skipif(pm.BACKEND != "tensorflow", reason="TensorFlow's own")
MODELS = {name: lambda name=name: pm.make_model(name) for name in pm.MODELS}
if pm.REVERSIBLE is not None:
    MODELS["tied"] = lambda: pm.make_language_model()
    MODELS["untied"] = lambda: pm.make_language_model(tie_weights=False, logit_soft_cap=2.0)
REBUILT = ["made in build", "automatic", "functional from a size", "model in a model"]
SAVED = [name for name in MODELS if name not in REBUILT]
IDS = pm.ids_of(highest=pm.GROWN)


def trained(model):
    """Split a model, and assign other rows than the initial ones."""
    layer = pm.embedding_of(pm.split_of(model))
    for number, each in enumerate(filter(None, [layer, getattr(layer, "reverse_embedding", None)])):
        each.trainable_rows.assign(pm.table(len(pm.TRAINED), seed=7 + number))
    return model


def output_of(model):
    return pm.numpy(model(pm.inputs_for(model, IDS)))


def shadowed(model):
    return {name for each in model._flatten_layers() for name in REFUSED if name in vars(each)}


# Models that Keras rebuilds


@pytest.mark.parametrize("name", pm.MODELS)
def test_a_config_holds_the_layer_unless_keras_rebuilds_the_model(name):
    model = pm.make_model(name)
    assert config_holds(model, pm.embedding_of(model)) == (name not in REBUILT)
    pm.split_of(model)
    assert config_holds(model, pm.embedding_of(model)) == (name not in REBUILT)


@pytest.mark.parametrize("name", REBUILT)
def test_a_rebuilt_model_refuses_before_a_file_is_touched(name, tmp_path):
    model = pm.make_model(name)
    path = tmp_path / "model.keras"
    path.write_bytes(b"the last one")
    trained(model)
    with pytest.raises(NotImplementedError, match=f"save of '{model.name}' .*save_trainable.*combine_embedding"):
        model.save(path)
    checkpoint = keras.callbacks.ModelCheckpoint(path)
    with pytest.raises(NotImplementedError, match="save of"):
        pm.compiled(model).fit(IDS, pm.targets_of(), callbacks=[checkpoint], verbose=0)
    assert path.read_bytes() == b"the last one"
    assert shadowed(model) == {"save"}
    se.combine_embedding(model)
    assert shadowed(model) == set() and not pm.names_of_ours(model)
    model.save(path)
    # "automatic" always makes the old number of rows
    if name != "automatic":
        all_same_bits([output_of(keras.models.load_model(path))], [output_of(model)])


@pytest.mark.parametrize("name", REBUILT)
def test_a_rebuilt_model_is_restored_by_its_small_table(name, tmp_path):
    model = pm.make_model(name)
    trained(model)
    se.save_trainable(tmp_path / "rows.h5", model)
    loaded = se.load_trainable(tmp_path / "rows.h5", pm.make_model(name))
    all_same_bits([output_of(loaded)], [output_of(model)])
    assert shadowed(loaded) == {"save"}


def around(inner):
    ids = keras.Input((pm.LENGTH,), dtype="int32")
    return keras.Model(ids, layers.Dense(1, kernel_initializer="ones")(inner(ids)))


def test_a_model_around_a_rebuilt_one_is_refused_by_the_layer(tmp_path):
    outer = around(pm.split_of(pm.make_model("functional from a size")))
    with pytest.raises(NotImplementedError, match="'tokens' is a SplitEmbedding.*save_trainable.*combine_embedding"):
        outer.save(tmp_path / "model.keras")
    with pytest.raises(NotImplementedError, match="'tokens' is a SplitEmbedding"):
        keras.saving.save_model(outer.layers[1], tmp_path / "inner.keras")
    outer.save_weights(tmp_path / "model.weights.h5")
    se.combine_embedding(outer)
    outer.save(tmp_path / "model.keras")
    all_same_bits([output_of(keras.models.load_model(tmp_path / "model.keras"))], [output_of(outer)])


def test_the_refusal_is_removed_with_the_last_split_layer():
    model = two_layers()
    pm.split_of(model)
    se.split_embedding(model, [2], layer="others")
    plain, other = model.tokens, model.others
    se.replace_split(model, other, other.to_split().thaw([3]))
    assert shadowed(model) == {"save"} and other.refuses_archives
    se.combine_embedding(model)
    assert not hasattr(plain, "refuses_archives") and shadowed(model) == set()


def test_a_refusal_can_be_pickled():
    model = pm.split_of(pm.make_model("functional from a size"))
    with pytest.raises(NotImplementedError, match="save of"):
        pickle.loads(pickle.dumps(model.save))("model.keras")


@pytest.mark.parametrize("name", ["functional from a size", "automatic"])
def test_a_checkpoint_of_weights_alone_works(name, tmp_path):
    model = pm.compiled(trained(pm.make_model(name)))
    checkpoint = keras.callbacks.ModelCheckpoint(tmp_path / "model.weights.h5", save_weights_only=True)
    model.fit(IDS, pm.targets_of(), callbacks=[checkpoint], verbose=0)
    other = pm.split_of(pm.make_model(name))
    other.load_weights(tmp_path / "model.weights.h5")
    all_same_bits([output_of(other)], [output_of(model)])


# Whole models


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save every model, and return the folder and the outputs."""
    folder, expected = tmp_path_factory.mktemp("models"), {}
    for name in SAVED:
        model = trained(MODELS[name]())
        model.save(folder / f"{name}.keras")
        expected[name] = output_of(model)
    LIVE.clear()
    return folder, expected


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_model_loads_with_the_same_outputs(name, saved, tmp_path):
    folder, expected = saved
    loaded = keras.models.load_model(folder / f"{name}.keras")
    assert isinstance(pm.embedding_of(loaded), SplitEmbedding)
    all_same_bits([output_of(loaded)], [expected[name]])
    loaded.save(tmp_path / "again.keras")
    again = keras.models.load_model(tmp_path / "again.keras")
    all_same_bits([output_of(again)], [expected[name]])
    se.combine_embedding(again)
    assert not pm.names_of_ours(again)
    # logits of new tokens are then a part of one product with the others
    np.testing.assert_allclose(output_of(again), expected[name], rtol=0, atol=1e-6)


def test_saved_models_load_in_a_fresh_process(saved):
    folder, expected = saved
    code = """
import sys
import splitembed, keras
from tests.helpers import plain_models as pm
for name in sys.argv[2:]:
    model = keras.models.load_model(f"{sys.argv[1]}/{name}.keras")
    ids = pm.inputs_for(model, pm.ids_of(highest=pm.GROWN))
    print(name, pm.numpy(model(ids)).tobytes().hex(), sep="=")
"""
    lines = run_fresh(code, folder, *expected).split("\n")
    found = dict(line.split("=") for line in lines if "=" in line)
    assert found == {name: value.tobytes().hex() for name, value in expected.items()}


@pytest.mark.slow
def test_a_combined_model_loads_without_splitembed(tmp_path):
    names = ["functional", "sequential", "nested", "masked", *(["tied", "untied"] if "tied" in MODELS else [])]
    expected = {}
    for name in names:
        model = se.combine_embedding(trained(MODELS[name]()))
        model.save(tmp_path / f"{name}.keras")
        expected[name] = output_of(model).tobytes().hex()
    np.save(tmp_path / "ids.npy", IDS)
    code = """
import sys
sys.modules["splitembed"] = None
import keras, numpy as np
ids = np.load(f"{sys.argv[1]}/ids.npy")
for name in sys.argv[2:]:
    model = keras.models.load_model(f"{sys.argv[1]}/{name}.keras")
    print(name, keras.ops.convert_to_numpy(model(ids)).tobytes().hex(), sep="=")
"""
    lines = run_fresh(code, tmp_path, *names).split("\n")
    assert dict(line.split("=") for line in lines if "=" in line) == expected


@pytest.mark.parametrize("name", ["functional", "nested", "sequential", "time distributed"])
def test_a_frozen_model_is_loaded_frozen_except_its_rows(name, tmp_path):
    model = pm.make_model(name)
    model.trainable = False
    trained(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [tuple(each.shape) for each in loaded.trainable_weights] == [(len(pm.TRAINED), pm.DIM)]


@pytest.mark.parametrize("name", ["functional", "attribute"])
def test_a_loaded_model_trains_on_with_its_optimizer_state(name, tmp_path):
    model = pm.compiled(pm.make_model(name), keras.optimizers.Adam(0.1))
    model.train_on_batch(pm.ids_of(), pm.targets_of())
    pm.split_of(model)
    model.train_on_batch(IDS, pm.targets_of())
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.compiled and int(pm.numpy(loaded.optimizer.iterations)) == 2
    for each in (model, loaded):
        for _ in range(2):
            each.train_on_batch(IDS, pm.targets_of())
    np.testing.assert_allclose(pm.rows_of(loaded), pm.rows_of(model), rtol=0, atol=1e-6)
    np.testing.assert_allclose(output_of(loaded), output_of(model), rtol=0, atol=1e-6)


def two_layers():
    """Make a rebuilt model with three embeddings."""

    class Two(keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.plain = pm.embedding(name="plain")
            self.tokens, self.others = pm.embedding(), pm.embedding(name="others")

        def call(self, ids):
            return self.tokens(ids) + 2 * self.others(ids) + 3 * self.plain(ids)

        def get_config(self):
            return {"name": self.name}

    model = Two()
    model(IDS % pm.NUM_TOKENS)
    return pm.shake(model)


def test_two_split_layers_of_one_model():
    model = two_layers()
    before = output_of_two(model)
    pm.split_of(model)
    se.split_embedding(model, [2], layer="others")
    all_same_bits([output_of_two(model)], [before])
    model.others.trainable_rows.assign(np.full((1, pm.DIM), 5, np.float32))
    changed = output_of_two(model)
    assert [type(each) for each in (model.plain, model.tokens, model.others)] == [
        layers.Embedding,
        SplitEmbedding,
        SplitEmbedding,
    ]
    assert (model.tokens.num_trainable, model.others.num_trainable) == (len(pm.TRAINED), 1)
    se.combine_embedding(model)
    all_same_bits([output_of_two(model)], [changed])


def output_of_two(model):
    return pm.numpy(model(ops.convert_to_tensor(IDS % pm.NUM_TOKENS)))


# Weights alone


@pytest.mark.parametrize("name", ["functional", "attribute", "model in a model"])
def test_weights_load_onto_the_same_split(name, tmp_path):
    model, path = trained(pm.make_model(name)), tmp_path / "model.weights.h5"
    model.save_weights(path)
    sizes = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: sizes.append(item.size) if isinstance(item, h5py.Dataset) else None)
    assert pm.NUM_TOKENS * pm.DIM not in sizes and pm.GROWN * pm.DIM not in sizes
    other = pm.split_of(pm.make_model(name))
    assert output_of(other).tobytes() != output_of(model).tobytes()
    other.load_weights(path)
    all_same_bits([output_of(other)], [output_of(model)])


def test_weights_of_another_split_or_of_a_plain_model_are_refused(tmp_path):
    plain, split = pm.make_model("functional"), trained(pm.make_model("functional"))
    plain.save_weights(tmp_path / "plain.weights.h5")
    split.save_weights(tmp_path / "split.weights.h5")
    with pytest.raises(ValueError, match=r"tokens|[Ll]ayer"):
        plain.load_weights(tmp_path / "split.weights.h5")
    all_same_bits([pm.rows_of(plain)], [pm.table()])
    with pytest.raises((SplitError, ValueError), match="of a SplitEmbedding. Load them into"):
        split.load_weights(tmp_path / "plain.weights.h5")
    other = se.split_embedding(pm.make_model("functional"), [2], pm.NUM_NEW)
    with pytest.raises((FingerprintError, ValueError), match="belongs to another split"):
        other.load_weights(tmp_path / "split.weights.h5")


@on_tensorflow
@pytest.mark.parametrize("name", ["functional", "attribute", "functional from a size"])
def test_a_checkpoint_is_restored(name, tmp_path):
    import tensorflow as tf

    model = trained(pm.make_model(name))
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    other = pm.split_of(pm.make_model(name))
    tf.train.Checkpoint(model=other).read(path).assert_existing_objects_matched()
    all_same_bits([output_of(other)], [output_of(model)])
    values = [np.prod(shape) for _, shape in tf.train.list_variables(path)]
    assert pm.NUM_TOKENS * pm.DIM not in values
    with pytest.raises(FingerprintError, match="belongs to another split"):
        tf.train.Checkpoint(model=se.split_embedding(pm.make_model(name), [2], pm.NUM_NEW)).read(path)


@on_tensorflow
@pytest.mark.parametrize("name", ["functional", "model in a model", *(["untied"] if "untied" in MODELS else [])])
def test_an_export_gives_the_same(name, tmp_path):
    import tensorflow as tf

    model = trained(MODELS[name]())
    model.export(str(tmp_path / "export"), verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "export"))
    found = exported.serve(IDS)
    np.testing.assert_allclose(found, output_of(model), rtol=0, atol=1e-6)


# Copies


@pytest.mark.parametrize("name", [name for name in SAVED if name != "unbuilt sequential"])
def test_a_clone_is_split_too(name):
    model = trained(MODELS[name]())
    clone = keras.models.clone_model(model)
    clone(pm.inputs_for(model, IDS))
    assert isinstance(pm.embedding_of(clone), SplitEmbedding)
    assert pm.embedding_of(clone) is not pm.embedding_of(model)
    assert not {id(each) for each in clone.weights} & {id(each) for each in model.weights}
    clone.set_weights(model.get_weights())
    all_same_bits([output_of(clone)], [output_of(model)])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", ["functional", "attribute"])
def test_a_copy_shares_nothing_with_the_model(name, copied):
    model = trained(pm.make_model(name))
    again = copied(model)
    all_same_bits([output_of(again)], [output_of(model)])
    before = output_of(model)
    pm.embedding_of(again).trainable_rows.assign(pm.table(len(pm.TRAINED), seed=30))
    all_same_bits([output_of(model)], [before])
    assert output_of(again).tobytes() != before.tobytes()


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_rebuilt_model_is_not_copied(copied):
    """Keras copies and pickles a model as a `.keras` file in memory."""
    with pytest.raises(NotImplementedError, match="save_trainable"):
        copied(pm.split_of(pm.make_model("functional from a size")))


# Presets


@pytest.mark.parametrize("method", [name for name in REFUSED if name != "save"])
def test_files_of_kerashub_are_refused(method):
    class Preset(keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.tokens = pm.embedding()

        def call(self, ids):
            return self.tokens(ids)

    setattr(Preset, method, lambda self, path: path)
    model = Preset(name="mine")
    model(pm.ids_of())
    pm.split_of(model)
    with pytest.raises(NotImplementedError, match=f"{method} of 'mine' is refused while its 'tokens' is a Split"):
        getattr(model, method)("x")
    assert getattr(se.combine_embedding(model), method)("x") == "x"
