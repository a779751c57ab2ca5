"""Keras classes are registered in either order of imports, and Keras is unchanged. Each test runs in a new process."""

import pytest

from tests.helpers.fresh import ROOT, run_fresh

# a Keras that is imported quickly, and classes that only record when they were imported
FAKE_KERAS = """
import events
events.seen.append("keras starts")
events.may_fail()
events.seen.append("keras is there")
"""
EVENTS = """
seen, failures = [], []
def may_fail():
    if failures:
        raise failures.pop()
"""
BEFORE = """
import importlib.resources, importlib.util, inspect, sys
import events
from splitembed import registration
assert "keras" not in sys.modules
registration._MODULES = ("classes",)
"""
AFTER = """
import keras
assert events.seen == ["keras starts", "keras is there", "classes"], events.seen
assert type(keras.__spec__.loader).__name__ == type(keras.__loader__).__name__ == "SourceFileLoader"
assert "keras is there" in inspect.getsource(keras)
assert importlib.resources.files("keras").joinpath("data.txt").read_text() == "data"
"""

KNOWS_ALL = """
import keras, splitembed
names = ("SplitEmbedding", "SplitReversibleEmbedding", "LazyAdam", "LazySGD", "PartialEmbedding", "GradientGate",
         "RowGradientOptimizer")
# before the loop, in which a name that is not registered would be imported and registered
registered = [keras.saving.get_registered_object("splitembed>" + name) for name in names]
namespaces = splitembed, splitembed.gradients, splitembed.optimizers
for name, found in zip(names, registered):
    assert found is next(getattr(each, name) for each in namespaces if hasattr(each, name)), name
"""


@pytest.fixture
def fake_keras(tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text(FAKE_KERAS)
    (tmp_path / "keras" / "data.txt").write_text("data")
    (tmp_path / "events.py").write_text(EVENTS)
    (tmp_path / "classes.py").write_text('import events, keras\nevents.seen.append("classes")')
    return tmp_path, ROOT


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import keras", id="after us"),
        pytest.param("import csv, json, keras", id="after others"),
        pytest.param('importlib.util.find_spec("keras"); import keras', id="after a search for it"),
        pytest.param("import keras; registration.register_with_keras()", id="twice"),
        pytest.param("registration.register_with_keras(); import keras", id="hooked twice"),
        pytest.param(
            """
events.failures.append(ImportError("no backend"))
try:
    import keras
except ImportError as error:
    assert str(error) == "no backend"
assert events.seen.pop() == "keras starts"
import keras
""",
            id="at the second try",
        ),
    ],
)
def test_registers_once_keras_is_there(code, fake_keras):
    run_fresh(BEFORE + code + AFTER, importable=fake_keras)


def test_a_missing_keras_stays_missing():
    run_fresh("""
import sys
import splitembed
sys.path[:] = []
try:
    import keras
except ModuleNotFoundError as error:
    assert error.name == "keras"
else:
    raise AssertionError("found one")
""")


@pytest.mark.parametrize(
    "code",
    [
        "import tensorflow, splitembed, keras",
        pytest.param("from splitembed import LazyAdam", marks=pytest.mark.slow),
        pytest.param("import splitembed.gradients.rows", marks=pytest.mark.slow),
    ],
)
def test_keras_knows_our_classes(code):
    run_fresh(code + KNOWS_ALL)


@pytest.mark.slow
def test_keras_knows_our_classes_when_two_threads_import_it():
    run_fresh(
        "import threading\n"
        "names = ['splitembed.layers.embedding', 'keras', 'splitembed', 'splitembed.gradients']\n"
        "threads = [threading.Thread(target=__import__, args=(name,)) for name in names]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n" + KNOWS_ALL
    )
