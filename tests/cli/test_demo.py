"""The demo, run once."""

import pytest

from splitembed import SplitTable
from splitembed.cli import demo


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    directory = tmp_path_factory.mktemp("demo")
    lines = []
    demo.run_demo(directory, lines.append)
    return directory, lines


def test_every_step_is_reported(output):
    directory, lines = output
    starts = ("300 product reviews", "Trained ", "Frozen rows", f"Saved {directory}", "Reopened them")
    for start in starts:
        assert any(line.startswith(start) for line in lines), start
    assert "Frozen rows are the same to the bit after training." in lines
    assert "Reopened them: predictions are equal to the bit." in lines


def test_the_classifier_learns(output):
    (line,) = [line for line in output[1] if line.startswith("Trained ")]
    # Measured: 69 % of 100 reviews; chance is 50 %.
    assert int(line.rstrip("%.").split()[-1]) > 55


def test_both_tables_are_saved(output):
    directory, _ = output
    assert sorted(path.name for path in directory.iterdir()) == ["frozen.h5", "trainable.h5"]
    split = SplitTable.open(directory, verify=True)
    assert split.dim == 50 and split.num_trainable > 0


def test_reopened_tables_that_differ_are_an_error(tmp_path, monkeypatch):
    opened = SplitTable.open

    def open_changed(directory):
        split = opened(directory)
        return split.with_trainable(split.trainable + 1)

    monkeypatch.setattr(demo, "_EPOCHS", 1)
    monkeypatch.setattr(SplitTable, "open", open_changed)
    with pytest.raises(AssertionError, match="Please report this"):
        demo.run_demo(tmp_path, lambda line: None)
