"""Private names of Keras, TensorFlow and CPython are used in `keras_compat.py` alone. Each check is shown to fail."""

import ast
import inspect
import textwrap
from pathlib import Path

import pytest

from splitembed import keras_compat

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "splitembed"
COMPAT = "keras_compat.py"
# adding one needs a good reason
NUM_PRIVATE_NAMES = 21
# documented methods of named tuples
PUBLIC_PARTS = {"_asdict", "_fields", "_replace", "_make"}
PRIVATE_MODULES = ("keras.src", "tensorflow.python", "tensorflow.lite.python", "numpy._core")
TEXT_METHODS = {"replace", "removeprefix", "removesuffix", "startswith", "endswith", "split", "store_text", "text"}
PRIVATE_MECHANISMS = {"sys._getframe", "gc.get_objects", "sys.meta_path", "inspect.currentframe", "inspect.stack"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def defined_names(trees: list[ast.AST]) -> set[str]:
    """Return the private names that modules define: functions, classes, attributes, variables."""
    found = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("self", "cls")
            ):
                found.add(node.attr)
    return {name for name in found if is_private(name)}


def uses(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the private imports and attributes that a module uses, also by a string, with their lines."""
    found = []
    texts = {id(part) for node in ast.walk(tree) for part in parts_of_text(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(node.lineno, name) for name in names if name.startswith(PRIVATE_MODULES)]
            found += [(node.lineno, alias.name) for alias in node.names if is_private(alias.name)]
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names if alias.name.startswith(PRIVATE_MODULES)]
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if dotted in PRIVATE_MECHANISMS or dotted.startswith(PRIVATE_MODULES):
                found.append((node.lineno, dotted))
            elif is_private(node.attr):
                found.append((node.lineno, node.attr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            name = node.value
            if is_name(name) and (name.startswith(PRIVATE_MODULES) or (is_private(name) and len(name) > 1)):
                found.append((node.lineno, name))
    return found


def parts_of_text(node: ast.AST) -> list[ast.AST]:
    """Return strings that are parts of longer ones: in f-strings and in calls of string methods."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TEXT_METHODS:
        return node.args
    return []


def is_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def foreign_uses(package: Path) -> list[str]:
    """Return the uses of private names that the package does not define, outside `keras_compat.py`."""
    paths = sorted(package.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    own = defined_names([tree for path, tree in trees.items() if path.name != COMPAT]) | PUBLIC_PARTS
    return [
        f"{path.relative_to(package)}:{line} {name}"
        for path, tree in trees.items()
        if path.name != COMPAT
        for line, name in uses(tree)
        if name not in own
    ]


def test_private_names_are_used_in_one_module():
    assert foreign_uses(PACKAGE) == []


def private_names(tree: ast.AST) -> set[str]:
    """The private names that a module uses and does not define."""
    return {name for _, name in uses(tree)} - defined_names([tree]) - PUBLIC_PARTS


def test_the_number_of_private_names():
    names = private_names(ast.parse((PACKAGE / COMPAT).read_text(encoding="utf-8")))
    assert len(names) == NUM_PRIVATE_NAMES, sorted(names)
    # those that subclasses override are counted too, once each
    assert set(keras_compat.OVERRIDDEN) < names


def test_another_private_name_is_counted():
    tree = ast.parse("from keras.src import x\nimport sys\na._b = a._b\nsys._getframe()\ndef _own(): ...\nc._own()")
    assert private_names(tree) == {"keras.src.x", "_b", "sys._getframe"}


@pytest.mark.parametrize(
    "source",
    [
        "from keras.src.backend import set_keras_mask",
        "import tensorflow.python.ops",
        "layer._inbound_nodes",
        "getattr(layer, '_inbound_nodes')",
        "layer.__dict__['_inbound_nodes']",
        "import sys\nsys._getframe()",
        "import gc\ngc.get_objects()",
        "keras.src.backend.x",
        "other._own = 1",
    ],
)
def test_the_check_can_fail(tmp_path, source):
    (tmp_path / "module.py").write_text(source)
    assert foreign_uses(tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __init__(self):\n        self._x = 1\n\n    def f(self):\n        return self._x",
        "def _f(): ...",
    ],
)
def test_own_private_names_pass(tmp_path, source):
    (tmp_path / "module.py").write_text(source)
    assert foreign_uses(tmp_path) == []


def overridden_names(package: str) -> set[str]:
    """Return the private names of Keras that its subclasses in a package define, as methods or attributes."""
    import keras

    optimizer = keras.optimizers.Adam()
    optimizer.build([keras.Variable([1.0])])
    # some names are those of TensorFlow's base classes
    private = {name for base in (keras.layers.Layer(), keras.Model(), optimizer) for name in dir(base)}
    waiting, found = [keras.layers.Layer, keras.optimizers.Optimizer], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith(package):
            found |= defined_names([ast.parse(textwrap.dedent(inspect.getsource(kind)))]) & private
    return found


def test_overridden_hooks_of_keras_are_those_that_are_justified():
    assert overridden_names("splitembed.") == set(keras_compat.OVERRIDDEN)


def test_another_overridden_hook_is_found():
    import keras

    class Layer(keras.layers.Layer):
        def _get_call_context(self):
            return None

    assert overridden_names(Layer.__module__) == {"_get_call_context"}
