"""Token counts read from a text file."""

import itertools
import re
from collections import Counter
from pathlib import Path

import click

from splitembed.paths import name_source, open_bytes

_NUM_SAMPLE_LINES = 100
_COUNT_LINE = re.compile(r"(\S+)[ \t]+([0-9]+)[ \t]*\r?\n?")


def count_tokens(source: Path | str | None) -> Counter[str] | None:
    """Return the token counts of a text file or of standard input ("-"), read line by line; None without a file.

    The file holds running text, split on white space, or, if its first 100 lines all do, a token and its count in each
    line.

    Raises:
        click.ClickException: there are no tokens, or a later line holds no token and count.
    """
    if source is None:
        return None
    name, counts = name_source(source), Counter[str]()
    with open_bytes(source) as file:
        lines = (line.decode("utf-8", "surrogateescape") for line in file)
        first = list(itertools.islice(lines, _NUM_SAMPLE_LINES))
        has_counts = bool(first) and all(map(_COUNT_LINE.fullmatch, first))
        for number, line in enumerate(itertools.chain(first, lines), 1):
            if not has_counts:
                counts.update(line.split())
            elif found := _COUNT_LINE.fullmatch(line):
                counts[found[1]] += int(found[2])
            else:
                raise click.ClickException(
                    f"{name}, line {number}: found {line[:60]!r}, expected a token and its count, like the lines "
                    "before. Fix that line, or pass running text."
                )
    if not counts:
        raise click.ClickException(
            f"{name}: found no tokens, expected running text or lines of a token and its count. Pass another file, or "
            "leave out --counts."
        )
    return counts
