"""The wheel: its packages and data files; neither the command line nor tests/conftest.py loads the benchmarks."""

import ast
import configparser
import subprocess
import sys
from pathlib import Path

import pytest
from setuptools import find_packages

ROOT = Path(__file__).parents[1]


def configuration() -> configparser.RawConfigParser:
    config = configparser.RawConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def imported_packages(path: Path) -> set[str]:
    """Return the top-level packages that a file imports, also inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def packages_of_the_wheel() -> list[str]:
    return find_packages(str(ROOT), include=configuration()["options.packages.find"]["include"].split())


def test_wheel_holds_every_folder_of_the_package_and_no_other():
    folders = {path.parent for path in (ROOT / "splitembed").rglob("__init__.py")}
    assert set(packages_of_the_wheel()) == {".".join(folder.relative_to(ROOT).parts) for folder in folders}


def test_package_imports_no_benchmarks():
    assert [str(path) for path in (ROOT / "splitembed").rglob("*.py") if "benchmarks" in imported_packages(path)] == []


def test_conftest_imports_no_benchmarks():
    assert "benchmarks" not in imported_packages(ROOT / "tests" / "conftest.py")


def test_imports_inside_functions_are_found(tmp_path):
    (tmp_path / "module.py").write_text("import json\ndef f():\n    from benchmarks.data import packages\n")
    assert imported_packages(tmp_path / "module.py") == {"json", "benchmarks"}


@pytest.mark.parametrize("code", ["import splitembed.cli.commands", "import splitembed.__main__"])
def test_command_line_loads_no_benchmarks(code):
    code += "\nimport sys\nassert 'benchmarks' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
