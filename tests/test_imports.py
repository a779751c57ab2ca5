"""Imports run one way, and Keras is loaded on first use. Each check is proven able to fail."""

import ast
import configparser
import graphlib
import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A module imports only from modules before it; "" is the package's own `__init__`, which gathers the public names.
NUMPY_CORE = (
    "keras_compat",
    "registration",
    "errors",
    "data",
    "arrays",
    "words",
    "paths",
    "foreign",
    "tables",
    "vocabulary",
    "vectors",
    "matching",
    "initializers",
    "coverage",
    "split",
    "difference",
)
ORDER = (*NUMPY_CORE, "lookup", "layers", "optimizers", "gradients", "models", "", "cli", "__main__")
HEAVY = ("tensorflow", "keras")


def module_names(package: Path) -> dict[str, Path]:
    """Return the path of every module of a package folder, by its dotted name."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports_of(name: str, modules: dict[str, Path], nodes: list[ast.AST]) -> set[str]:
    """Return the imports of syntax nodes: modules of the package by full name, others by their first part."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if modules[name].name == "__init__.py" else name.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            full = {f"{base}.{alias.name}" for alias in node.names}
            found |= {each if each in modules else base for each in full}
    own = name.split(".")[0]
    return {each if each.split(".")[0] == own else each.split(".")[0] for each in found}


def all_nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def nodes_run_on_import(path: Path) -> list[ast.AST]:
    """Return the nodes that run when a module is imported: all but the bodies of functions."""
    found, waiting = [], [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def unit(module: str) -> str:
    """Return the part of a module's name that ORDER ranks: the file or folder directly under the package."""
    return [*module.split("."), ""][1]


def order_faults(package: Path, order: tuple[str, ...]) -> list[str]:
    """Return every circle, every import of a later module, and every module without a rank."""
    modules = module_names(package)
    graph = {name: imports_of(name, modules, all_nodes(path)) & modules.keys() for name, path in modules.items()}
    faults = [f"{name} is not in the order" for name in modules if unit(name) not in order]
    if faults:
        return faults
    for name, imported in graph.items():
        later = {
            each for each in imported if unit(each) != unit(name) and order.index(unit(each)) > order.index(unit(name))
        }
        faults += [f"{name} imports {each}, which comes after it" for each in sorted(later)]
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        faults.append("circle: " + " <- ".join(error.args[1]))
    return faults


def heavy_modules_after(code: str, *path: Path) -> set[str]:
    """Run code in a fresh interpreter, in the root of the repository, and return the heavy packages that it loads."""
    report = f"import sys\nsys.path[:0] = {[str(each) for each in path]}\n{code}\n"
    report += f"print('loaded:', *(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", report], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].removeprefix("loaded:").split())


def write_package(folder: Path, **sources: str) -> Path:
    package = folder / "made_up"
    package.mkdir()
    for name, source in {"__init__": "", **sources}.items():
        (package / f"{name}.py").write_text(source)
    return package


def test_imports_run_one_way():
    assert order_faults(ROOT / "splitembed", ORDER) == []


@pytest.mark.parametrize(
    ("sources", "fault"),
    [
        ({"a": "from made_up import b", "b": ""}, "made_up.a imports made_up.b, which comes after it"),
        ({"a": "import made_up.b", "b": ""}, "made_up.a imports made_up.b, which comes after it"),
        ({"a": "from . import b", "b": ""}, "made_up.a imports made_up.b, which comes after it"),
        ({"a": "from .b import x", "b": "x = 1"}, "made_up.a imports made_up.b, which comes after it"),
        (
            {"a": "def f():\n    from made_up.b import x", "b": "x = 1"},
            "made_up.a imports made_up.b, which comes after it",
        ),
        ({"a": "from made_up import anything"}, "made_up.a imports made_up, which comes after it"),
        ({"a": "from made_up import b", "b": "import made_up.a"}, "circle: made_up."),
        ({"c": ""}, "made_up.c is not in the order"),
    ],
)
def test_order_check_can_fail(tmp_path, sources, fault):
    faults = order_faults(write_package(tmp_path, **sources), ("a", "b", ""))
    assert any(each.startswith(fault) for each in faults), faults


def test_order_check_passes_a_straight_package(tmp_path):
    package = write_package(tmp_path, __init__="from made_up.b import y", a="x = 1", b="from made_up.a import x as y")
    assert order_faults(package, ("a", "b", "")) == []


def test_modules_of_the_numpy_core_import_no_tensorflow_at_their_top_level():
    modules = module_names(ROOT / "splitembed")
    core = {name: path for name, path in modules.items() if unit(name) in NUMPY_CORE}
    found = {name: imports_of(name, modules, nodes_run_on_import(path)) & set(HEAVY) for name, path in core.items()}
    assert {name: heavy for name, heavy in found.items() if heavy} == {}


@pytest.mark.parametrize(
    "source", ["import keras", "from tensorflow import io", "try:\n    import keras.ops\nfinally:\n    pass"]
)
def test_static_check_can_fail(tmp_path, source):
    modules = module_names(write_package(tmp_path, a=source))
    assert imports_of("made_up.a", modules, nodes_run_on_import(modules["made_up.a"])) & set(HEAVY)


def test_static_check_allows_imports_inside_functions(tmp_path):
    modules = module_names(write_package(tmp_path, a="def f():\n    import keras"))
    assert not imports_of("made_up.a", modules, nodes_run_on_import(modules["made_up.a"]))


def test_public_names_are_those_that_type_checkers_see():
    tree = ast.parse((ROOT / "splitembed" / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names if alias.asname}
    import splitembed

    namespaces = {"errors", "gradients", "initializers", "optimizers", "vectors", "vocabulary"}
    assert set(splitembed.__all__) - namespaces == seen.keys()
    assert all(getattr(splitembed, name).__name__ == f"splitembed.{name}" for name in namespaces)
    for name, (module, original) in seen.items():
        assert getattr(splitembed, name) is getattr(importlib.import_module(module), original), name


def test_version_is_the_one_in_setup_cfg():
    try:
        importlib.metadata.distribution("splitembed")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("splitembed is on the path but not installed")
    config = configparser.RawConfigParser()
    config.read(ROOT / "setup.cfg")
    code = "import splitembed; assert splitembed.__version__ == " + repr(config["metadata"]["version"])
    assert heavy_modules_after(code) == set()


def test_unknown_name_is_an_attribute_error():
    import splitembed

    with pytest.raises(AttributeError, match="'splitembed' has no attribute 'SplitEmbeding'"):
        splitembed.SplitEmbeding  # noqa: B018


def test_importing_the_package_loads_no_tensorflow():
    assert heavy_modules_after("import splitembed; dir(splitembed)") == set()


def test_importing_the_numpy_core_loads_no_tensorflow():
    core = [name for name in module_names(ROOT / "splitembed") if unit(name) in NUMPY_CORE]
    assert heavy_modules_after(f"import importlib\nfor name in {core}: importlib.import_module(name)") == set()


def test_help_of_every_command_loads_no_tensorflow():
    code = "from splitembed.cli.commands import main\nfor command in ([], *([name] for name in main.commands)):\n"
    code += "    main([*command, '--help'], standalone_mode=False)"
    assert heavy_modules_after(code) == set()


@pytest.mark.parametrize("code", ["import keras", "import tensorflow.io", "def f():\n    import keras\nf()"])
def test_fresh_interpreter_check_can_fail(tmp_path, code):
    for name in HEAVY:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "tensorflow" / "io.py").touch()
    assert len(heavy_modules_after(code, tmp_path)) == 1
