"""Saved models: predictions, split and optimizer are restored, here and in a fresh process, or loading is refused."""

import gc
import json
import pickle
import zipfile
from copy import deepcopy

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.errors import FingerprintError, MissingTableError, SplitError
from splitembed.layers.spec import LIVE
from tests.helpers.bits import same_bits
from tests.helpers.fresh import run_fresh
from tests.helpers.models import IDS, MODELS, TARGETS, WORDS, embeddings_in, functional, make_split, sequential

MAKE = {**MODELS, "two layers": lambda layer: functional(layer, SplitEmbedding(layer.to_split()))}


@pytest.fixture
def no_live_tables():
    """Start without live tables, as in a fresh process."""
    LIVE.clear()


def trained(name: str, split: SplitTable) -> keras.Model:
    """Return a model after two steps, so that the optimizer has state."""
    model = MAKE[name](SplitEmbedding(split, mask_zero=name == "functional"))
    model.compile(keras.optimizers.Adam(0.1) if name == "sequential" else LazyAdam(0.1), "mse")
    model.fit(IDS, TARGETS, batch_size=2, shuffle=False, verbose=0)
    return model


def facts(model: keras.Model) -> dict[str, np.ndarray]:
    """Return what loading must restore: predictions, arrays of the split, and predictions after one more step."""
    split = embeddings_in(model)[0].to_split()
    found = {"predictions": model.predict(IDS, verbose=0), "frozen": split.frozen, "remap": split.remap}
    found["trainable"] = split.trainable
    model.train_on_batch(IDS, TARGETS)
    return {**found, "one more step": model.predict(IDS, verbose=0)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a saved model of each kind, and its facts."""
    folder, expected = tmp_path_factory.mktemp("saved"), {}
    # different tables, so that no model finds the live table of another
    for seed, name in enumerate(MAKE):
        model = trained(name, make_split(seed))
        model.save(folder / f"{name}.keras")
        expected[name] = facts(model)
    return folder, expected


def assert_same_facts(found, expected) -> None:
    for name, value in expected.items():
        same_bits(found[name], value)


IN_A_FRESH_PROCESS = """
import gc, json, pathlib, sys
{imports}
import numpy as np
archives, made, names = [json.loads(argument) for argument in sys.argv[1:]]
for name in names:
    if name == "subclassed":
        assert "tests.helpers.models" not in sys.modules
        # the user of a subclassed model must import its class
        from tests.helpers import models
    folder = pathlib.Path(made) / name
    folder.mkdir()
    model = keras.models.load_model(archives + "/" + name + ".keras")
    layers = [layer for layer in model._flatten_layers() if type(layer).__name__ == "SplitEmbedding"]
    # removes the files that Keras unpacked to load the model
    gc.collect()
    split = layers[0].to_split()
    assert all(np.shares_memory(layer.to_split().frozen, split.frozen) for layer in layers)
    assert split.table.mapped
    split.save(folder)
    model.save(folder / "again.keras")
    ids, targets = np.load(archives + "/data.npz").values()
    found = {{"predictions": model.predict(ids, verbose=0), "frozen": split.frozen, "remap": split.remap}}
    found["trainable"] = split.trainable
    model.train_on_batch(ids, targets)
    np.savez(folder / "found.npz", **found, **{{"one more step": model.predict(ids, verbose=0)}})
"""


@pytest.mark.parametrize(
    ("imports", "names"),
    [
        ("import splitembed\nimport keras", sorted(MAKE, key=lambda name: name == "subclassed")),
        pytest.param("import keras\nimport splitembed", ["functional"], marks=pytest.mark.slow),
    ],
    ids=["splitembed first", "Keras first"],
)
def test_a_fresh_process_loads_after_importing_only_the_package(imports, names, saved, tmp_path, no_live_tables):
    folder, expected = saved
    np.savez(folder / "data.npz", ids=IDS, targets=TARGETS)
    code = IN_A_FRESH_PROCESS.format(imports=imports)
    run_fresh(code, *map(json.dumps, (str(folder), str(tmp_path), names)))
    for name in names:
        assert_same_facts(np.load(tmp_path / name / "found.npz"), expected[name])
        split = SplitTable.open(tmp_path / name, verify=True)
        assert (list(split.vocabulary), split.padding) == (WORDS, 0)
        same_bits(split.trainable, expected[name]["trainable"])
        assert_same_facts(facts(keras.models.load_model(tmp_path / name / "again.keras")), expected[name])


@pytest.mark.parametrize("name", ["subclassed", "two layers"])
def test_loading_in_the_same_process_shares_the_live_table(name, tmp_path):
    model = trained(name, make_split())
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for first, second in zip(embeddings_in(model), embeddings_in(again), strict=True):
        assert np.shares_memory(first.to_split().frozen, second.to_split().frozen)
    assert_same_facts(facts(again), facts(model))


def test_config_is_small_and_contains_no_token(saved):
    with zipfile.ZipFile(saved[0] / "functional.keras") as archive:
        config = archive.read("config.json").decode()
    # four layers and an optimizer
    assert len(config) < 6000
    assert not any(word and word in config for word in ("[UNK]", "\u00e9t\u00e9", json.dumps("\u00e9t\u00e9")))


def test_all_options_of_the_layer_are_restored(tmp_path, no_live_tables):
    layer = SplitEmbedding(
        make_split(),
        mask_zero=True,
        embeddings_regularizer=keras.regularizers.L2(0.1),
        embeddings_constraint=keras.constraints.NonNeg(),
        gradient="dense",
        dtype="mixed_float16",
        name="tokens",
    )
    config = layer.get_config()
    sequential(layer).save(tmp_path / "model.keras")
    del layer
    LIVE.clear()
    again = embeddings_in(keras.models.load_model(tmp_path / "model.keras"))[0]
    assert again.get_config() == config


def test_a_split_without_words_padding_or_trainable_rows_is_restored(tmp_path, no_live_tables):
    matrix = np.arange(8, dtype=np.float32).reshape(4, 2)
    model = sequential(SplitEmbedding(SplitTable.from_matrix(matrix, [])))
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    expected = model.predict(IDS % 4, verbose=0)
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "model.keras")
    again.load_weights(tmp_path / "model.weights.h5")
    split = embeddings_in(again)[0].to_split()
    same_bits(split.combine(), matrix)
    assert split.vocabulary is None and split.padding is None
    same_bits(again.predict(IDS % 4, verbose=0), expected)


def test_a_detached_split_needs_no_file(tmp_path):
    make_split().save(tmp_path)
    split = SplitTable.open(tmp_path)
    detached = split.detached()
    for name in ("frozen.h5", "trainable.h5"):
        (tmp_path / name).unlink()
    assert np.shares_memory(detached.frozen, split.frozen) and detached.table.path is None
    detached.save(tmp_path / "again")
    again = SplitTable.open(tmp_path / "again", verify=True)
    same_bits(again.combine(), make_split().combine())
    assert list(again.vocabulary) == WORDS and list(again.table.words)[1:] == ["the", "\u00e9t\u00e9", "of"]


# Refusals


Contents = dict[str, bytes]


def contents_of(archive) -> Contents:
    """Return the members of a saved model, by name."""
    with zipfile.ZipFile(archive) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_archive(archive, contents: Contents) -> None:
    """Write an archive of the given members."""
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)


def tables_in(contents: Contents) -> Contents:
    return {name: content for name, content in contents.items() if name.startswith("assets/")}


def names_of(contents: Contents) -> dict[str, str]:
    """Return the names of the frozen and of the trainable table."""
    return {name.rpartition("/")[2].partition("-")[0].partition(".")[0]: name for name in tables_in(contents)}


def with_part(part: str, change):
    """Return a function that replaces one table by that of the other archive, removes it, or changes its bytes."""

    def changed(ours: Contents, other: Contents) -> Contents:
        name = names_of(ours)[part]
        rest = {each: content for each, content in ours.items() if each != name}
        if change == "other":
            return {**rest, name: other[names_of(other)[part]]}
        return rest if change is None else {**rest, name: change(ours[name])}

    return changed


def without_tables(ours: Contents) -> Contents:
    return {name: content for name, content in ours.items() if name not in tables_in(ours)}


# name: the change of the archive, the error
FAULTS = {
    "another frozen table": (with_part("frozen", "other"), "was made for the frozen table {ours}; .* is {other}"),
    "another trainable table": (with_part("trainable", "other"), "The frozen table {other} of .* was not found at"),
    "both tables of another split": (
        lambda ours, other: {**without_tables(ours), **tables_in(other)},
        "The archive's table of layer '.*' belongs to another split: its frozen fingerprint is {other}, .* is {ours}",
    ),
    "no frozen table": (with_part("frozen", None), r"The frozen table {ours} of .* was not found at .*frozen\.h5"),
    "no trainable table": (with_part("trainable", None), "The archive holds no tables of layer '.*'"),
    "cut short": (with_part("frozen", lambda content: content[:-20]), "h5 is (not as splitembed wrote it|damaged)"),
    "foreign": (with_part("trainable", lambda content: b"\x80\x04"), "trainable.h5 is a file without the head"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_damaged_and_exchanged_tables_are_refused(fault, tmp_path, no_live_tables):
    splits, (change, message) = {"ours": make_split(), "other": make_split(seed=1)}, FAULTS[fault]
    for name, split in splits.items():
        sequential(SplitEmbedding(split)).save(tmp_path / f"{name}.keras")
    contents = {name: contents_of(tmp_path / f"{name}.keras") for name in splits}
    write_archive(tmp_path / "ours.keras", change(contents["ours"], contents["other"]))
    LIVE.clear()
    fingerprints = {name: split.fingerprint for name, split in splits.items()}
    with pytest.raises(ValueError, match=message.format(**fingerprints)):
        keras.models.load_model(tmp_path / "ours.keras")


def test_a_flipped_bit_is_refused(tmp_path, no_live_tables):
    split = make_split()
    sequential(SplitEmbedding(split)).save(tmp_path / "model.keras")
    content = bytearray((tmp_path / "model.keras").read_bytes())
    content[content.index(split.frozen.tobytes())] ^= 1
    (tmp_path / "model.keras").write_bytes(content)
    LIVE.clear()
    with pytest.raises(zipfile.BadZipFile, match=r"frozen-\w+\.h5"):
        keras.models.load_model(tmp_path / "model.keras")


@pytest.mark.parametrize("name", ["functional", "two layers"])
def test_a_model_from_an_archive_without_tables_cannot_predict(name, tmp_path, no_live_tables):
    trained(name, make_split()).save(tmp_path / "model.keras")
    write_archive(tmp_path / "model.keras", without_tables(contents_of(tmp_path / "model.keras")))
    LIVE.clear()
    model = keras.models.load_model(tmp_path / "model.keras")
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no tables"):
        model.predict(IDS, verbose=0)


# Copies


def test_clone_shares_the_live_table():
    model = functional(SplitEmbedding(make_split()))
    clone = keras.models.clone_model(model)
    first, second = embeddings_in(model)[0], embeddings_in(clone)[0]
    assert first is not second and first.trainable_rows is not second.trainable_rows
    assert np.shares_memory(first.to_split().frozen, second.to_split().frozen)
    handles = [np.asarray(memoryview(layer._constants.frozen.read_value())) for layer in (first, second)]
    assert np.shares_memory(*handles)
    same_bits(clone.predict(IDS, verbose=0), model.predict(IDS, verbose=0))


@pytest.mark.parametrize("copy", [deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_models_and_layers_can_be_copied_and_pickled(copy, no_live_tables):
    model = trained("sequential", make_split())
    expected = model.predict(IDS, verbose=0)
    same_bits(copy(model).predict(IDS, verbose=0), expected)
    same_bits(copy(embeddings_in(model)[0])(IDS), embeddings_in(model)[0](IDS))


def test_a_live_table_is_forgotten_with_its_last_layer():
    layer = SplitEmbedding(make_split())
    config = layer.get_config()
    spec = layer._described()
    assert spec in LIVE
    del layer
    gc.collect()
    assert spec not in LIVE
    assert SplitEmbedding.from_config(config)._split is None


# Weights and checkpoints


def big(seed: int = 0) -> keras.Model:
    """20,000 tokens, ten of which train: 4 MB of frozen rows."""
    matrix = np.random.default_rng(seed).normal(size=(20_000, 50)).astype(np.float32)
    words = [f"word-{token_id}" for token_id in range(20_000)]
    return sequential(SplitEmbedding(SplitTable.from_matrix(matrix, range(10), vocabulary=words)))


def size_of(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*"))


def save_weights(model, folder):
    model.save_weights(folder / "model.weights.h5")
    return lambda other: other.load_weights(folder / "model.weights.h5")


def save_checkpoint(model, folder):
    path = tf.train.Checkpoint(model=model).save(folder / "checkpoint")
    return lambda other: tf.train.Checkpoint(model=other).restore(path).assert_existing_objects_matched()


@pytest.mark.parametrize("save", [save_weights, save_checkpoint])
def test_weights_are_small_and_restore_the_predictions(save, tmp_path):
    model = big()
    model.compile("sgd", "mse")
    model.fit(IDS, TARGETS, verbose=0)
    load = save(model, tmp_path)
    assert size_of(tmp_path) < 100_000
    again = big()
    load(again)
    same_bits(again.predict(IDS, verbose=0), model.predict(IDS, verbose=0))
    assert (embeddings_in(again)[0].to_split().trainable[1] != embeddings_in(big())[0].to_split().trainable[1]).any()


def variants() -> dict[str, SplitTable]:
    """Return splits of the same sizes as `make_split`, which only their fingerprints distinguish."""
    split = make_split()
    arrays = split.frozen, split.remap, split.trainable
    swapped = split.remap[[0, 1, 3, 2, 4, 5]]
    return {
        "frozen": make_split(seed=1),
        "remap": SplitTable.from_arrays(arrays[0], swapped, arrays[2], vocabulary=WORDS, padding=0),
        "vocabulary": SplitTable.from_arrays(*arrays, vocabulary=[*WORDS[:-1], "on"], padding=0),
    }


# both formats run the same checks
@pytest.mark.parametrize(
    ("kind", "save"),
    [("frozen", save_weights), ("remap", save_weights), ("vocabulary", save_weights), ("remap", save_checkpoint)],
)
def test_weights_of_another_split_are_refused(kind, save, tmp_path):
    split, other = make_split(), variants()[kind]
    load, model = save(sequential(SplitEmbedding(split)), tmp_path), sequential(SplitEmbedding(other))
    with pytest.raises(ValueError, match=rf"layer '.*' belongs to another split: its {kind} fingerprint is") as caught:
        load(model)
    name = "fingerprint" if kind == "frozen" else f"{kind}_fingerprint"
    assert getattr(split, name) in str(caught.value) and getattr(other, name) in str(caught.value)
    same_bits(embeddings_in(model)[0].to_split().trainable, other.trainable)


def resized() -> dict[str, SplitTable]:
    """Return splits of which each has one other size, on the same frozen rows if possible."""
    split = make_split()
    more = [*split.trainable, split.trainable[0]]
    remap = split.remap.tolist()
    return {
        "num_tokens is 6, the layer's is 7": SplitTable.from_arrays(
            split.frozen, [*remap, 0], split.trainable, vocabulary=[*WORDS, "new"], padding=0
        ),
        "num_trainable is 2, the layer's is 3": SplitTable.from_arrays(
            split.frozen, split.remap, more, vocabulary=WORDS, padding=0
        ),
        "num_frozen is 4, the layer's is 5": SplitTable.from_arrays(
            np.vstack([split.frozen, split.frozen[:1]]), split.remap, split.trainable, vocabulary=WORDS, padding=0
        ),
        "dim is 3, the layer's is 2": SplitTable.from_arrays(
            split.frozen[:, :2], split.remap, split.trainable[:, :2], vocabulary=WORDS, padding=0
        ),
    }


@pytest.mark.parametrize(
    ("difference", "save"),
    [*((each, save_weights) for each in resized()), ("num_trainable is 2, the layer's is 3", save_checkpoint)],
)
def test_weights_of_another_size_are_refused_with_both_sizes(difference, save, tmp_path):
    ids = keras.Input((None,), dtype="int32")
    load = save(keras.Sequential([ids, SplitEmbedding(make_split())]), tmp_path)
    model = keras.Sequential([ids, SplitEmbedding(resized()[difference])])
    before = model.get_weights()
    with pytest.raises(ValueError, match=f"belongs to another split: its {difference}"):
        load(model)
    for found, expected in zip(model.get_weights(), before, strict=True):
        same_bits(found, expected)


def test_a_checkpoint_of_another_split_is_a_fingerprint_error(tmp_path):
    load = save_checkpoint(sequential(SplitEmbedding(make_split())), tmp_path)
    with pytest.raises(FingerprintError):
        load(sequential(SplitEmbedding(make_split(seed=1))))


def test_a_weights_file_contains_rows_and_fingerprints(tmp_path):
    save_weights(sequential(SplitEmbedding(make_split())), tmp_path)
    found = {}

    def note(name, item):
        if "split_embedding" in name and isinstance(item, h5py.Dataset):
            found[name.rpartition("/")[2]] = item[:]

    with h5py.File(tmp_path / "model.weights.h5") as file:
        file.visititems(note)
    sizes = {"num_tokens": "6", "num_frozen": "4", "num_trainable": "2", "dim": "3"}
    fingerprints = {"frozen_fingerprint", "remap_fingerprint", "vocabulary_fingerprint"}
    assert found.keys() == {"trainable_rows", *fingerprints, *sizes}
    assert bytes(found["frozen_fingerprint"]).decode() == make_split().fingerprint
    assert {name: bytes(found[name]).decode() for name in sizes} == sizes
    same_bits(found["trainable_rows"], make_split().trainable)


def test_weights_of_another_layer_are_refused_by_name(tmp_path):
    load = save_weights(sequential(keras.layers.Embedding(6, 3)), tmp_path)
    with pytest.raises(ValueError, match="hold .*, expected .*'trainable_rows'.* of a SplitEmbedding"):
        load(sequential(SplitEmbedding(make_split())))


def test_the_frozen_table_is_not_a_weight(tmp_path):
    model = sequential(SplitEmbedding(make_split()))
    assert [weight.shape for weight in model.weights] == [(2, 3), (3, 1), (1,)]
    assert not model.non_trainable_weights
    save_checkpoint(model, tmp_path)
    shapes = dict(tf.train.list_variables(str(tmp_path))).values()
    assert [2, 3] in shapes and [4, 3] not in shapes and [6] not in shapes


def test_layers_rebuilt_from_a_config_start_from_their_trainable_rows():
    """The two splits differ only in their trainable rows."""
    split = make_split()
    other = split.with_trainable(split.trainable + 1)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, [SplitEmbedding(split, name="a")(ids), SplitEmbedding(other, name="b")(ids)])
    rebuilt = keras.Model.from_config(model.get_config())
    for name, expected in (("a", split), ("b", other)):
        np.testing.assert_array_equal(rebuilt.get_layer(name).to_split().trainable, expected.trainable)
        np.testing.assert_array_equal(rebuilt.get_layer(name).trainable_rows.numpy(), expected.trainable)


@pytest.mark.parametrize("combiner", [None, "mean"])
def test_a_layer_without_tables_raises_inside_xla(combiner, no_live_tables):
    config = SplitEmbedding(make_split(), combiner=combiner).get_config()
    config["split"]["frozen_fingerprint"] = "sha256:" + "0" * 64
    layer = SplitEmbedding.from_config(config)
    with pytest.raises(MissingTableError, match="has no tables"):
        tf.function(layer, jit_compile=True)(tf.constant([[0, 1]]))


# Legacy files


@pytest.mark.parametrize("name", ["functional", "sequential"])
def test_a_legacy_file_is_refused_when_it_is_written(name, tmp_path):
    model = MAKE[name](SplitEmbedding(make_split()))
    with pytest.raises(SplitError, match=r"cannot be saved in a legacy \.h5 file.*path that ends in \.keras"):
        model.save(tmp_path / "old.h5")
    # the layer can be saved after the refusal
    model.save(tmp_path / "new.keras")
    assert keras.models.load_model(tmp_path / "new.keras").predict(IDS, verbose=0).shape == (4, 1)
