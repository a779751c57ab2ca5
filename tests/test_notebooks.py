"""The notebooks run from top to bottom, without a network, and show what they promise."""

import base64
import warnings
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TIMEOUT_SECONDS = 600  # of one cell, on a busy machine
# Python's own sockets: the kernel talks to this test through ZeroMQ, which uses none of them.
NO_NETWORK = """
import socket
def refuse(*arguments, **options):
    raise OSError("this notebook must run offline")
socket.create_connection = socket.getaddrinfo = socket.socket.connect = refuse
"""

# Of each notebook: how many plots, and what must stand in its printed output.
PROMISES = {
    "quickstart": (
        1,
        (
            "input  (None, None) -> (None, None, 50) -> (None, 1)",
            "frozen rows are the same to the bit: True",
            "predictions equal to the bit: True",
        ),
    )
}


def execute(notebook):
    """Runs the notebook in a kernel of its own that has no network."""
    notebook.cells.insert(0, nbformat.v4.new_code_cell(NO_NETWORK))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Jupyter's own, about its settings folders
        nbclient.NotebookClient(
            notebook, timeout=TIMEOUT_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
        ).execute()
    del notebook.cells[0]
    return notebook


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def printed(notebook):
    return "".join(output.text for output in outputs(notebook) if output.get("name") == "stdout")


def pictures(notebook):
    return [
        base64.b64decode(output.data["image/png"])
        for output in outputs(notebook)
        if "image/png" in output.get("data", {})
    ]


def by_stem(path):
    return path.stem


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_stem)
def test_notebook_runs_offline_and_shows_what_it_promises(path):
    notebook = execute(nbformat.read(path, as_version=4))
    num_pictures, lines = PROMISES[path.stem]
    assert len(pictures(notebook)) == num_pictures
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 10_000 for picture in pictures(notebook))
    said = printed(notebook)
    assert [line for line in lines if line not in said] == [], said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_stem)
def test_committed_notebook_is_valid_and_holds_no_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert outputs(notebook) == []
    assert all(cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


def test_a_failing_cell_and_a_call_to_the_network_are_errors():
    for source in ("1 / 0", "import urllib.request; urllib.request.urlopen('http://localhost')"):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        with pytest.raises(nbclient.exceptions.CellExecutionError, match=r"ZeroDivisionError|must run offline"):
            execute(notebook)
