"""Saving whole models: as Keras does it, and never half."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import splitembed as se
from splitembed.errors import SplitError
from tests.helpers.bits import same_bits
from tests.helpers.models import IDS, make_split, sequential

ROOT = Path(__file__).parents[2]


@pytest.fixture
def model():
    built = sequential(se.SplitEmbedding(make_split()))
    built.compile(se.LazyAdam(0.1), "mse")
    return built


def test_the_file_is_that_of_keras(model, tmp_path):
    se.save_model(model, tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    same_bits(again.predict(IDS, verbose=0), model.predict(IDS, verbose=0))
    assert type(again.optimizer) is se.LazyAdam
    se.save_model(model, str(tmp_path / "model.keras"), include_optimizer=False)
    assert os.listdir(tmp_path) == ["model.keras"]


def test_a_callback_saves_after_each_epoch(model, tmp_path):
    save = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: se.save_model(model, tmp_path / "m.keras"))
    model.fit(IDS, np.zeros(model.output_shape[:1] and model(IDS).shape), epochs=2, verbose=0, callbacks=[save])
    assert os.listdir(tmp_path) == ["m.keras"]


def test_another_name_is_refused(model, tmp_path):
    with pytest.raises(SplitError, match=r"`path` must end in \.keras. Received: '.*model\.h5'"):
        se.save_model(model, tmp_path / "model.h5")


def test_an_error_leaves_the_old_file_and_nothing_else(model, tmp_path, monkeypatch):
    (tmp_path / "model.keras").write_bytes(b"old")

    def fail(path, **_):
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(model, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        se.save_model(model, tmp_path / "model.keras")
    assert (tmp_path / "model.keras").read_bytes() == b"old" and os.listdir(tmp_path) == ["model.keras"]


KILLED = """
import os, signal, sys
from pathlib import Path
from splitembed.models.save_model import save_model

class Model:
    def save(self, path):
        Path(path).write_bytes(b"half")
        if sys.argv[2] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)

save_model(Model(), sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing to kill with")
def test_a_killed_process_leaves_the_old_file_and_the_next_one_no_leftovers(tmp_path):
    path = tmp_path / "model.keras"
    path.write_bytes(b"old")
    codes = []
    for how, content in (("kill", b"old"), ("go on", b"half")):
        codes.append(subprocess.run([sys.executable, "-c", KILLED, str(path), how], cwd=ROOT).returncode)
        assert path.read_bytes() == content
    assert codes == [-signal.SIGKILL, 0] and os.listdir(tmp_path) == ["model.keras"]
