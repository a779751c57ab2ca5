"""Command-line options that several commands share, and the conversion of their values.

Each option of `VectorSource` on the command line is one entry of `_READING`, under its name in Python.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

EXISTING = click.Path(exists=True, path_type=Path)
OUTPUT = click.Path(path_type=Path)
# A str, because "-" for standard input is not a path.
VECTORS = click.Path(exists=True, allow_dash=True)

counts_option = click.option(
    "--counts",
    type=EXISTING,
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
_READING = {
    "words": click.option(
        "--words", type=EXISTING, help="A file of the words of a bare matrix, such as an .npy: one a line."
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
}


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options for reading vectors, which `vector_source` uses."""
    for option in reversed(_READING.values()):
        command = option(command)
    return command


def vector_source(vectors: str, options: dict[str, Any]) -> Any:
    """Remove the options for reading vectors from those of a command, and return the source that they describe.

    >>> options = {name: None for name in _READING} | {"dim": 50, "top": 5}
    >>> vector_source("glove.txt", options).dim, options
    (50, {'top': 5})
    """
    from splitembed.vectors import VectorSource

    given = {name: value for name in _READING if (value := options.pop(name))}
    words = given.pop("words", None)
    if "datasets" in given:
        given["datasets"] = _dataset_names(given["datasets"])
    if words is None and not given:
        return vectors
    return VectorSource(vectors if words is None else (words, vectors), **given)


def _dataset_names(names: tuple[str, ...]) -> tuple[str, ...] | str:
    if len(names) > 2:
        raise click.UsageError(
            "--dataset must be given once, for the matrix, or twice, for words and matrix. "
            f"Received: {len(names)} times."
        )
    return names[0] if len(names) == 1 else names


def id_or_token(text: str | None) -> int | str:
    """Return the id or token that an option names, or "auto" without a value.

    >>> id_or_token("0"), id_or_token("<pad>"), id_or_token(None)
    (0, '<pad>', 'auto')
    """
    if text is None:
        return "auto"
    return int(text) if text.isascii() and text.isdigit() else text


def in_option_names(message: str, command: click.Command) -> str:
    """Replace the names of Python arguments in a message by those of the command's options.

    >>> command = click.Command("build", params=[click.Option(["--fallback", "fallbacks"])])
    >>> in_option_names("`fallbacks` must hold rules.", command)
    '--fallback must hold rules.'
    """
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            message = message.replace(f"`{parameter.name}`", parameter.opts[0])
    return message
