"""Command-line options that several commands share, and the conversion of their values.

Each option of `VectorSource` on the command line is one entry of `_READING`, and each option of `read_vocabulary` one
entry of `_VOCABULARY`, under its name in Python.
"""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from splitembed.errors import SplitError
from splitembed.paths import STANDARD_INPUT, local_path
from splitembed.vectors import VectorSource
from splitembed.vectors.read_checks import NON_FINITE
from splitembed.vocabulary import read_vocabulary

# Standard input or output, as commands of Unix name them.
STANDARD_STREAM = STANDARD_INPUT


class LocalPath(click.Path):
    """A path with `~` expanded, as a pathlib.Path; or "-" where it is allowed. Addresses of remote storage are refused.

    >>> LocalPath(allow_dash=True).convert("-", None, None), LocalPath().convert("a.txt", None, None).name
    ('-', 'a.txt')
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == STANDARD_STREAM:
            if self.allow_dash:
                return value
            self.fail("Standard input or output (-) is not possible here. Pass a path.", param, ctx)
        try:
            path = local_path(value)
        except SplitError as error:
            self.fail(str(error), param, ctx)
        super().convert(os.fspath(path), param, ctx)
        return path


EXISTING = LocalPath(exists=True)
SOURCE = LocalPath(exists=True, allow_dash=True)
FOLDER = LocalPath()
OUTPUT = LocalPath(allow_dash=True)

counts_option = click.option(
    "--counts",
    type=SOURCE,
    help="A file of token counts: running text, split on white space, or lines of a token and its count.",
)
fallback_option = click.option(
    "--fallback",
    "fallbacks",
    multiple=True,
    metavar="RULE",
    help="Try another spelling of tokens without an exact match: lower, title, upper, nfc, nfkc, digits-0, digits-#, "
    "hyphens, spaces, apostrophes, accents, prefix:TEXT, or joined ones such as lower+accents. Can be repeated; tried "
    "in that order.",
)
json_option = click.option(
    "--json",
    "json_path",
    type=OUTPUT,
    metavar="FILE",
    help="Write the result as JSON to this file; - for standard output, in place of the text.",
)
_READING = {
    "words": click.option(
        "--words", type=SOURCE, help="A file of the words of a bare matrix, such as an .npy: one a line."
    ),
    "dim": click.option(
        "--dim", type=click.IntRange(1), help="The expected length of a row; also selects a file in a zip archive."
    ),
    "member": click.option("--member", metavar="NAME", help="The file to read in a zip archive."),
    "format": click.option("--format", metavar="NAME", help="Refuse vectors in any other format."),
    "datasets": click.option(
        "--dataset",
        "datasets",
        multiple=True,
        metavar="NAME",
        help="A dataset of a foreign HDF5 or .npz file: give it once for the matrix, or twice for words and matrix.",
    ),
    "allow_pickle": click.option(
        "--allow-pickle", is_flag=True, help="Load a pickle (.kv), which can run arbitrary code."
    ),
    "skip_bad_lines": click.option(
        "--skip-bad-lines", is_flag=True, help="Skip lines that cannot be read, and count them."
    ),
    "numbers_are_words": click.option(
        "--numbers-are-words", is_flag=True, help="Accept a text whose words are all decimal numbers."
    ),
    "strict": click.option("--strict", is_flag=True, help="Turn warnings about the vectors into errors."),
    "non_finite": click.option(
        "--non-finite", type=click.Choice(NON_FINITE), help="Replace NaN and infinities by zero. Default: error."
    ),
    "progress": click.option(
        "--progress/--no-progress", default=None, help="Show a bar of bytes read. Default: on a terminal."
    ),
}
_VOCABULARY = {
    "padding": click.option(
        "--padding", metavar="ID|TOKEN", help="The token with a zero, frozen row. Default: a blank first line."
    ),
    "unknown": click.option("--unknown", metavar="ID|TOKEN", help="The token for unknown words. Default: [UNK]."),
    "keep_lines": click.option(
        "--keep-lines", is_flag=True, help="Let ids be the line numbers, with blank and duplicate lines."
    ),
    "num_words": click.option(
        "--num-words", type=click.IntRange(1), metavar="N", help="Of JSON token -> id, keep only ids below N."
    ),
    "marks": click.option(
        "--marks",
        metavar="NAME",
        help="The marks of subwords: wordpiece, metaspace, byte-level, word-end, or none. Default: a tokenizer's.",
    ),
}


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options for reading vectors, which `vector_source` uses."""
    return _decorated(command, _READING)


def vocabulary_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options for reading a vocabulary, which `vocabulary_of` uses."""
    return _decorated(command, _VOCABULARY)


def _decorated(command: Callable[..., Any], options: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    for option in reversed(options.values()):
        command = option(command)
    return command


def vector_source(vectors: Path | str, options: dict[str, Any]) -> Any:
    """Remove the options for reading vectors from those of a command, and return the source that they describe.

    >>> options = {name: None for name in _READING} | {"dim": 50, "top": 5}
    >>> vector_source("glove.txt", options).dim, options
    (50, {'top': 5})
    """
    given = _given(_READING, options, VectorSource)
    words = given.pop("words", None)
    if "datasets" in given:
        given["datasets"] = _dataset_names(given["datasets"])
    if words is None and not given:
        return vectors
    return VectorSource(vectors if words is None else (words, vectors), **given)


def vocabulary_of(vocabulary: Path | str, options: dict[str, Any]) -> Any:
    """Remove the options for reading a vocabulary from those of a command, and return the vocabulary.

    Raises:
        VocabularyError, TokenIdError, UnknownTokenError, OSError: as `read_vocabulary` raises them.
    """
    given = _given(_VOCABULARY, options, read_vocabulary)
    for name in {"padding", "unknown"} & given.keys():
        given[name] = id_or_token(given[name])
    if given.get("marks") == "none":
        given["marks"] = None
    return read_vocabulary(vocabulary, **given)


def _given(known: dict[str, Any], options: dict[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Remove the known options from those of a command, and return those other than the defaults of a function."""
    values = {name: options.pop(name) for name in known}
    defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    return {name: value for name, value in values.items() if value not in (None, (), defaults.get(name))}


def _dataset_names(names: tuple[str, ...]) -> tuple[str, ...] | str:
    if len(names) > 2:
        raise click.UsageError(
            "--dataset must be given once, for the matrix, or twice, for words and matrix. "
            f"Received: {len(names)} times."
        )
    return names[0] if len(names) == 1 else names


def id_or_token(text: str) -> int | str:
    """Return the id or token that an option names.

    >>> id_or_token("0"), id_or_token("<pad>")
    (0, '<pad>')
    """
    return int(text) if text.isascii() and text.isdigit() else text
