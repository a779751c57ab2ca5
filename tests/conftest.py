"""What every test stands on: one Hypothesis profile, Keras on TensorFlow."""

import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")  # tests/layers/test_every_backend.py runs on the others too

import pytest
from hypothesis import HealthCheck, settings

collect_ignore = ["helpers"]

# Derandomized: the same examples on every machine. No deadline: TensorFlow's first trace takes seconds.
settings.register_profile(
    "splitembed", derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("splitembed")


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """An empty data folder."""
    monkeypatch.setenv("SPLITEMBED_DATA", str(tmp_path))
    return tmp_path


def pytest_collection_finish():
    """Exclude the imported libraries from garbage collection, which takes 8 % of the tests' time otherwise."""
    gc.collect()
    gc.freeze()
