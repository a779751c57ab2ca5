"""The command line: the files and messages of each command."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from splitembed import SplitTable, build_split
from splitembed.cli.commands import main
from splitembed.errors import VectorFormatError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "vocabulary.txt").write_text("\n[UNK]\nthe\nzzz\ncat\n")
    (tmp_path / "vectors.txt").write_text("the 1 1.5\nof 2 2.5\ncat 3 3.5\n")
    (tmp_path / "corpus.txt").write_text("the cat zzz zzz\nthe the\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_build_writes_what_build_split_saves(folder):
    output = run("build", "vocabulary.txt", "vectors.txt", "out", "--oov-initializer", "zeros", "--train", "cat")
    assert "SplitTable(num_tokens=5, dim=2, num_frozen=2, num_trainable=3)" in output
    assert "frozen.h5, trainable.h5" in output
    expected = build_split("vocabulary.txt", "vectors.txt", trainable_tokens=["cat"], oov_initializer="zeros")
    np.testing.assert_array_equal(SplitTable.open("out").combine(), expected.combine())


def test_build_with_counts(folder):
    run("build", "vocabulary.txt", "vectors.txt", "out", "--counts", "corpus.txt", "--train-most-frequent", "1")
    assert SplitTable.open("out").trainable_ids.tolist() == [1, 2, 3]
    run("build", "vocabulary.txt", "vectors.txt", "out", "--counts", "corpus.txt", "--min-count", "3")
    split = SplitTable.open("out")
    assert split.remap[3] == split.remap[1]


def test_convert_then_build_on_the_shared_table(folder):
    assert "4 rows x 2, sha256:" in run("convert", "vectors.txt", "glove.h5")
    output = run("build", "vocabulary.txt", "glove.h5", "small")
    assert f"Saved in small: trainable.h5. The frozen rows are in {folder / 'glove.h5'}." in output
    assert SplitTable.open("small").lookup([2]).tolist() == [[1.0, 1.5]]


def test_inspect_describes_a_directory(folder):
    run("build", "vocabulary.txt", "vectors.txt", "out")
    output = run("inspect", "out")
    assert all(text in output for text in ("num_tokens=5", "trainable table  ", "frozen table   "))


def test_build_with_fallbacks(folder):
    (folder / "vocabulary.txt").write_text("\n[UNK]\nThe\nCAT\nzzz\n")
    arguments = ["build", "vocabulary.txt", "vectors.txt", "out", "--fallback", "upper", "--fallback", "lower"]
    output = run(*arguments)
    assert "  lower" in output
    assert SplitTable.open("out").lookup([2, 3]).tolist() == [[1.0, 1.5], [3.0, 3.5]]
    assert SplitTable.open("out").trainable_ids.tolist() == [1, 4]
    run(*arguments, "--train-fallbacks")
    assert SplitTable.open("out").lookup([2, 3]).tolist() == [[1.0, 1.5], [3.0, 3.5]]
    assert SplitTable.open("out").trainable_ids.tolist() == [1, 2, 3, 4]


def test_spaces_and_a_prefix_are_rules_and_counted(folder):
    (folder / "vocabulary.txt").write_text("\n[UNK]\nNew York\nThe\n")
    (folder / "vectors.txt").write_text("/c/en/new_york 1 1.5\n/c/en/the 2 2.5\n")
    output = run("coverage", "vocabulary.txt", "vectors.txt", "--fallback", "lower+spaces+prefix:/c/en/")
    assert "  lower+spaces+prefix:/c/en/        2   2  100.0 %" in output.splitlines()


def test_lines_that_cannot_be_read_are_skipped_and_words_may_be_numbers(folder):
    (folder / "vectors.txt").write_text("0.5 1 1.5\nbad\n0.25 2 2.5\n")
    output = run("convert", "vectors.txt", "v.h5", code=1)
    assert "line 1: found rows that start with decimal numbers" in output and "set --numbers-are-words." in output
    output = run("convert", "vectors.txt", "v.h5", "--numbers-are-words", code=1)
    assert "line 2: found 0 numbers in b'bad'" in output and "set --skip-bad-lines" in output
    output = run("convert", "vectors.txt", "v.h5", "--numbers-are-words", "--skip-bad-lines")
    assert "skipped: 1" in output and " x 2" in output


def test_coverage_lists_the_most_frequent_oov_tokens(folder):
    output = run("coverage", "vocabulary.txt", "vectors.txt", "--counts", "corpus.txt")
    assert "66.7 %" in output and "zzz" in output


def test_coverage_as_text_json_and_plot(folder):
    pytest.importorskip("rapidfuzz")
    (folder / "vocabulary.txt").write_text("\n[UNK]\nThe\nCat\nfo\nzzz\n")
    (folder / "corpus.txt").write_text("The The The Cat fo fo\nzzz\n")
    arguments = ["coverage", "vocabulary.txt", "vectors.txt", "--counts", "corpus.txt", "--fallback", "lower"]
    output = run(*arguments, "--suggest", "--top", "1", "--json", "out.json", "--plot", "out.png")
    assert output.splitlines() == [
        "                matched  of   share",
        "types                 2   4  50.0 %",
        "  exact               0   4   0.0 %",
        "  lower               2   4  50.0 %",
        "running tokens        4   7  57.1 %",
        "  exact               0   7   0.0 %",
        "  lower               4   7  57.1 %",
        "               rows  memory  with Adam",
        "frozen            3    24 B",
        "trainable         3    24 B       72 B",
        "all trainable     6    48 B      144 B",
        "out of vocabulary: 2 types, 3 running tokens; 1 of them shown",
        "fo                    2  of?",
    ]
    report = json.loads((folder / "out.json").read_text())
    assert report["oov"] == [{"token": "fo", "count": 2, "suggestion": {"word": "of", "fallback": None}}]
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")


def test_vectors_from_standard_input(folder):
    text = (folder / "vectors.txt").read_bytes()
    for arguments in (["coverage", "vocabulary.txt", "-"], ["convert", "-", "piped.h5"]):
        command = [sys.executable, "-m", "splitembed", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
    run("convert", "vectors.txt", "read.h5")
    # The last lines hold the fingerprints.
    assert run("inspect", "piped.h5").splitlines()[-1] == run("inspect", "read.h5").splitlines()[-1]


def test_vectors_with_a_file_of_words(folder):
    np.save("rows.npy", np.array([[1, 1.5], [3, 3.5]], np.float32))
    (folder / "words.txt").write_text("the\ncat\n")
    assert "66.7 %" in run("coverage", "vocabulary.txt", "rows.npy", "--words", "words.txt")
    assert "3 rows x 2" in run("convert", "rows.npy", "rows.h5", "--words", "words.txt", "--dim", "2")


def test_vectors_in_foreign_datasets(folder):
    with h5py.File("foreign.h5", "w") as file:
        file["names"], file["rows"] = ["the", "cat"], [[1.0, 1.5], [3.0, 3.5]]
    names = ["--dataset", "names", "--dataset", "rows"]
    assert "66.7 %" in run("coverage", "vocabulary.txt", "foreign.h5", *names)
    run("build", "vocabulary.txt", "foreign.h5", "out", *names)
    assert SplitTable.open("out").lookup([2, 4]).tolist() == [[1.0, 1.5], [3.0, 3.5]]
    output = run("coverage", "vocabulary.txt", "foreign.h5", *names, "--dataset", "third", code=2)
    assert "--dataset must be given once, for the matrix, or twice, for words and matrix. Received: 3 times." in output


def test_a_file_in_an_archive_is_selected_by_name_or_dim(folder):
    with zipfile.ZipFile("vectors.zip", "w") as archive:
        archive.writestr("two.txt", "the 1 1.5\n")
        archive.writestr("three.txt", "the 1 1.5 2\n")
    assert "two.txt" in run("convert", "vectors.zip", "out.h5", code=1)
    assert "2 rows x 2" in run("convert", "vectors.zip", "out.h5", "--dim", "2")
    assert "2 rows x 3" in run("convert", "vectors.zip", "out.h5", "--member", "three.txt")


@pytest.mark.parametrize("command", ["build", "convert", "coverage"])
def test_reading_options_reach_the_reader(folder, command):
    (folder / "wrong_count.txt").write_text("3 2\nthe 1 1.5\ncat 3 3.5\n")
    before = [] if command == "convert" else ["vocabulary.txt"]
    after = [] if command == "coverage" else ["out"]
    arguments = [command, *before, "wrong_count.txt", *after]
    assert "wrong_count.txt" in run(*arguments, "--strict", code=1)
    assert "dim" in run(*arguments, "--dim", "5", code=1)
    assert "word2vec-binary" in run(*arguments, "--format", "word2vec-binary", code=1)
    assert "is not in the range x>=1" in run(*arguments, "--dim", "0", code=2)


def test_a_missing_library_is_one_line_with_the_command_to_install_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.process", None)
    output = run("coverage", "vocabulary.txt", "vectors.txt", "--suggest", code=1)
    assert output.startswith("Error: ") and 'pip install "splitembed[suggestions]"' in output


def test_a_broken_installation_is_a_traceback(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "splitembed.coverage", None)
    result = CliRunner().invoke(main, ["coverage", "vocabulary.txt", "vectors.txt"])
    assert isinstance(result.exception, ImportError)


def test_a_plot_needs_counts(folder):
    assert "--plot needs --counts" in run("coverage", "vocabulary.txt", "vectors.txt", "--plot", "out.png", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "vocabulary.txt", "corpus.txt", "out"], "corpus.txt"),
        (["build", "vocabulary.txt", "vectors.txt", "out", "--min-count", "2"], "--min-count needs --counts"),
        (["inspect", "vectors.txt"], "Make one with: splitembed convert VECTORS OUTPUT."),
        (["convert", "vocabulary.txt", "glove.h5"], "vocabulary.txt"),
        (["convert", "vectors.txt", "nope/glove.h5"], "nope/glove.h5: The folder of this file does not exist."),
        (["inspect", "."], ".: Found no trainable.h5 in the folder; expected the folder of a saved split."),
        (["coverage", "vocabulary.txt", "vectors.txt", "--counts", os.devnull], f"{os.devnull}: found no tokens"),
        (
            ["coverage", "vocabulary.txt", "vectors.txt", "--fallback", "lowercase"],
            "--fallback must hold known rules. Received: 'lowercase'",
        ),
        (["build", "vocabulary.txt", "vectors.txt", "out", "--fallback", "lower+x"], "Received: 'x' in 'lower+x'"),
    ],
)
def test_errors_are_one_line_without_a_traceback(folder, arguments, message):
    output = run(*arguments, code=1)
    assert output.startswith("Error: ") and message in output and "Traceback" not in output


@pytest.mark.parametrize("arguments", [[], ["--directory", "tables"]])
def test_demo_saves_its_tables_only_in_a_given_directory(folder, monkeypatch, arguments):
    monkeypatch.setattr("splitembed.cli.demo.run_demo", lambda directory, echo: echo(f"into {directory}"))
    assert ("into tables" in run("demo", *arguments)) == bool(arguments)


@pytest.mark.parametrize(("arguments", "code", "text"), [(["--help"], 0, "  inspect "), (["nosuch"], 2, "'nosuch'")])
def test_python_m_runs_the_same_command(arguments, code, text):
    command = [sys.executable, "-m", "splitembed", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code
    assert "Usage: python -m splitembed [OPTIONS]" in done.stdout + done.stderr
    assert text in done.stdout + done.stderr


def test_help_names_every_command():
    output = run("--help")
    for command in ("build", "convert", "inspect", "coverage", "export", "demo"):
        assert f"  {command} " in output


def test_padding_and_unknown_are_named_by_token_or_id(tmp_path):
    (tmp_path / "words.txt").write_text("<pad>\n<unk>\nthe\nrare\n")
    (tmp_path / "vectors.txt").write_text("the 1 2\n<unk> 3 4\n")
    (tmp_path / "counts.txt").write_text("the 5\nrare 1\n")
    arguments = ["build", *(str(tmp_path / name) for name in ("words.txt", "vectors.txt"))]
    counts = ["--counts", str(tmp_path / "counts.txt"), "--min-count", "2"]
    for padding, unknown in (("<pad>", "<unk>"), ("0", "1")):
        folder = tmp_path / f"model{padding.strip('<>')}"
        result = CliRunner().invoke(
            main, [*arguments, str(folder), *counts, "--padding", padding, "--unknown", unknown]
        )
        assert result.exit_code == 0, result.output
        split = SplitTable.open(folder)
        assert split.padding == 0 and split.remap[1] == split.remap[3] < 0


def test_another_frozen_table_replaces_the_one_saved_before(folder):
    run("build", "vocabulary.txt", "vectors.txt", "out")
    run("convert", "vectors.txt", "glove.h5")
    assert "Removed frozen.h5 of the split saved there before." in run("build", "vocabulary.txt", "glove.h5", "out")
    assert [path.name for path in (folder / "out").iterdir()] == ["trainable.h5"]
    assert SplitTable.open("out").frozen_file() == folder / "glove.h5"
    assert "Removed" not in run("build", "vocabulary.txt", "glove.h5", "out")


def test_the_tables_of_a_split_are_not_replaced(folder):
    run("build", "vocabulary.txt", "vectors.txt", "out")
    before = SplitTable.open("out").combine()
    assert "holds the frozen rows of the split" in run("convert", "vectors.txt", "out/frozen.h5", code=1)
    assert "a table of the format splitembed.trainable" in run("convert", "vectors.txt", "out/trainable.h5", code=1)
    np.testing.assert_array_equal(SplitTable.open("out").combine(), before)


def test_results_as_json(folder):
    built = json.loads(run("build", "vocabulary.txt", "vectors.txt", "out", "--json", "-"))
    assert built["split"]["num_tokens"] == 5 and built["coverage"]["num_matched"] == 2
    assert (built["saved"], built["frozen_table"]) == (["frozen.h5", "trainable.h5"], "out/frozen.h5")
    converted = json.loads(run("convert", "vectors.txt", "glove.h5", "--json", "-"))
    assert (converted["path"], converted["num_frozen"], converted["dim"]) == ("glove.h5", 4, 2)
    assert json.loads(run("inspect", "glove.h5", "--json", "-"))["frozen"]["fingerprint"] == converted["fingerprint"]
    covered = json.loads(run("coverage", "vocabulary.txt", "vectors.txt", "--json", "-"))
    assert covered == {**built["coverage"], "sizes": covered["sizes"]}


def in_a_shell(command, text=b""):
    """Run a command line whose `splitembed` is this one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f'splitembed() {{ "{sys.executable}" -m splitembed "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", command], input=text, capture_output=True, env=environment)


