"""Paths: `~` is expanded, schemes are refused, and "-" is standard input."""

import io
import tempfile
from pathlib import Path

import pytest

from splitembed.errors import SplitError
from splitembed.paths import holds_bytes, local_path, local_source, name_source, open_bytes


@pytest.mark.parametrize("make", [str, Path])
def test_the_home_folder_is_expanded(monkeypatch, tmp_path, make):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path(make("~/out")) == tmp_path / "out"


@pytest.mark.parametrize(
    "path", ["a.txt", "/a/~/b", "a~", "~no-such-user/a", r"C:\vectors", "C:/vectors", "a:b", "a/b:/c"]
)
def test_other_paths_stay_as_they_are(path):
    assert local_path(path) == Path(path)


@pytest.mark.parametrize(
    "path", ["gs://b/x", "https://host/v.txt", "s3://b/x", "file:///a", "hdfs:/a", Path("gs://b/x")]
)
def test_schemes_are_refused(path):
    with pytest.raises(SplitError, match="download the file first.*copy"):
        local_path(path)


@pytest.mark.parametrize("path", [3, None, ["a"]])
def test_what_cannot_be_a_path_is_refused(path):
    with pytest.raises(SplitError, match="Expected a path"):
        local_path(path)


def test_only_paths_of_a_source_change(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_source("~/a") == tmp_path / "a"
    vectors = {"~/a": [1.0]}
    assert local_source(vectors) is vectors and local_source(Path("-")) == "-"


def test_paths_and_open_files_hold_bytes():
    assert holds_bytes(Path("a")) and holds_bytes(io.BytesIO()) and not holds_bytes({"a": [1.0]})


def test_bytes_are_read_from_every_form(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_bytes(b"the")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the")))
    with (tmp_path / "a.txt").open("rb") as opened:
        for source in (tmp_path / "a.txt", str(tmp_path / "a.txt"), "-", io.BytesIO(b"the"), opened):
            with open_bytes(source) as file:
                assert file.read() == b"the"
        assert not opened.closed and name_source(opened) == str(tmp_path / "a.txt")


def test_files_opened_as_text_are_refused():
    with tempfile.NamedTemporaryFile("w+") as wrapped:
        for file in (io.StringIO("the"), wrapped):
            with pytest.raises(SplitError, match="found a file that was opened as text"):
                open_bytes(file)
