"""Layers on one frozen table: an archive stores the table once, and loaded layers share it."""

import shutil
import zipfile

import keras
import numpy as np
import pytest

from splitembed import SplitEmbedding, SplitTable
from splitembed.layers import saving
from splitembed.layers.spec import LIVE
from tests.helpers.bits import same_bits
from tests.helpers.fresh import run_fresh
from tests.helpers.models import IDS, Subclassed, embeddings_in, functional, head, sequential

FROZEN = np.vstack([np.zeros(3), np.random.default_rng(0).normal(size=(7, 3))]).astype(np.float32)
WORDS = [["", "[UNK]", "the", "cat", "sat", "on"], ["", "the", "dog", "[UNK]", "ran", "far", "away"]]
REMAPS = [[0, ~0, 1, 2, ~1, 3], [0, 1, 4, ~0, 5, 6, ~1]]


def split_on(frozen: np.ndarray, which: int) -> SplitTable:
    """Return one of two splits with different vocabularies, remaps and trainable rows on the same frozen rows."""
    rows = np.random.default_rng(which + 1).normal(size=(2, 3)).astype(np.float32)
    return SplitTable.from_arrays(frozen, REMAPS[which], rows, vocabulary=WORDS[which], padding=0)


def layers(frozen: np.ndarray = FROZEN) -> list[SplitEmbedding]:
    return [SplitEmbedding(split_on(frozen, which)) for which in range(2)]


def nested() -> keras.Model:
    """A model with one layer in a nested model and another outside it."""
    first, second = layers()
    ids = keras.Input((None,), dtype="int32")
    outside = keras.layers.GlobalAveragePooling1D()(second(ids))
    return keras.Model(ids, keras.layers.Concatenate()([functional(first)(ids), outside]))


def twice_nested() -> keras.Model:
    """A model with a layer two levels deep, and another on a copy of the rows."""
    ids = keras.Input((None,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(SplitEmbedding(split_on(FROZEN.copy(), 1))(ids))
    return keras.Model(ids, keras.layers.Concatenate()([keras.Sequential([functional(layers()[0])])(ids), pooled]))


@keras.saving.register_keras_serializable("tests")
class TwoInAList(keras.Model):
    """A subclassed model with its layers in a list, under the name of a folder of the archive."""

    def __init__(self, assets: list, **kwargs) -> None:
        super().__init__(**kwargs)
        self.assets, self.parts = assets, head()

    def call(self, ids):
        tensor = sum(embedding(ids) for embedding in self.assets)
        for part in self.parts:
            tensor = part(tensor)
        return tensor

    def get_config(self):
        return {**super().get_config(), "assets": [keras.saving.serialize_keras_object(each) for each in self.assets]}

    @classmethod
    def from_config(cls, config):
        return cls([keras.saving.deserialize_keras_object(each) for each in config.pop("assets")], **config)


MODELS = {
    "functional": lambda: functional(*layers()),
    "nested": nested,
    "twice nested": twice_nested,
    "in a list": lambda: TwoInAList(layers()),
    "subclassed": lambda: Subclassed(keras.Sequential([nested(), keras.layers.Reshape((-1, 1))])),
    "three": lambda: functional(*layers(), SplitEmbedding(split_on(FROZEN, 0))),
}


def files_in(folder, suffix: str = ".h5") -> list[str]:
    return sorted(path.name for path in folder.rglob(f"*{suffix}"))


def tables_in(archive) -> dict[str, int]:
    """Return the number of tables of each kind in an archive."""
    with zipfile.ZipFile(archive) as file:
        names = [name for name in file.namelist() if name.startswith("assets/")]
    assert all(name.endswith(".h5") for name in names)
    return {kind: sum(kind in name for name in names) for kind in ("frozen", "trainable")}


def assert_one_table_in_memory(model: keras.Model) -> None:
    first, *others = embeddings_in(model)
    for other in others:
        assert np.shares_memory(first.to_split().frozen, other.to_split().frozen)
        handles = [np.asarray(memoryview(each._constants.frozen.read_value())) for each in (first, other)]
        assert np.shares_memory(*handles)


@pytest.mark.parametrize("name", MODELS)
def test_a_shared_table_is_stored_once_and_shared_after_loading(name, tmp_path):
    model = MODELS[name]()
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "model.keras")
    assert tables_in(tmp_path / "model.keras") == {"frozen": 1, "trainable": len(embeddings_in(model))}
    splits = [layer.to_split() for layer in embeddings_in(model)]
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "model.keras")
    assert_one_table_in_memory(again)
    assert embeddings_in(again)[0].to_split().table.mapped
    assert not np.shares_memory(embeddings_in(again)[0].to_split().frozen, splits[0].frozen)
    same_bits(again.predict(IDS, verbose=0), expected)
    for layer, split in zip(embeddings_in(again), splits, strict=True):
        same_bits(layer.to_split().combine(), split.combine())
        assert layer.to_split().vocabulary == split.vocabulary
        assert list(layer.to_split().table.words)[1:4] in (["the", "cat", "on"], ["the", "", ""])


def test_different_rows_are_stored_as_different_tables(tmp_path):
    model = functional(*layers(), *layers(FROZEN + np.float32(1) * (FROZEN != 0)))
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "model.keras")
    assert tables_in(tmp_path / "model.keras") == {"frozen": 2, "trainable": 4}
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "model.keras")
    same_bits(again.predict(IDS, verbose=0), expected)
    first, second, third, fourth = (layer.to_split().frozen for layer in embeddings_in(again))
    assert np.shares_memory(first, second) and np.shares_memory(third, fourth) and not np.shares_memory(first, third)


