"""Paths: `~` is expanded, schemes are refused."""

from pathlib import Path

import pytest

from splitembed.errors import SplitError
from splitembed.paths import local_path


@pytest.mark.parametrize("make", [str, Path])
def test_the_home_folder_is_expanded(monkeypatch, tmp_path, make):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path(make("~/out")) == tmp_path / "out"


@pytest.mark.parametrize("path", ["a.txt", "/a/~/b", "a~", r"C:\vectors", "C:/vectors", "a:b", "a/b:/c"])
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
