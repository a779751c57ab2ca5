"""Split KerasHub models on disk: weights files work, whole files and presets are refused until they are combined."""

import json

import numpy as np
import pytest

import splitembed as se
from tests.helpers import hub_models as hub
from tests.helpers.bits import all_same_bits
from tests.helpers.fresh import run_fresh

# a warning of Keras about its files
pytestmark = pytest.mark.filterwarnings("ignore:Skipping nested container:UserWarning")

# a process without splitembed
WITHOUT = """
import sys, json
import keras_hub
import keras, numpy as np

folder, results = sys.argv[1], {}
for name in json.load(open(f"{folder}/names.json")):
    inputs = dict(np.load(f"{folder}/{name}-inputs.npz"))
    backbone = keras_hub.models.Backbone.from_preset(f"{folder}/{name}")
    results[f"{name}/outputs"] = np.asarray(keras.tree.flatten(backbone(inputs))[0])
    results[f"{name}/vocabulary"] = backbone.vocabulary_size
    results[f"{name}/table"] = np.asarray(backbone.token_embedding.embeddings)
assert "splitembed" not in sys.modules
np.savez(f"{folder}/results.npz", **results)
"""


@pytest.mark.parametrize(("name", "kind"), [("gpt2", "task"), ("gpt2", "backbone"), ("bert classifier", "task")])
def test_whole_files_and_presets_of_a_split_model_are_refused_and_old_files_kept(name, kind, tmp_path):
    model = hub.MAKE[kind](name)
    path, preset = tmp_path / "model.keras", tmp_path / "preset"
    path.write_bytes(b"the last one")
    hub.split(model, name)
    for method, target in (("save", path), ("save_to_preset", preset), ("export_to_transformers", preset)):
        if hasattr(type(model), method):
            with pytest.raises(NotImplementedError, match=f"{method} of .*save_trainable.*combine_embedding"):
                getattr(model, method)(target)
    assert path.read_bytes() == b"the last one" and not preset.exists()
    backbone = hub.backbone_of(model)
    with pytest.raises(NotImplementedError, match="save of"):
        backbone.save(path)
    se.combine_embedding(model)
    assert not {"save", "save_to_preset", "export_to_transformers"} & {*vars(model), *vars(backbone)}


def test_a_task_made_around_a_split_backbone_is_refused_by_the_layer(tmp_path):
    backbone = hub.make_backbone("gpt2")
    hub.split(backbone, "gpt2")
    task = hub.FAMILIES["gpt2"].task(backbone)
    with pytest.raises(NotImplementedError, match="'token_embedding' is a SplitEmbedding"):
        task.save(tmp_path / "task.keras")
    task.save_weights(tmp_path / "task.weights.h5")


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_weights_load_onto_the_same_split_and_no_other(name, tmp_path):
    task, path = hub.make_task(name, num_layers=1), tmp_path / "task.weights.h5"
    hub.split(task, name)
    task.train_on_batch(hub.inputs_for(task), hub.targets_for(task))
    task.save_weights(path)
    again = hub.make_task(name, num_layers=1)
    hub.split(again, name)
    again.load_weights(path)
    inputs = hub.inputs_for(task)
    all_same_bits(hub.flat(again(inputs)), hub.flat(task(inputs)))
    dense, tables = hub.make_task(name, num_layers=1), hub.tables_of(hub.make_task(name, num_layers=1))
    with pytest.raises(ValueError, match="token_embedding"):
        dense.load_weights(path)
    all_same_bits(hub.tables_of(dense), tables)
    others = se.split_embedding(hub.make_task(name, num_layers=1), [4])
    with pytest.raises(ValueError, match="token_embedding"):
        others.load_weights(path)
    hub.make_task(name, num_layers=1).save_weights(path)
    with pytest.raises(ValueError, match="token_embedding"):
        again.load_weights(path)


def test_a_combined_model_is_a_preset_without_splitembed(tmp_path):
    # KerasHub's config of a tied Llama does not say that it is tied, so that not even a plain one is loaded
    expected, names = {}, [name for name in hub.FAMILIES if name != "llama tied"]
    for name in names:
        task = hub.make_task(name, num_layers=1)
        hub.split(task, name)
        inputs = hub.inputs_for(task, hub.NUM_TOKENS + hub.num_new(name))
        task.train_on_batch(inputs, hub.targets_for(task))
        backbone = se.combine_embedding(task).backbone
        inputs = {key: value for key, value in inputs.items() if key in backbone.input}
        np.savez(tmp_path / f"{name}-inputs.npz", **inputs)
        expected[f"{name}/outputs"] = hub.flat(backbone(inputs))[0]
        expected[f"{name}/vocabulary"] = np.array(hub.NUM_TOKENS + hub.num_new(name))
        expected[f"{name}/table"] = hub.tables_of(task)[0]
        backbone.save_to_preset(tmp_path / name)
    (tmp_path / "names.json").write_text(json.dumps(names))
    run_fresh(WITHOUT, tmp_path, importable=())
    with np.load(tmp_path / "results.npz") as results:
        assert set(results) == set(expected)
        for key, value in expected.items():
            np.testing.assert_array_equal(results[key], value, err_msg=key)


def test_a_combined_task_is_a_preset_too(tmp_path):
    task = hub.make_task("gpt2")
    hub.split(task, "gpt2")
    inputs = hub.inputs_for(task, hub.NUM_TOKENS + hub.NUM_NEW)
    expected = hub.flat(task(inputs))
    se.combine_embedding(task).save_to_preset(tmp_path / "preset")
    all_same_bits(hub.flat(hub.FAMILIES["gpt2"].task.from_preset(str(tmp_path / "preset"))(inputs)), expected)
