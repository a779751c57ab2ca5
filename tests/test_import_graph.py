"""The import graph by folder, as docs/design.md draws it: every arrow points to a folder further up."""

import re
from pathlib import Path

import pytest

from tests.test_imports import NUMPY_CORE, ORDER, ROOT, all_nodes, imports_of, module_names, unit

DESIGN = ROOT / "docs" / "design.md"


def graph_of(package: Path) -> dict[str, set[str]]:
    """Return for each folder and module directly under the package those that it imports."""
    modules = module_names(package)
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        imported = {unit(each) for each in imports_of(name, modules, all_nodes(path)) if each in modules}
        graph.setdefault(unit(name), set()).update(imported - {unit(name)})
    return graph


def draw(graph: dict[str, set[str]], order: tuple[str, ...]) -> str:
    """Draw a graph as one line for each node, in the given order, with the nodes that it imports."""
    width = max(map(len, order))
    lines = [f"{name or '__init__':{width}} <- {', '.join(sorted(graph[name], key=order.index))}" for name in order]
    return "\n".join(line.removesuffix(" <- ").rstrip() for line in lines)


def backward_arrows(graph: dict[str, set[str]], order: tuple[str, ...]) -> list[str]:
    """Return every import of a node that comes later in the order."""
    return [
        f"{name} <- {each}"
        for name, imported in graph.items()
        for each in sorted(imported)
        if order.index(each) > order.index(name)
    ]


def test_no_arrow_points_backwards():
    assert backward_arrows(graph_of(ROOT / "splitembed"), ORDER) == []


def test_the_design_draws_the_graph():
    drawing = draw(graph_of(ROOT / "splitembed"), ORDER)
    (drawn,) = re.findall(r"```text\n(.*?)\n```", DESIGN.read_text(encoding="utf-8"), re.DOTALL)
    assert drawn == drawing


def test_the_numpy_core_comes_first():
    assert ORDER[: len(NUMPY_CORE)] == NUMPY_CORE


@pytest.mark.parametrize(
    ("sources", "expected"),
    [({"low": "import package.high", "high": ""}, ["low <- high"]), ({"high": "import package.low", "low": ""}, [])],
)
def test_a_backward_arrow_is_found(tmp_path, sources, expected):
    package = tmp_path / "package"
    for name, source in {"": "", **sources}.items():
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").write_text(source)
    assert backward_arrows(graph_of(package), ("low", "high", "")) == expected