def test_every_archive_is_complete(tmp_path):
    model = functional(*layers())
    for name in ("first", "second"):
        model.save(tmp_path / f"{name}.keras")
        sequential(layers()[1]).save(tmp_path / f"{name} other.keras")
    for archive in sorted(tmp_path.iterdir()):
        assert tables_in(archive)["frozen"] == 1
    (tmp_path / "first.keras").unlink()
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "second.keras")
    same_bits(again.predict(IDS, verbose=0), model.predict(IDS, verbose=0))


def test_unzipped_models_store_and_share_the_table(tmp_path):
    model = functional(*layers())
    expected = model.predict(IDS, verbose=0)
    for name in ("first", "second"):
        model.save(tmp_path / name, zipped=False)
    for name in ("first", "second"):
        frozen, *trainable = files_in(tmp_path / name / "assets")
        assert frozen.startswith("frozen-") and trainable == ["trainable.h5"] * 2
    shutil.rmtree(tmp_path / "first")
    shutil.move(tmp_path / "second", tmp_path / "moved")
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "moved")
    assert_one_table_in_memory(again)
    same_bits(again.predict(IDS, verbose=0), expected)


def test_the_split_of_one_layer_opens_from_an_unpacked_archive(tmp_path):
    model = functional(*layers())
    model.save(tmp_path / "model.keras")
    shutil.unpack_archive(tmp_path / "model.keras", tmp_path / "unpacked", "zip")
    paths = sorted((tmp_path / "unpacked").rglob("trainable.h5"))
    assert len(paths) == 2
    found = [SplitTable.open(path.parent, verify=True).combine().tobytes() for path in paths]
    assert sorted(found) == sorted(layer.to_split().combine().tobytes() for layer in embeddings_in(model))


def test_save_assets_writes_only_into_its_folder(tmp_path):
    """A folder named "assets" above it is not an archive of Keras."""
    folder = tmp_path / "assets" / "mine"
    folder.mkdir(parents=True)
    layer = layers()[0]
    layer.save_assets(str(folder))
    assert [path.parent for path in tmp_path.rglob("*.h5")] == [folder, folder]
    shutil.move(folder, tmp_path / "moved")
    same_bits(SplitTable.open(tmp_path / "moved", verify=True).combine(), layer.to_split().combine())


def test_archives_with_a_copy_of_the_table_for_each_layer_load(tmp_path):
    """Archives had this form before layers shared the table."""
    model = functional(*layers())
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        contents = {name: file.read(name) for name in file.namelist()}
    (frozen,) = (contents.pop(name) for name in list(contents) if "frozen-" in name)
    with zipfile.ZipFile(tmp_path / "older.keras", "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)
            if name.endswith("trainable.h5"):
                file.writestr(name.replace("trainable.h5", "frozen.h5"), frozen)
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "older.keras")
    assert_one_table_in_memory(again)
    same_bits(again.predict(IDS, verbose=0), expected)


def test_a_loaded_layer_shares_the_live_table_of_another_model(tmp_path):
    sequential(layers()[0]).save(tmp_path / "model.keras")
    LIVE.clear()
    other = sequential(layers()[1])
    # registers the live table
    other.get_config()
    again = keras.models.load_model(tmp_path / "model.keras")
    assert np.shares_memory(embeddings_in(again)[0].to_split().frozen, embeddings_in(other)[0].to_split().frozen)


def test_the_table_is_read_if_mapped_files_cannot_be_removed(tmp_path, monkeypatch):
    model = functional(*layers())
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "model.keras")
    LIVE.clear()
    monkeypatch.setattr(saving, "_MAPPED_FILES_CAN_BE_REMOVED", False)
    again = keras.models.load_model(tmp_path / "model.keras")
    assert not embeddings_in(again)[0].to_split().table.mapped
    assert_one_table_in_memory(again)
    same_bits(again.predict(IDS, verbose=0), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_narrow_tables_are_shared(dtype, tmp_path):
    splits = [split_on(FROZEN, which).with_frozen_dtype(dtype) for which in range(2)]
    model = functional(*map(SplitEmbedding, splits))
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "model.keras")
    assert tables_in(tmp_path / "model.keras")["frozen"] == 1
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "model.keras")
    assert_one_table_in_memory(again)
    same_bits(again.predict(IDS, verbose=0), expected)


IN_LITTLE_MEMORY = """
import sys
import numpy as np, keras, splitembed
from benchmarks.accuracy.memory import PeakMemory
# the first model also allocates memory for Keras
keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).predict(np.zeros((1, 2)), verbose=0)
with PeakMemory() as loading:
    model = keras.models.load_model(sys.argv[1])
with PeakMemory() as saving:
    model.save(sys.argv[2])
print(loading.growth, saving.growth)
"""


def test_loading_and_saving_copy_no_table_into_memory(tmp_path):
    """The table has 120 MB of frozen rows."""
    rows = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(400_000, 75))
    rows[::1000] = 1
    splits = [SplitTable.from_arrays(rows, np.arange(last), np.zeros((0, 75))) for last in (400_000, 100_000)]
    functional(*map(SplitEmbedding, splits)).save(tmp_path / "model.keras")
    found = run_fresh(IN_LITTLE_MEMORY, tmp_path / "model.keras", tmp_path / "again.keras").split()
    if found == ["None", "None"]:
        pytest.skip("this system does not report anonymous memory")
    assert max(map(int, found)) < 40_000_000, found
    assert (tmp_path / "again.keras").stat().st_size < 125_000_000
