"""Saving by reference: a `.keras` file names its frozen table, and loading finds the table or refuses."""

import gc
import os
import zipfile

import keras
import numpy as np
import pytest

import splitembed as se
from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.errors import SplitError
from splitembed.layers.spec import LIVE
from tests.helpers.bits import same_bits
from tests.helpers.fresh import run_fresh
from tests.helpers.models import IDS, TARGETS, embeddings_in, functional, sequential

SOURCE = {word: np.full(50, number, np.float32) for number, word in enumerate(["the", "cat", "sat", "on", "mat"])}
# 1 MB of rows
SOURCE |= {f"word-{number}": np.full(50, number / 8, np.float32) for number in range(5_000)}
VOCABULARIES = [["", "[UNK]", "the", "cat", "dog", "sat"], ["", "mat", "on", "ran", "the", "[UNK]"]]


@pytest.fixture
def glove(tmp_path, monkeypatch):
    """A file with a frozen table, in a folder of the search path."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("SPLITEMBED_PATH", str(tmp_path / "shared"))
    se.save_frozen(tmp_path / "shared" / "glove.h5", SOURCE)
    return tmp_path / "shared" / "glove.h5"


def layer_on(glove, which: int = 0, **options) -> SplitEmbedding:
    split = se.build_split(VOCABULARIES[which], glove, seed=which)
    return SplitEmbedding(split, **{"save_by_reference": True, **options})


def trained(model: keras.Model) -> keras.Model:
    model.compile(LazyAdam(0.1), "mse")
    model.fit(IDS, TARGETS, verbose=0)
    return model


def forget() -> None:
    """Remove the live tables, as in a fresh process."""
    LIVE.clear()
    gc.collect()


def tables_in(archive) -> list[str]:
    with zipfile.ZipFile(archive) as file:
        return [name.rpartition("/")[2].partition("-")[0] for name in file.namelist() if name.startswith("assets/")]


IN_A_FRESH_PROCESS = """
import sys
import splitembed, keras
import numpy as np
model = keras.models.load_model(sys.argv[1])
(layer,) = [layer for layer in model._flatten_layers() if type(layer) is splitembed.SplitEmbedding]
split = layer.to_split()
assert split.table.mapped and str(split.table.path) == sys.argv[2], split.table.path
assert "word-17" in split.table.words and list(split.vocabulary)[2:4] == ["the", "cat"]
model.save(sys.argv[3])
np.save(sys.argv[4], model.predict(np.load(sys.argv[5]), verbose=0))
"""


def test_a_small_archive_finds_its_table_in_a_fresh_process(glove, tmp_path):
    model = trained(sequential(layer_on(glove)))
    model.save(tmp_path / "model.keras")
    assert tables_in(tmp_path / "model.keras") == ["trainable.h5"]
    assert (tmp_path / "model.keras").stat().st_size < 100_000 < glove.stat().st_size
    expected = model.predict(IDS, verbose=0)
    np.save(tmp_path / "ids.npy", IDS)
    paths = [tmp_path / name for name in ("model.keras", "shared/glove.h5", "again.keras", "found.npy", "ids.npy")]
    run_fresh(IN_A_FRESH_PROCESS, *paths)
    same_bits(np.load(tmp_path / "found.npy"), expected)
    forget()
    again = keras.models.load_model(tmp_path / "again.keras")
    assert tables_in(tmp_path / "again.keras") == ["trainable.h5"]
    same_bits(again.predict(IDS, verbose=0), expected)
    same_bits(embeddings_in(again)[0].to_split().combine(), embeddings_in(model)[0].to_split().combine())


def test_the_option_is_restored_and_can_be_changed(glove, tmp_path):
    model = trained(sequential(layer_on(glove)))
    model.save(tmp_path / "model.keras")
    forget()
    again = keras.models.load_model(tmp_path / "model.keras")
    (layer,) = embeddings_in(again)
    assert layer.save_by_reference and layer.get_config()["save_by_reference"]
    assert not SplitEmbedding(layer.to_split()).save_by_reference
    layer.save_by_reference = False
    again.save(tmp_path / "whole.keras")
    assert sorted(tables_in(tmp_path / "whole.keras")) == ["frozen", "trainable.h5"]
    glove.unlink()
    forget()
    whole = keras.models.load_model(tmp_path / "whole.keras")
    assert not embeddings_in(whole)[0].save_by_reference
    same_bits(whole.predict(IDS, verbose=0), model.predict(IDS, verbose=0))


def test_a_moved_table_is_found_on_the_search_path(glove, tmp_path, monkeypatch):
    model = trained(sequential(layer_on(glove)))
    expected, fingerprint = model.predict(IDS, verbose=0), embeddings_in(model)[0].to_split().fingerprint
    model.save(tmp_path / "model.keras")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    glove.rename(elsewhere / "renamed.h5")
    forget()
    with pytest.raises(ValueError, match=rf"The frozen table {fingerprint} of .* was not found") as caught:
        keras.models.load_model(tmp_path / "model.keras")
    assert "environment variable SPLITEMBED_PATH" in str(caught.value)
    assert f"the recorded path, {glove}, is outside" in str(caught.value)
    monkeypatch.setenv("SPLITEMBED_PATH", os.pathsep.join([str(tmp_path / "nowhere"), str(elsewhere)]))
    forget()
    again = keras.models.load_model(tmp_path / "model.keras")
    assert embeddings_in(again)[0].to_split().table.path == elsewhere / "renamed.h5"
    same_bits(again.predict(IDS, verbose=0), expected)
    again.save(tmp_path / "again.keras")
    forget()
    same_bits(keras.models.load_model(tmp_path / "again.keras").predict(IDS, verbose=0), expected)


def test_a_path_that_an_archive_names_is_not_opened(glove, tmp_path, monkeypatch):
    model = sequential(layer_on(glove))
    model.save(tmp_path / "model.keras")
    monkeypatch.delenv("SPLITEMBED_PATH")
    forget()
    with pytest.raises(ValueError, match="was not found .*the recorded path, .*glove.h5, is outside"):
        keras.models.load_model(tmp_path / "model.keras")


def test_a_replaced_table_is_not_taken_for_the_old_one(glove, tmp_path):
    model = sequential(layer_on(glove))
    model.save(tmp_path / "model.keras")
    ours = embeddings_in(model)[0].to_split().fingerprint
    se.save_frozen(glove, {word: row + 1 for word, row in SOURCE.items()})
    forget()
    with pytest.raises(ValueError, match=f"The frozen table {ours} of .* was not found"):
        keras.models.load_model(tmp_path / "model.keras")


def test_saving_refuses_a_table_without_a_file(tmp_path, monkeypatch):
    split = se.build_split(VOCABULARIES[0], SOURCE)
    model = sequential(SplitEmbedding(split, save_by_reference=True, name="tokens"))
    with pytest.raises(SplitError, match=r"'tokens' cannot be saved by reference.* Save the split first") as caught:
        model.save(tmp_path / "model.keras")
    assert split.fingerprint in str(caught.value)
    split.save(tmp_path / "tables")
    monkeypatch.setenv("SPLITEMBED_PATH", str(tmp_path / "tables"))
    model = sequential(SplitEmbedding(SplitTable.open(tmp_path / "tables"), save_by_reference=True))
    model.save(tmp_path / "model.keras")
    forget()
    again = keras.models.load_model(tmp_path / "model.keras")
    same_bits(again.predict(IDS, verbose=0), model.predict(IDS, verbose=0))


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_saving_refuses_a_table_whose_file_was_removed_or_replaced(change, glove, tmp_path, monkeypatch):
    model = sequential(layer_on(glove))
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "copy.h5").write_bytes(glove.read_bytes())
    if change == "removed":
        glove.unlink()
    else:
        se.save_frozen(glove, {word: row + 1 for word, row in SOURCE.items()})
    with pytest.raises(SplitError, match="no file of its frozen table .* was found"):
        model.save(tmp_path / "model.keras")
    monkeypatch.setenv("SPLITEMBED_PATH", str(tmp_path / "copies"))
    model.save(tmp_path / "model.keras")
    forget()
    again = keras.models.load_model(tmp_path / "model.keras")
    assert embeddings_in(again)[0].to_split().table.path == tmp_path / "copies" / "copy.h5"


@pytest.mark.parametrize("by_reference", [(True, True), (False, True)])
def test_two_layers_share_the_table(by_reference, glove, tmp_path):
    model = functional(*(layer_on(glove, which, save_by_reference=each) for which, each in enumerate(by_reference)))
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "model.keras")
    assert sorted(tables_in(tmp_path / "model.keras")) == ["frozen"] * (not all(by_reference)) + ["trainable.h5"] * 2
    splits = [layer.to_split() for layer in embeddings_in(model)]
    forget()
    again = keras.models.load_model(tmp_path / "model.keras")
    first, second = (layer.to_split() for layer in embeddings_in(again))
    assert np.shares_memory(first.frozen, second.frozen)
    same_bits(again.predict(IDS, verbose=0), expected)
    for split, found, reference in zip(splits, (first, second), by_reference, strict=True):
        same_bits(found.combine(), split.combine())
        assert found.table.path == (glove if reference else None)
        assert list(found.table.words) == list(split.table.words)


def test_a_live_table_needs_no_file_in_the_same_process(glove, tmp_path):
    model = sequential(layer_on(glove))
    model.save(tmp_path / "model.keras")
    glove.unlink()
    again = keras.models.load_model(tmp_path / "model.keras")
    assert np.shares_memory(embeddings_in(again)[0].to_split().frozen, embeddings_in(model)[0].to_split().frozen)
    same_bits(again.predict(IDS, verbose=0), model.predict(IDS, verbose=0))


def test_a_relative_path_is_saved_as_an_absolute_one(glove, tmp_path, monkeypatch):
    monkeypatch.chdir(glove.parent)
    model = sequential(layer_on("glove.h5"))
    model.save(tmp_path / "model.keras")
    monkeypatch.chdir("/")
    forget()
    again = keras.models.load_model(tmp_path / "model.keras")
    same_bits(again.predict(IDS, verbose=0), model.predict(IDS, verbose=0))
