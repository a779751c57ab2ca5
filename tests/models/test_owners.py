"""What holds a split layer is saved, loaded and cloned with it, and forgets it when it is whole again."""

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
from splitembed.models.owners import RemembersSplits
from tests.helpers import plain_models as pm
from tests.helpers.fresh import run_fresh

needs_reversible = pytest.mark.skipif(pm.REVERSIBLE is None, reason="this Keras has no ReversibleEmbedding")
on_tensorflow = pytest.mark.skipif(pm.BACKEND != "tensorflow", reason="TensorFlow's own")
MODELS = {name: lambda name=name: pm.make_model(name) for name in pm.MODELS}
if pm.REVERSIBLE is not None:
    MODELS["tied"] = lambda: pm.make_language_model()
    MODELS["untied"] = lambda: pm.make_language_model(tie_weights=False, logit_soft_cap=2.0)
IDS = pm.ids_of(highest=pm.GROWN)


def trained(model):
    """Split, with rows that are not what they started as."""
    layer = pm.embedding_of(pm.split_of(model))
    for number, each in enumerate(filter(None, [layer, getattr(layer, "reverse_embedding", None)])):
        each.trainable_rows.assign(pm.table(len(pm.TRAINED), seed=7 + number))
    return model


def output_of(model):
    return pm.numpy(model(pm.inputs_for(model, IDS)))


def remembering(model):
    return [type(each).__name__ for each in model._flatten_layers() if isinstance(each, RemembersSplits)]


# Classes


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "functional": [],
        "sequential": [],
        "nested": [],
        "time distributed": [],
        "attribute": ["InAttribute"],
        "dict": ["InDict"],
        "made in build": ["MakesInBuild"],
        "functional of its own": ["OfItsOwn"],
        "model in a model": ["HoldsModel", "OfItsOwn"],
    }.items(),
)
def test_owners_that_would_make_a_plain_layer_again_remember(name, expected):
    model = pm.make_model(name)
    kinds = [type(each) for each in model._flatten_layers()]
    config = model.get_config()
    pm.split_of(model)
    assert remembering(model) == expected
    for each, kind in zip(model._flatten_layers(), kinds, strict=True):
        assert isinstance(each, SplitEmbedding if kind is layers.Embedding else kind)
    se.combine_embedding(model)
    assert [type(each) for each in model._flatten_layers()] == kinds and not pm.names_of_ours(model)
    assert "splitembed" not in repr(model.get_config()) and model.get_config().keys() == config.keys()


def test_two_models_of_one_class_are_of_one_class():
    first, second = (pm.split_of(pm.make_model("attribute")) for _ in range(2))
    assert type(first) is type(second) is not pm.InAttribute
    assert type(first).__name__ == "InAttribute" and type(first).__module__ == pm.InAttribute.__module__


# Whole models


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Every model, saved, and what it puts out."""
    folder, expected = tmp_path_factory.mktemp("models"), {}
    for name, make in MODELS.items():
        model = trained(make())
        model.save(folder / f"{name}.keras")
        expected[name] = output_of(model)
    LIVE.clear()
    return folder, expected


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back(name, saved, tmp_path):
    folder, expected = saved
    loaded = keras.models.load_model(folder / f"{name}.keras")
    assert isinstance(pm.embedding_of(loaded), SplitEmbedding)
    pm.same_bits([output_of(loaded)], [expected[name]])
    loaded.save(tmp_path / "again.keras")
    again = keras.models.load_model(tmp_path / "again.keras")
    pm.same_bits([output_of(again)], [expected[name]])
    se.combine_embedding(again)
    assert not pm.names_of_ours(again)
    # logits of new tokens are then a part of one product with the others
    np.testing.assert_allclose(output_of(again), expected[name], rtol=0, atol=1e-6)


def test_models_come_back_in_a_fresh_process(saved):
    folder, expected = saved
    code = """
import sys
import splitembed, keras, plain_models as pm
for name in sys.argv[2:]:
    model = keras.models.load_model(f"{sys.argv[1]}/{name}.keras")
    ids = pm.inputs_for(model, pm.ids_of(highest=pm.GROWN))
    print(name, pm.numpy(model(ids)).tobytes().hex(), sep="=")
