"""Shared options: the sources and ids that their values become, and their names in messages."""

import inspect

import click
import pytest

from splitembed.cli.commands import main
from splitembed.cli.options import (
    STANDARD_STREAM,
    LocalPath,
    id_or_token,
    reading_options,
    vector_source,
    vocabulary_of,
    vocabulary_options,
)
from splitembed.vectors import VectorSource
from splitembed.vocabulary import read_vocabulary


def source_of(*arguments):
    """Return the source and the remaining options of a command with these arguments."""
    found = []

    @click.command()
    @click.option("--top", default=20)
    @reading_options
    def command(**options):
        found.extend([vector_source("vectors.txt", options), options])

    command.main(arguments, standalone_mode=False)
    return found


def test_without_reading_options_the_source_is_the_path():
    assert source_of() == ["vectors.txt", {"top": 20}]


def test_reading_options_make_a_vector_source(tmp_path):
    words = tmp_path / "words.txt"
    words.touch()
    source, others = source_of("--dim", "2", "--member", "a.txt", "--allow-pickle", "--strict", "--format", "glove")
    assert source == VectorSource("vectors.txt", dim=2, member="a.txt", allow_pickle=True, strict=True, format="glove")
    assert others == {"top": 20}
    assert source_of("--words", str(words))[0] == VectorSource((words, "vectors.txt"))
    assert source_of("--no-progress")[0] == VectorSource("vectors.txt", progress=False)


@pytest.mark.parametrize(("names", "datasets"), [(["m"], "m"), (["w", "m"], ("w", "m"))])
def test_one_dataset_is_the_matrix_and_two_are_words_and_matrix(names, datasets):
    arguments = [argument for name in names for argument in ("--dataset", name)]
    assert source_of(*arguments)[0] == VectorSource("vectors.txt", datasets=datasets)


def test_more_than_two_datasets_are_refused():
    with pytest.raises(click.UsageError, match="Received: 3 times"):
        source_of(*["--dataset", "a"] * 3)


@pytest.mark.parametrize("command", ["build", "convert", "coverage"])
def test_every_reading_option_has_the_name_of_a_field(command):
    fields = set(inspect.signature(VectorSource).parameters) - {"source"}
    offered = {parameter.name for parameter in main.commands[command].params}
    assert fields <= offered


@pytest.mark.parametrize(("text", "expected"), [("7", 7), ("<pad>", "<pad>"), ("٣", "٣"), ("-1", "-1")])
def test_ascii_digits_are_an_id_and_other_text_a_token(text, expected):
    assert id_or_token(text) == expected


@pytest.mark.parametrize("command", ["build", "coverage"])
def test_every_option_of_a_vocabulary_has_the_name_of_a_parameter(command):
    fields = set(inspect.signature(read_vocabulary).parameters) - {"source"}
    assert fields <= {parameter.name for parameter in main.commands[command].params}


def test_vocabulary_options_reach_the_reader(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("<pad>\n\nthe\n##ing\nthe\n")
    found = []

    @click.command()
    @vocabulary_options
    def command(**options):
        found.append(vocabulary_of(path, options))

    command.main(
        ["--keep-lines", "--padding", "<pad>", "--unknown", "1", "--marks", "wordpiece"], standalone_mode=False
    )
    assert found == [read_vocabulary(path, keep_lines=True, padding="<pad>", unknown=1, marks="wordpiece")]


def test_paths_are_local(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").touch()
    assert LocalPath(exists=True).convert("~/a.txt", None, None) == tmp_path / "a.txt"
    assert LocalPath(allow_dash=True).convert("-", None, None) == STANDARD_STREAM
    for path, message in (
        ("~/b.txt", "does not exist"),
        ("gs://b/x", "the scheme 'gs'"),
        ("-", "is not possible here"),
    ):
        with pytest.raises(click.BadParameter, match=message):
            LocalPath(exists=True).convert(path, None, None)


def test_every_option_is_documented():
    for command in main.commands.values():
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help
