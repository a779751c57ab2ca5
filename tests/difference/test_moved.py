"""The report of moved rows as text, dict and plot."""

import json
import math
import sys

import numpy as np
import pytest

from splitembed.difference.moved import Difference, MovedRow

ROWS = (
    MovedRow("lol\n", math.nan, math.nan, 0.0, math.inf, (), ()),
    MovedRow("$usr$", 3.5, 0.05, 2.0, 3.0, ("red", "x" * 30), ("sky",)),
    MovedRow(7, 0.25, -1.0, 1.0, 0.75, (1, 2), (3,)),
)
NUMBERS = np.array([[row.distance, row.cosine] for row in ROWS]).T


@pytest.fixture
def difference():
    return Difference(ROWS, 10, 0, 2, np.arange(3), *NUMBERS)


def test_the_text_is_one_aligned_table(difference):
    assert str(difference).splitlines() == [
        "3 of 10 rows moved; 2 tokens dropped",
        "token    distance  cosine  norm before  norm after  nearest before                 nearest after",
        "'lol\\n'       nan     nan        0.000         inf",
        "$usr$       3.500   0.050        2.000       3.000  red, xxxxxxxxxxxxxxxxxxxxx...  sky",
        "7           0.250  -1.000        1.000       0.750  1, 2                           3",
    ]


def test_the_dict_is_plain_json(difference):
    found = json.loads(json.dumps(difference.to_dict(), allow_nan=False))
    assert {name: found[name] for name in ("num_common", "num_added", "num_dropped", "num_moved")} == {
        "num_common": 10,
        "num_added": 0,
        "num_dropped": 2,
        "num_moved": 3,
    }
    assert found["rows"][0]["distance"] is None and found["rows"][2]["nearest_before"] == [1, 2]


def test_the_plot_shows_every_row_and_labels_the_farthest(difference, tmp_path):
    pytest.importorskip("matplotlib")
    figure = difference.plot(tmp_path / "moved.png")
    axes = figure.axes[0]
    assert axes.collections[0].get_offsets().shape == (3, 2)
    # Without the row that is not finite, and without parsing "$" as a formula.
    assert [text.get_text() for text in axes.texts] == ["$usr$", "7"]
    assert axes.get_title() == "3 of 10 rows moved"
    assert (tmp_path / "moved.png").read_bytes().startswith(b"\x89PNG")
    assert difference.plot(axes=axes) is figure


def test_a_missing_matplotlib_is_named(difference, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'A plot needs the library matplotlib, .*pip install "splitembed\[plots\]"'):
        difference.plot()
