"""README keeps its promises: its Python runs and prints what it says it prints, and its commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def expected_output(code: str) -> list[str]:
    """What the comments behind `print` calls promise."""
    return re.findall(r"^print\(.*?\)  +# (.*)$", code, re.MULTILINE)


def test_examples_print_what_they_say(tmp_path):
    """One after the other, as a reader would type them."""
    code = "\n".join(EXAMPLES)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert [line.strip() for line in run.stdout.splitlines()] == expected_output(code)


def test_there_are_examples_with_promises():
    assert len(EXAMPLES) == 6 and all(map(expected_output, EXAMPLES))
    assert len(EXAMPLES[0].strip().splitlines()) == 10


@pytest.mark.parametrize("target", re.findall(r"`?make ([a-z-]+)`?", README))
def test_make_targets_exist(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_folder_list_is_complete():
    listed = re.findall(r"^\| `([a-z_]+)/` \|", README, re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "splitembed").glob("*/__init__.py")}
    assert len(listed) == len(set(listed)) and set(listed) == folders