def test_standard_input_and_output(folder):
    assert in_a_shell("splitembed build - vectors.txt out", b"the\ncat\n").returncode == 0
    result = CliRunner().invoke(main, ["export", "out", "-"])
    assert (result.stdout, result.stderr) == ("the 1.0 1.5\ncat 3.0 3.5\n", "standard output: glove, every token\n")
    done = in_a_shell("splitembed convert vectors.txt - > piped.h5")
    assert done.returncode == 0 and done.stderr.startswith(b"standard output: 4 rows x 2, sha256:")
    assert run("inspect", "piped.h5").startswith("frozen table   4 rows x 2")
    assert "can be used once. Received it for 'VOCABULARY', 'VECTORS'" in run("coverage", "-", "-", code=2)


def test_a_closed_pipe_ends_quietly(folder):
    (folder / "many.txt").write_text("".join(f"w{number}\n" for number in range(20_000)))
    done = in_a_shell("splitembed coverage many.txt vectors.txt --top 20000 2> errors.txt | head -n 1")
    assert done.stdout.startswith(b" ")
    assert "Error" not in (folder / "errors.txt").read_text()


def test_warnings_are_one_line_in_the_words_of_the_shell(folder):
    (folder / "wrong_count.txt").write_text("3 2\nthe 1 1.5\ncat 3 3.5\n")
    result = CliRunner().invoke(main, ["coverage", "vocabulary.txt", "wrong_count.txt"])
    found = "wrong_count.txt: header says 3 rows, the file holds 2 (first: line 1)"
    assert (result.exit_code, result.stderr) == (0, f"Warning: {found}. --strict refuses each.\n")


def test_debug_shows_the_traceback(folder):
    result = CliRunner().invoke(main, ["coverage", "vocabulary.txt", "vectors.txt", "--dim", "3", "--debug"])
    assert isinstance(result.exception, VectorFormatError)


@pytest.mark.parametrize("command", [[], *([name] for name in main.commands)])
def test_help_names_the_exit_codes(command):
    assert "Exit codes: 0 success, 1 an error such as an invalid file, 2 wrong arguments." in run(*command, "--help")


def test_a_file_that_is_not_a_table_is_not_replaced(tmp_path):
    (tmp_path / "vectors.txt").write_text("the 1 2\n")
    (tmp_path / "precious.txt").write_text("a corpus")
    result = CliRunner().invoke(main, ["convert", str(tmp_path / "vectors.txt"), str(tmp_path / "precious.txt")])
    assert result.exit_code == 1 and "precious.txt exists and is not a table of splitembed" in result.output
    assert (tmp_path / "precious.txt").read_text() == "a corpus"
