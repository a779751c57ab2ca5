"""README.md, docs/ and CONTRIBUTING.md: the examples run, and the targets, files and folders that they name exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/design.md", ".github/CONTRIBUTING.md")
}
PLACEHOLDERS = {
    "splitembed/a/b.py",
    "tests/a/test_b.py",
    "splitembed/vectors/pairs/my_format.py",
}
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGES["README.md"], re.DOTALL)


def expected_output(code: str) -> list[str]:
    """Return the output that the comments behind `print` calls promise."""
    return re.findall(r"^print\(.*?\)  +# (.*)$", code, re.MULTILINE)


def test_examples_print_what_their_comments_say(tmp_path):
    """Run all examples in one process, in order, because later ones use the names of earlier ones."""
    code = "\n".join(EXAMPLES)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert [line.strip() for line in run.stdout.splitlines()] == expected_output(code)


def test_every_example_prints_something():
    assert len(EXAMPLES) == 7 and all(map(expected_output, EXAMPLES))
    assert len(EXAMPLES[0].strip().splitlines()) == 10


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page):
    targets = re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", PAGES[page], re.MULTILINE)) - set(targets) == set()


@pytest.mark.parametrize("page", PAGES)
def test_linked_files_exist(page):
    links = [link for link in re.findall(r"\]\(([^)#]+)", PAGES[page]) if "://" not in link]
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_named_paths_exist(page):
    named = re.findall(r"`((?:splitembed|tests|benchmarks|notebooks|docs)/[\w/.-]*)`", PAGES[page])
    assert [path for path in named if path not in PLACEHOLDERS and not (ROOT / path).exists()] == []


def test_the_table_of_folders_is_complete():
    listed = re.findall(r"^\| `([a-z_]+)/` \|", PAGES["docs/design.md"], re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "splitembed").glob("*/__init__.py")}
    assert len(listed) == len(set(listed)) and set(listed) == folders


def test_named_benchmark_scenarios_exist():
    from benchmarks.speed.scenarios import SCENARIOS

    named = {name for text in PAGES.values() for name in re.findall(r"--scenario ([a-z0-9-]+)", text)}
    assert named and named <= SCENARIOS.keys()
