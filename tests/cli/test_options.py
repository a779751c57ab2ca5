"""Shared options: the sources and ids that their values become, and their names in messages."""

import inspect

import click
import pytest

from splitembed.cli.commands import main
from splitembed.cli.options import id_or_token, in_option_names, reading_options, vector_source
from splitembed.vectors import VectorSource


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


@pytest.mark.parametrize(("names", "datasets"), [(["m"], "m"), (["w", "m"], ("w", "m"))])
def test_one_dataset_is_the_matrix_and_two_are_words_and_matrix(names, datasets):
    arguments = [argument for name in names for argument in ("--dataset", name)]
    assert source_of(*arguments)[0] == VectorSource("vectors.txt", datasets=datasets)


def test_more_than_two_datasets_are_refused():
    with pytest.raises(click.UsageError, match="Received: 3 times"):
        source_of(*["--dataset", "a"] * 3)


@pytest.mark.parametrize("command", ["build", "convert", "coverage"])
def test_every_reading_option_has_the_name_of_a_field(command):
    fields = set(inspect.signature(VectorSource).parameters) - {"source", "non_finite"}
    offered = {parameter.name for parameter in main.commands[command].params}
    assert fields <= offered


@pytest.mark.parametrize(("text", "expected"), [(None, "auto"), ("7", 7), ("<pad>", "<pad>"), ("٣", "٣"), ("-1", "-1")])
def test_ascii_digits_are_an_id_and_other_text_a_token(text, expected):
    assert id_or_token(text) == expected


def test_messages_name_options_as_they_are_typed():
    message = "`trainable_tokens` and `min_count` need `counts`; `fallbacks` and `other` do not."
    expected = "--train and --min-count need --counts; --fallback and `other` do not."
    assert in_option_names(message, main.commands["build"]) == expected


def test_every_option_is_documented():
    for command in main.commands.values():
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help
