"""Keras learns of our classes whichever is imported first, and is left as it was. Each test has a Python of its own."""

import pytest

from tests.helpers.fresh import ROOT, run_fresh

# A Keras that imports in no time, and classes to register that only note when they were imported.
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
from splitembed.layers import registration
registration._MODULES = ("classes",)
hooks = [each for each in sys.meta_path if isinstance(each, registration._AfterKeras)]
assert len(hooks) == 1, "importing splitembed without Keras sets the hook"
"""
AFTER = """
import keras
assert events.seen == ["keras starts", "keras is there", "classes"], events.seen
assert not any(isinstance(each, registration._AfterKeras) for each in sys.meta_path), "the hook is gone"
assert type(keras.__spec__.loader).__name__ == type(keras.__loader__).__name__ == "SourceFileLoader"
assert "keras is there" in inspect.getsource(keras)
assert importlib.resources.files("keras").joinpath("data.txt").read_text() == "data"
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
        "from splitembed.layers.embedding import SplitEmbedding; import keras",
        "from splitembed import LazyAdam; import keras",
        "import splitembed.gradients.rows; import keras",
        "import splitembed.gradients.partial_embedding; import keras",
        "import splitembed.models.replace_split; import keras",
        "import splitembed.lookup.static; import keras",
        "import splitembed.layers.saving; import keras",
    ],
)
def test_keras_knows_our_classes(code):
    run_fresh(
        code
        + """
import splitembed
for name in ("SplitEmbedding", "LazyAdam", "PartialEmbedding", "GradientGate", "RowGradientOptimizer"):
    assert keras.saving.get_registered_object("splitembed>" + name) is getattr(splitembed, name)
"""
    )
