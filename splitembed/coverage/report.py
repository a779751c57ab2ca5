"""The account of a matching: numbers that were measured enter; text, a dict, JSON or a plot leaves."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splitembed.coverage.plot import plot_curve
from splitembed.coverage.records import Number, RankPoint, RuleCoverage, Suggestion, TableSizes, share
from splitembed.coverage.text import Row, aligned, number, printable, size_rows


@dataclass(frozen=True)
class CoverageReport:
    """How much of a vocabulary the pretrained vectors cover; reserved ids (padding, `[UNK]`) count nowhere.

    >>> report = CoverageReport(num_tokens=4, num_matched=3, running_tokens=50, running_matched=45, oov=(("zzz", 5),))
    >>> report.type_share, report.running_share, report.num_oov_types, report.oov_running_tokens
    (0.75, 0.9, 1, 5)
    >>> print(report)
                      matched  of   share
    types                   3   4  75.0 %
    running tokens         45  50  90.0 %
    out of vocabulary: 1 type, 5 running tokens
    zzz                     5

    Args:
        num_tokens: number of tokens in the vocabulary ("types").
        num_matched: how many of them have a pretrained vector.
        running_tokens: sum of the counts of all tokens; None where there were no counts.
        running_matched: sum of the counts of the matched tokens; None where there were no counts.
        oov: tokens without a pretrained vector and their counts, the heaviest first, equal ones in id order; without
            counts the first in id order, with None.
        rules: what each rule matched, in the order of trying.
        suggestions: for each token of `oov` a word that it may stand for, or None; None where nobody asked.
        sizes: rows and bytes of the tables; None where they are not known.
        curve: coverage among the most frequent tokens, at ranks spaced evenly on a log scale; None without counts.
    """

    num_tokens: int
    num_matched: int
    running_tokens: Number | None
    running_matched: Number | None
    oov: tuple[tuple[str, Number | None], ...]
    rules: tuple[RuleCoverage, ...] = ()
    suggestions: tuple[Suggestion | None, ...] | None = None
    sizes: TableSizes | None = None
    curve: tuple[RankPoint, ...] | None = None

    @property
    def num_oov_types(self) -> int:
        """Number of tokens without a pretrained vector, those that `oov` does not list included."""
        return self.num_tokens - self.num_matched

    @property
    def oov_running_tokens(self) -> Number | None:
        """Sum of the counts of the tokens without a pretrained vector; None without counts."""
        if self.running_tokens is None or self.running_matched is None:
            return None
        return self.running_tokens - self.running_matched

    @property
    def type_share(self) -> float:
        """Share of the tokens that are matched, from 0 to 1; NaN where there are no tokens."""
        return share(self.num_matched, self.num_tokens)

    @property
    def running_share(self) -> float | None:
        """Share of the running tokens that are matched, from 0 to 1; NaN where none run, None without counts."""
        if self.running_tokens is None or self.running_matched is None:
            return None
        return share(self.running_matched, self.running_tokens)

    def __str__(self) -> str:
        rows = [("", "matched", "of", "share"), *self._type_rows(), *self._running_rows()]
        head = len(rows)
        lines = aligned(rows + [(printable(token), number(count), "", "") for token, count in self.oov])
        if self.suggestions is not None:
            lines[head:] = map(_with_suggestion, lines[head:], self.suggestions)
        sizes = [] if self.sizes is None else aligned(size_rows(self.sizes))
        return "\n".join([*lines[:head], *sizes, *self._oov_title(), *lines[head:]])

    def _type_rows(self) -> Iterator[Row]:
        yield _row("types", self.num_matched, self.num_tokens)
        if len(self.rules) > 1:
            yield from (_row(f"  {rule.name}", rule.num_types, self.num_tokens) for rule in self.rules)

    def _running_rows(self) -> Iterator[Row]:
        if self.running_tokens is None or self.running_matched is None:
            return
        yield _row("running tokens", self.running_matched, self.running_tokens)
        if len(self.rules) > 1:
            yield from (_row(f"  {rule.name}", rule.running_tokens or 0, self.running_tokens) for rule in self.rules)

    def _oov_title(self) -> list[str]:
        if not self.num_oov_types:
            return []
        running = self.oov_running_tokens
        weight = "" if running is None else f", {number(running)} running token{'s' * (running != 1)}"
        which = "" if len(self.oov) == self.num_oov_types else f"; {len(self.oov)} of them shown"
        return [f"out of vocabulary: {self.num_oov_types:,} type{'s' * (self.num_oov_types != 1)}{weight}{which}"]

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain dicts, lists, strings and numbers; a share of nothing is None.

        >>> CoverageReport(2, 1, None, None, (("zzz", None),)).to_dict()["oov"]
        [{'token': 'zzz', 'count': None, 'suggestion': None}]
        """
        suggestions = self.suggestions or (None,) * len(self.oov)
        return {
            "num_tokens": self.num_tokens,
            "num_matched": self.num_matched,
            "num_oov_types": self.num_oov_types,
            "type_share": _plain(self.type_share),
            "running_tokens": self.running_tokens,
            "running_matched": self.running_matched,
            "oov_running_tokens": self.oov_running_tokens,
            "running_share": _plain(self.running_share),
            "rules": [rule._asdict() for rule in self.rules],
            "oov": [
                {"token": token, "count": count, "suggestion": suggestion and suggestion._asdict()}
                for (token, count), suggestion in zip(self.oov, suggestions, strict=True)
            ],
            "sizes": self.sizes and _sizes(self.sizes),
            "curve": self.curve and [point._asdict() for point in self.curve],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes `to_dict` as JSON, in ASCII, and returns it.

        >>> json.loads(CoverageReport(2, 1, None, None, (("zzz", None),)).to_json())["type_share"]
        0.5

        Args:
            path: a file to write it to as well.
        """
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="ascii")
        return text

    def plot(self, path: str | os.PathLike[str] | None = None, axes: Any = None) -> Any:
        """Draws coverage by frequency rank, by matplotlib; no display is needed.

        Args:
            path: a file to write, of the format that its ending names, such as .png or .svg.
            axes: matplotlib's, to draw on; None makes a figure.

        Returns:
            The matplotlib figure.

        Raises:
            SplitError: there were no counts, so no rank is known.
            ImportError: matplotlib is missing.
        """
        return plot_curve(self.curve, path, axes)


def _row(label: str, part: Number, whole: Number) -> Row:
    return label, number(part), number(whole), f"{100 * share(part, whole):.1f} %"


def _with_suggestion(line: str, suggestion: Suggestion | None) -> str:
    if suggestion is None:
        return line
    by = "" if suggestion.fallback is None else f' (by the fallback "{suggestion.fallback}")'
    return f"{line}  {printable(suggestion.word)}?{by}"


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _sizes(sizes: TableSizes) -> dict[str, int]:
    names = ("trainable_bytes", "trainable_adam_bytes", "dense_bytes", "dense_adam_bytes")
    return {**sizes._asdict(), **{name: getattr(sizes, name) for name in names}}
