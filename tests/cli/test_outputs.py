"""Results: files, standard output, text and JSON."""

import json
from pathlib import Path

import pytest

from splitembed.cli.outputs import print_result, written_to


def test_a_file_is_written_where_it_is_named(tmp_path):
    with written_to(tmp_path / "a.bin") as path:
        assert path == tmp_path / "a.bin"


def test_a_dash_is_standard_output(capfdbinary):
    with written_to("-") as path:
        path.write_bytes(b"\x89HDF")
    assert capfdbinary.readouterr().out == b"\x89HDF"
    assert not path.exists()


def test_an_error_writes_nothing_to_standard_output(capfdbinary):
    with pytest.raises(UnicodeEncodeError), written_to("-") as path:
        path.write_text("half é", encoding="ascii")
    assert capfdbinary.readouterr().out == b""


def test_text_and_json(tmp_path, capfd):
    print_result("text", {"a": 1}, tmp_path / "a.json")
    assert capfd.readouterr().out == "text\n" and json.loads(Path(tmp_path / "a.json").read_text()) == {"a": 1}
    print_result("text", {"a": 1}, "-")
    assert json.loads(capfd.readouterr().out) == {"a": 1}
    print_result("text", {}, None, output="-")
    assert capfd.readouterr() == ("", "text\n")
