"""Token counts read from a text file."""

import itertools
import re
from collections import Counter
from pathlib import Path

import click

_NUM_SAMPLE_LINES = 100
_COUNT_LINE = re.compile(r"(\S+)[ \t]+([0-9]+)[ \t]*\r?\n?")


def count_tokens(path: Path | None) -> Counter[str] | None:
    """Return the token counts of a text file, read line by line; None without a file.

    The file holds running text, split on white space, or, if its first 100 lines all do, a token and its count in each
    line.

    Raises:
        click.ClickException: a later line holds no token and count.
    """
    if path is None:
        return None
    counts: Counter[str] = Counter()
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        first = list(itertools.islice(lines, _NUM_SAMPLE_LINES))
        has_counts = bool(first) and all(map(_COUNT_LINE.fullmatch, first))
        for number, line in enumerate(itertools.chain(first, lines), 1):
            if not has_counts:
                counts.update(line.split())
            elif found := _COUNT_LINE.fullmatch(line):
                counts[found[1]] += int(found[2])
            else:
                raise click.ClickException(
                    f"{path}, line {number}: found {line[:60]!r}, expected a token and its count, like the lines "
                    "before. Fix that line, or pass running text."
                )
    return counts
