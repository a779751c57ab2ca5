"""An archive written by an earlier version loads after changes inside the package."""

import json
import zipfile

import keras
import numpy as np
import pytest

from splitembed.layers.spec import LIVE
from tests.golden.keras_model import IDS, MASK, MODEL, PREDICTIONS
from tests.helpers.languages import LAYER

REGISTERED = {"SplitEmbedding", "SplitReversibleEmbedding", "PartialEmbedding", "GradientGate", "LazyAdam"}

pytestmark = pytest.mark.skipif(LAYER is None, reason="this Keras loads no functional model that calls a layer again")


def moved(config, found: set[str]):
    """The config with every module of the package replaced by a missing one."""
    if isinstance(config, list):
        return [moved(each, found) for each in config]
    if not isinstance(config, dict):
        return config
    config = {name: moved(value, found) for name, value in config.items()}
    if str(config.get("registered_name")).startswith("splitembed>"):
        found.add(config["class_name"])
        config["module"] = "splitembed.missing.module"
    return config


def rewritten(archive, path) -> set[str]:
    """Write the archive with modules that do not exist, and return the names of the classes that they were for."""
    found: set[str] = set()
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(path, "w") as after:
        for info in before.infolist():
            content = before.read(info)
            if info.filename == "config.json":
                content = json.dumps(moved(json.loads(content), found)).encode()
            after.writestr(info, content)
    return found


def assert_predicts_the_recorded_numbers(path) -> keras.Model:
    LIVE.clear()
    model = keras.models.load_model(path)
    expected = np.array(json.loads(PREDICTIONS.read_text(encoding="utf-8")))
    # recorded with six decimals
    np.testing.assert_allclose(model.predict([IDS, MASK], verbose=0), expected, rtol=0, atol=2e-6)
    return model


def test_the_golden_model_loads_and_predicts_the_recorded_numbers():
    model = assert_predicts_the_recorded_numbers(MODEL)
    assert model.optimizer.iterations == 1
    assert np.isfinite(model.train_on_batch([IDS, MASK], IDS))


def test_loading_does_not_depend_on_the_recorded_modules(tmp_path):
    assert rewritten(MODEL, tmp_path / "moved.keras") == REGISTERED
    model = assert_predicts_the_recorded_numbers(tmp_path / "moved.keras")
    assert {type(layer).__name__ for layer in model.layers} >= REGISTERED - {"LazyAdam"}
    assert type(model.optimizer).__name__ == "LazyAdam"
