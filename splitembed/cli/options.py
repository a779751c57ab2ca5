"""Options that several commands share: what the user typed enters; counts, and sources of vectors, leave."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_NUM_SAMPLE_LINES = 100
_COUNT_LINE = re.compile(r"(\S+)[ \t]+([0-9]+)[ \t]*\r?\n?")
EXISTING = click.Path(exists=True, path_type=Path)
OUTPUT = click.Path(path_type=Path)
VECTORS = click.Path(exists=True, allow_dash=True)  # a str, as "-" is no path

corpus_option = click.option(
    "--counts",
    "corpus",
    type=EXISTING,
    help="How often each token occurs: running text, split on white space, or lines of a token and its count.",
)
fallback_option = click.option(
    "--fallback",
    "fallbacks",
    multiple=True,
    metavar="RULE",
    help="Where a token is not found, try this: lower, title, upper, nfc, nfkc, digits-0, digits-#, hyphens, "
    "apostrophes, accents, or such as lower+accents. May be given again; tried in that order.",
)
_READING = {
    "words": click.option("--words", type=EXISTING, help="The words of a bare matrix, such as an .npy: one a line."),
    "dim": click.option(
        "--dim", type=click.IntRange(1), help="Numbers a row, checked; chooses a file in a zip archive."
    ),
    "member": click.option("--member", metavar="NAME", help="Which file in a zip archive."),
    "format": click.option("--format", metavar="NAME", help="Refuse vectors in any other format."),
    "datasets": click.option(
        "--dataset",
        "datasets",
        multiple=True,
        metavar="NAME",
        help="Of a foreign HDF5 or .npz file: given twice, the words and the matrix. Once: the matrix alone.",
    ),
    "allow_pickle": click.option("--allow-pickle", is_flag=True, help="Load a pickle (.kv), which can run any code."),
    "strict": click.option("--strict", is_flag=True, help="Make every doubt about the file an error."),
}


def reads_vectors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options of reading vectors; `vector_source` takes them out again."""
    for option in reversed(_READING.values()):
        command = option(command)
    return command


def vector_source(vectors: str, options: dict[str, Any]) -> Any:
    """The vectors with the options for reading them, which are taken out of those of the command."""
    from splitembed.vectors import VectorSource

    given = {name: value for name in _READING if (value := options.pop(name))}
    if "words" in given:
        return VectorSource((given.pop("words"), vectors), **_with_datasets(given))
    return VectorSource(vectors, **_with_datasets(given)) if given else vectors


def _with_datasets(given: dict[str, Any]) -> dict[str, Any]:
    names = given.get("datasets", ())
    if len(names) > 2:
        raise click.UsageError(f"--dataset names words and matrix, or the matrix alone; given {len(names)} times.")
    return {**given, "datasets": names[0] if len(names) == 1 else names} if names else given


def id_or_token(text: str | None) -> int | str:
    """What names one token: its id, if it is a number, else the token itself; "auto" if nothing was said."""
    if text is None:
        return "auto"
    return int(text) if text.isascii() and text.isdigit() else text


def count_tokens(corpus: Path | None) -> Counter[str] | None:
    """Token counts of a text file, streamed line by line: of running text, or as its lines of token and count say."""
    if corpus is None:
        return None
    counts: Counter[str] = Counter()
    with corpus.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        first = list(itertools.islice(lines, _NUM_SAMPLE_LINES))
        has_counts = bool(first) and all(map(_COUNT_LINE.fullmatch, first))
        for number, line in enumerate(itertools.chain(first, lines), 1):
            if not has_counts:
                counts.update(line.split())
            elif found := _COUNT_LINE.fullmatch(line):
                counts[found[1]] += int(found[2])
            else:
                raise click.ClickException(
                    f"{corpus}, line {number}: found {line[:60]!r}; expected a token and its count, as in the lines "
                    "before it. Mend that line, or pass running text."
                )
    return counts
