"""The coverage report, as text, dict, JSON or plot."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from splitembed.coverage.plot import RankPoint, plot_curve, share
from splitembed.coverage.sizes import TableSizes, size_rows
from splitembed.coverage.suggestions import Suggestion
from splitembed.coverage.text_table import Number, Row, aligned, number, printable
from splitembed.paths import local_path


class RuleCoverage(NamedTuple):
    """The tokens that one matching rule found.

    Args:
        name: the name of the rule.
        num_types: number of tokens.
        running_tokens: sum of their counts; None without counts.
    """

    name: str
    num_types: int
    running_tokens: Number | None = None


@dataclass(frozen=True)
class CoverageReport:
    """The share of a vocabulary that has pretrained vectors, without its reserved ids (padding, `[UNK]`).

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
        num_matched: number of them that have a pretrained vector.
        running_tokens: sum of the counts of all tokens; None without counts.
        running_matched: sum of the counts of the matched tokens; None without counts.
        oov: OOV tokens and their counts, the most frequent first, equally frequent ones in id order; without counts
            the first in id order, each with None.
        rules: the tokens that each rule matched, in the order in which the rules are tried.
        suggestions: for each token of `oov` a similar word that has a vector, or None; None if suggestions were not
            requested.
        sizes: rows and bytes of the tables, if they are known.
        curve: coverage among the most frequent tokens, at ranks spaced evenly on a log scale; None without counts.
        num_gaps: number of ids without a token, which share one zero row.
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
    num_gaps: int = 0

    @property
    def num_oov_types(self) -> int:
        """Number of OOV tokens, including those that `oov` does not list."""
        return self.num_tokens - self.num_matched

    @property
    def oov_running_tokens(self) -> Number | None:
        """Sum of the counts of the OOV tokens; None without counts."""
        if self.running_tokens is None or self.running_matched is None:
            return None
        return self.running_tokens - self.running_matched

    @property
    def type_share(self) -> float:
        """Share of the tokens that are matched, from 0 to 1; NaN without tokens."""
        return share(self.num_matched, self.num_tokens)

    @property
    def running_share(self) -> float | None:
        """Share of the running tokens that are matched, from 0 to 1; NaN if all counts are 0, None without counts."""
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
        gaps = [f"ids without a token: {self.num_gaps:,}, with one zero row"] if self.num_gaps else []
        return "\n".join([*lines[:head], *sizes, *gaps, *self._oov_title(), *lines[head:]])

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
        """Return the report as plain dicts, lists, strings and numbers; an undefined share is None.

        >>> CoverageReport(2, 1, None, None, (("zzz", None),)).to_dict()["oov"]
        [{'token': 'zzz', 'count': None, 'suggestion': None}]
        """
        suggestions = self.suggestions or (None,) * len(self.oov)
        return {
            "num_tokens": self.num_tokens,
            "num_matched": self.num_matched,
            "num_gaps": self.num_gaps,
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
            "sizes": self.sizes and self.sizes.to_dict(),
            "curve": self.curve and [point._asdict() for point in self.curve],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return `to_dict` as JSON, in ASCII.

        >>> json.loads(CoverageReport(2, 1, None, None, (("zzz", None),)).to_json())["type_share"]
        0.5

        Args:
            path: a file to write the JSON to as well.
        """
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False)
        if path is not None:
            local_path(path).write_text(text + "\n", encoding="ascii")
        return text

    def plot(self, path: str | os.PathLike[str] | None = None, axes: Any = None) -> Any:
        """Draw coverage by frequency rank with matplotlib; no display is needed.

        Args:
            path: a file to write, in the format that its suffix names, such as .png or .svg.
            axes: matplotlib axes to draw on; None makes a new figure.

        Returns:
            The matplotlib figure.

        Raises:
            SplitError: the report was made without counts, or matplotlib cannot write the format.
            ImportError: matplotlib is missing.
        """
        return plot_curve(self.curve, path, axes)


def _row(label: str, part: Number, whole: Number) -> Row:
    # Of nothing there is no share.
    return label, number(part), number(whole), f"{100 * share(part, whole):.1f} %" if whole else "-"


def _with_suggestion(line: str, suggestion: Suggestion | None) -> str:
    if suggestion is None:
        return line
    by = "" if suggestion.fallback is None else f' (by the fallback "{suggestion.fallback}")'
    return f"{line}  {printable(suggestion.word)}?{by}"


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
