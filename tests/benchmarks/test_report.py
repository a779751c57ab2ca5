"""Results: medians, ratios by turn, verdicts, tables, JSON and plots."""

import io
import json
import math

import pytest
from rich.console import Console

from benchmarks.speed.outcome import Line, Outcome
from benchmarks.speed.plan import Entry, Scenario, Target, times, value
from benchmarks.speed.plots import plot_scenario, plot_targets
from benchmarks.speed.problems import Sizes
from benchmarks.speed.report import as_json, as_markdown, as_table
from benchmarks.speed.scenarios import SCENARIOS

SIZES = Sizes(100, 4, 5)
LABELS = ("floor", "ours", "slow", "absent")


def outcome(quick=False):
    targets = (
        Target("ours near the floor", times("ours", of="floor"), at_most=1.5),
        Target("slow is slow", times("slow", of="ours"), at_least=1000),
        Target("little memory", value("ours", "memory_bytes", 1e-6), at_most=5, unit="MB"),
        Target("absent is fast", times("absent", of="floor"), at_most=1),
    )
    kinds = {"floor": "floor.Floor", "ours": "ours.Ours", "slow": "masks.MaskWholeTable", "absent": "where.Where"}
    entries = tuple(Entry(label, kinds[label], "step", SIZES) for label in LABELS)
    lines = {
        "floor": Line("floor", [0.001, 0.002, 0.003], {"memory_bytes": 1_000_000, "frozen_rows_moved": False}),
        "ours": Line("ours", [0.0012, 0.0024, 0.009], {"memory_bytes": 6_000_000, "frozen_rows_moved": False}),
        "slow": Line("slow", [0.5, 1.0], {"memory_bytes": 900_000_000, "frozen_rows_moved": True}),
        "absent": Line("absent", missing="torch is not installed"),
    }
    scenario = Scenario("made-up", "A made-up | scenario", entries, "floor", targets, note="A note.")
    return Outcome(scenario, lines, load_average=0.25, facts={"sizes": {"distinct": 7.0}}, quick=quick)


def test_ratios_are_taken_turn_by_turn():
    found = outcome()
    # The ratios of the turns are 1.2, 1.2 and 3.
    assert found.ratio_to_floor("ours").median == pytest.approx(1.2)
    assert found.ratio_to_floor("ours").upper == pytest.approx(2.1)
    assert found.ratio("slow", "ours").median == pytest.approx((0.5 / 0.0012 + 1.0 / 0.0024) / 2)
    assert found.value("ours", "seconds") == 0.0024
    assert math.isnan(found.ratio_to_floor("absent").median)


def test_verdicts():
    assert [each.is_met for each in outcome().verdicts()] == [True, False, False, None]
    assert [each.is_met for each in outcome(quick=True).verdicts()] == [None] * 4


def test_terminal_table_is_complete():
    console = Console(width=150, file=io.StringIO())
    console.print(as_table(outcome()))
    text = console.file.getvalue()
    expected = ("1.2 (1.2 to 2.1)", "2.4 ms", "900 MB", "yes", "torch is not installed", "1 (floor)", "A note.")
    for part in (*expected, "MET: ours near", "NOT MET: slow is slow", "not judged: absent is fast"):
        assert part in text


def test_markdown_has_verdicts_environment_and_plots():
    text = as_markdown([outcome()], {"cpu": "a processor", "keras": "3"})
    for part in ("cpu a processor, keras 3", "![made-up](made-up.png)", "- MET: ours near the floor (measured: 1.2 x)"):
        assert part in text
    assert "| ours | 2.4 ms | 1.2 (1.2 to 2.1) | 6.0 MB | no |" in text
    assert "quick run" not in text and "quick run" in as_markdown([outcome(quick=True)], {})


def test_json_has_every_sample_and_no_nan():
    found = json.loads(as_json([outcome()], {"cpu": "a processor"}), parse_constant=lambda text: pytest.fail(text))
    (scenario,) = found["scenarios"]
    ours = scenario["contestants"][1]
    assert ours["seconds"] == [0.0012, 0.0024, 0.009]
    assert ours["sizes"]["num_tokens"] == 100
    assert [each["is_met"] for each in scenario["targets"]] == [True, False, False, None]
    assert scenario["targets"][3]["measured"] is None
    assert scenario["load_average"] == 0.25 and found["environment"] == {"cpu": "a processor"}


def test_plots_are_png_files(tmp_path):
    plot_scenario(outcome(), tmp_path / "one.png")
    plot_targets([outcome(), outcome(quick=True)], tmp_path / "all.png")
    for path in tmp_path.iterdir():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_plots_without_results_do_not_fail(tmp_path):
    empty = outcome()
    empty.lines = {"absent": empty.lines["absent"]}
    plot_scenario(empty, tmp_path / "one.png")
    plot_targets([], tmp_path / "all.png")
    assert len(list(tmp_path.iterdir())) == 2


def test_every_target_of_every_scenario_is_measured():
    keys = ("memory_bytes", "growth_without_remap_bytes", "growth_without_weight_bytes", "file_pages_bytes")
    keys += ("pss_bytes", "touched_bytes", "frozen_bytes", "cosine_distance", "frozen_rows_moved", "moved_by_momentum")
    for scenario in SCENARIOS.values():
        labels = [entry.label for entry in scenario.entries]
        assert len(set(labels)) == len(labels) and scenario.floor in labels
        lines = {label: Line(label, [1.0], dict.fromkeys(keys, 1_000_000)) for label in labels}
        for verdict in Outcome(scenario, lines).verdicts():
            assert verdict.measured > 0 and verdict.is_met is not None, verdict.target.text
