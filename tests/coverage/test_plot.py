"""The plot of coverage by frequency rank, compared with cumulative sums, and its files."""

import subprocess
import sys

import numpy as np
import pytest

from splitembed.coverage import measure_coverage
from splitembed.coverage.report import CoverageReport
from splitembed.errors import SplitError
from splitembed.vocabulary import read_vocabulary

pytest.importorskip("matplotlib")
MATCHED = np.random.default_rng(1).random(300) < 0.6
COUNTS = np.random.default_rng(2).zipf(1.5, 300)


@pytest.fixture
def report():
    return measure_coverage(read_vocabulary([f"t{index}" for index in range(300)]), MATCHED, COUNTS)


def test_the_lines_are_cumulative_shares(report):
    (axes,) = report.plot().axes
    order = np.argsort(-COUNTS, kind="stable")
    matched, counts = MATCHED[order], COUNTS[order]
    expected = {
        "running tokens": 100 * np.cumsum(counts * matched) / np.cumsum(counts),
        "types": 100 * np.cumsum(matched) / np.arange(1, 301),
    }
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    assert lines.keys() == expected.keys()
    for name, line in lines.items():
        ranks = line[:, 0].astype(int)
        assert (ranks[0], ranks[-1]) == (1, 300)
        # The shares are computed in another order of operations.
        np.testing.assert_allclose(line[:, 1], expected[name][ranks - 1], rtol=1e-12)


def test_the_file_has_the_format_of_its_suffix(report, tmp_path):
    report.plot(tmp_path / "coverage.png")
    report.plot(tmp_path / "coverage.svg")
    assert (tmp_path / "coverage.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert "<svg" in (tmp_path / "coverage.svg").read_text()


def test_the_plot_is_drawn_on_given_axes(report, tmp_path):
    from matplotlib.figure import Figure

    left, right = Figure().subplots(1, 2)
    assert report.plot(tmp_path / "both.png", axes=right) is left.figure
    assert (len(left.get_lines()), len(right.get_lines())) == (0, 2)
    assert (tmp_path / "both.png").exists()


def test_pyplot_is_not_imported():
    code = "import sys; from splitembed.coverage import CoverageReport, RankPoint\n"
    code += "CoverageReport(1, 1, 2, 2, (), curve=(RankPoint(1, 1, 2, 2),)).plot()\n"
    code += "print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_report_without_counts_has_no_plot(tmp_path):
    with pytest.raises(SplitError, match="Coverage by frequency rank needs `counts`"):
        CoverageReport(1, 1, None, None, ()).plot(tmp_path / "coverage.png")
    assert not (tmp_path / "coverage.png").exists()
    assert len(CoverageReport(0, 0, 0, 0, (), curve=()).plot().axes) == 1


def test_a_missing_matplotlib_is_named(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'A plot needs the library matplotlib, .*pip install "splitembed\[plots\]"'):
        report.plot()


def test_a_suffix_that_matplotlib_does_not_know_is_refused(report, tmp_path):
    with pytest.raises(SplitError, match=r"coverage.foo: the plot cannot be written. .* Choose another"):
        report.plot(tmp_path / "coverage.foo")
