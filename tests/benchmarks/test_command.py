"""The command `python -m benchmarks.speed`: its list, its errors, its reports, and failing contestants."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from benchmarks.speed.__main__ import bench
from benchmarks.speed.plan import Entry
from benchmarks.speed.scenarios import SCENARIOS
from benchmarks.speed.texts import TextSizes


def run(*arguments):
    return CliRunner().invoke(bench, arguments)


def test_list_names_every_scenario():
    result = run("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list(SCENARIOS)


def test_unknown_scenario_is_an_error_that_lists_the_known_ones():
    result = run("--scenario", "nosuch")
    assert result.exit_code == 2
    assert "nosuch" in result.output and "forward-100" in result.output


def test_quick_run_writes_only_reports(tmp_path):
    result = run("--quick", "--rounds", "2", "--scenario", "building", "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"results.json", "results.md", "targets.png", "building.png", "contestants.log"}
    (scenario,) = json.loads((tmp_path / "results.json").read_text())["scenarios"]
    assert [len(line["seconds"]) for line in scenario["contestants"]] == [2, 2]


def test_a_failed_contestant_is_named_and_the_exit_code_is_1(tmp_path, monkeypatch):
    failing = Entry("no such reader", "files.NoSuchReader", "binary", TextSizes(200, 4))
    monkeypatch.setitem(SCENARIOS, "binary", replace(SCENARIOS["binary"], entries=(failing,)))
    result = run("--quick", "--scenario", "binary", "--output", str(tmp_path))
    assert result.exit_code == 1
    assert "These contestants failed: no such reader" in result.output


def test_listing_loads_no_framework():
    code = "import sys\nfrom benchmarks.speed.__main__ import bench\nbench(['--list'], standalone_mode=False)\n"
    code += "assert not {'tensorflow', 'keras', 'torch', 'matplotlib'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
