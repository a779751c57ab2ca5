"""The folders: each module has its test module at the mirrored place, and a folder's `__init__` holds no logic."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "splitembed"
# tests of these stand elsewhere: the command's start is tested with the command, the public names with the imports
ELSEWHERE = {"__main__.py"}


def modules_without_tests(package: Path, tests: Path) -> list[str]:
    """Modules whose mirrored test module is missing; a module without definitions needs none."""
    missing = []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if path.name == "__init__.py" or str(place) in ELSEWHERE:
            continue
        if not (tests / place.parent / f"test_{path.name}").exists():
            missing.append(str(place))
    return missing


def faces_with_logic(package: Path) -> list[str]:
    """Folders whose `__init__` does more than hand names on; the package's own loads them on first use."""
    found = []
    for path in sorted(package.rglob("*/__init__.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        plain = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
        if not all(isinstance(node, plain) for node in body):
            found.append(str(path.relative_to(package)))
    return found


def test_every_module_has_its_test_module():
    assert modules_without_tests(PACKAGE, ROOT / "tests") == []


def test_a_missing_test_module_is_found(tmp_path):
    (tmp_path / "package" / "folder").mkdir(parents=True)
    (tmp_path / "package" / "folder" / "module.py").write_text("x = 1")
    assert modules_without_tests(tmp_path / "package", tmp_path / "tests") == ["folder/module.py"]


def test_faces_hold_no_logic():
    assert faces_with_logic(PACKAGE) == []


def test_a_face_with_logic_is_found(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__init__.py").write_text("def f(): ...")
    assert faces_with_logic(tmp_path) == ["folder/__init__.py"]