"""
    lines = run_fresh(code, folder, *expected, importable=pm.IMPORTABLE).split("\n")
    found = dict(line.split("=") for line in lines if "=" in line)
    assert found == {name: value.tobytes().hex() for name, value in expected.items()}


def test_a_combined_model_needs_nothing_of_ours(tmp_path):
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


@pytest.mark.parametrize("name", ["made in build", "functional of its own", "model in a model"])
def test_a_combined_model_with_sizes_of_its_own_comes_back(name, tmp_path):
    model = se.combine_embedding(trained(pm.make_model(name)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert not pm.names_of_ours(loaded)
    pm.same_bits([output_of(loaded)], [output_of(model)])


@pytest.mark.parametrize("name", ["functional", "attribute", "functional of its own", "model in a model"])
def test_a_frozen_model_comes_back_frozen_but_for_its_rows(name, tmp_path):
    model = pm.make_model(name)
    model.trainable = False
    trained(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [tuple(each.shape) for each in loaded.trainable_weights] == [(len(pm.TRAINED), pm.DIM)]


@pytest.mark.parametrize("name", ["functional", "attribute", "functional of its own"])
def test_training_goes_on_where_it_was_saved(name, tmp_path):
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


def test_a_split_model_inside_another_one_that_is_made_later(tmp_path):
    inner = trained(pm.make_model("functional of its own"))
    ids = keras.Input((pm.LENGTH,), dtype="int32")
    outer = keras.Model(ids, layers.Dense(1, kernel_initializer="ones")(inner(ids)))
    outer.save(tmp_path / "model.keras")
    LIVE.clear()
    loaded = keras.models.load_model(tmp_path / "model.keras")
    pm.same_bits([output_of(loaded)], [output_of(outer)])
    se.combine_embedding(loaded)
    assert not pm.names_of_ours(loaded)


def test_two_split_layers_of_one_owner(tmp_path):
    @keras.saving.register_keras_serializable("adapting")
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
    pm.shake(model)
    before = output_of_two(model)
    pm.split_of(model)
    se.split_embedding(model, [2], layer="others")
    pm.same_bits([output_of_two(model)], [before])
    model.others.trainable_rows.assign(np.full((1, pm.DIM), 5, np.float32))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    pm.same_bits([output_of_two(loaded)], [output_of_two(model)])
    kinds = [type(each) for each in (loaded.plain, loaded.tokens, loaded.others)]
    assert kinds == [layers.Embedding, SplitEmbedding, SplitEmbedding]
    assert (loaded.tokens.num_trainable, loaded.others.num_trainable) == (len(pm.TRAINED), 1)
    se.combine_embedding(loaded)
    assert type(loaded) is Two
    pm.same_bits([output_of_two(loaded)], [output_of_two(model)])


def output_of_two(model):
    return pm.numpy(model(ops.convert_to_tensor(IDS % pm.NUM_TOKENS)))


# Weights alone


@pytest.mark.parametrize("name", ["functional", "attribute", "model in a model"])
def test_weights_come_back_onto_the_same_split(name, tmp_path):
    model, path = trained(pm.make_model(name)), tmp_path / "model.weights.h5"
    model.save_weights(path)
    sizes = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: sizes.append(item.size) if isinstance(item, h5py.Dataset) else None)
    assert pm.NUM_TOKENS * pm.DIM not in sizes and pm.GROWN * pm.DIM not in sizes
    other = pm.split_of(pm.make_model(name))
    assert output_of(other).tobytes() != output_of(model).tobytes()
    other.load_weights(path)
    pm.same_bits([output_of(other)], [output_of(model)])


def test_weights_of_another_split_or_of_a_plain_model_are_refused(tmp_path):
    plain, split = pm.make_model("functional"), trained(pm.make_model("functional"))
    plain.save_weights(tmp_path / "plain.weights.h5")
    split.save_weights(tmp_path / "split.weights.h5")
    with pytest.raises(ValueError, match=r"tokens|[Ll]ayer"):
        plain.load_weights(tmp_path / "split.weights.h5")
    pm.same_bits([pm.rows_of(plain)], [pm.table()])
    with pytest.raises((SplitError, ValueError), match="of a SplitEmbedding. Load them into"):
        split.load_weights(tmp_path / "plain.weights.h5")
    other = se.split_embedding(pm.make_model("functional"), [2], pm.NUM_NEW)
    with pytest.raises((FingerprintError, ValueError), match="belongs to another split"):
        other.load_weights(tmp_path / "split.weights.h5")


@on_tensorflow
@pytest.mark.parametrize("name", ["functional", "attribute", "functional of its own"])
def test_a_checkpoint_comes_back(name, tmp_path):
    import tensorflow as tf

    model = trained(pm.make_model(name))
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    other = pm.split_of(pm.make_model(name))
    tf.train.Checkpoint(model=other).read(path).assert_existing_objects_matched()
    pm.same_bits([output_of(other)], [output_of(model)])
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


@pytest.mark.parametrize("name", [name for name in MODELS if name != "unbuilt sequential"])
def test_a_clone_is_split_too(name):
    model = trained(MODELS[name]())
    clone = keras.models.clone_model(model)
    clone(pm.inputs_for(model, IDS))
    assert isinstance(pm.embedding_of(clone), SplitEmbedding)
    assert pm.embedding_of(clone) is not pm.embedding_of(model)
    assert not {id(each) for each in clone.weights} & {id(each) for each in model.weights}
    clone.set_weights(model.get_weights())
    pm.same_bits([output_of(clone)], [output_of(model)])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", ["functional", "attribute", "functional of its own"])
def test_a_copy_is_one_of_its_own(name, copied):
    model = trained(pm.make_model(name))
    again = copied(model)
    pm.same_bits([output_of(again)], [output_of(model)])
    before = output_of(model)
    pm.embedding_of(again).trainable_rows.assign(pm.table(len(pm.TRAINED), seed=30))
    pm.same_bits([output_of(model)], [before])
    assert output_of(again).tobytes() != before.tobytes()


# Presets


def test_a_preset_of_a_split_model_is_refused():
    class Preset(keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.tokens = pm.embedding()

        def call(self, ids):
            return self.tokens(ids)

        def save_to_preset(self, folder):
            return folder

    model = Preset(name="mine")
    model(pm.ids_of())
    pm.split_of(model)
    with pytest.raises(NotImplementedError, match="'mine' holds a SplitEmbedding, which a preset cannot"):
        model.save_to_preset("x")
    assert se.combine_embedding(model).save_to_preset("x") == "x"
