"""What was matched, counted: a vocabulary and its `Match` enter; a `CoverageReport` leaves."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import is_count
from splitembed.coverage.records import Number, RankPoint, RuleCoverage, TableSizes
from splitembed.coverage.report import CoverageReport
from splitembed.errors import SplitError
from splitembed.matching.match import Match
from splitembed.matching.rules import EXACT
from splitembed.vocabulary import Vocabulary, align_counts

TOP = 20  # out-of-vocabulary tokens that a report lists
MAX_POINTS = 200  # of a curve

Weights = NDArray[np.int64] | NDArray[np.float64]


def measure_coverage(
    vocabulary: Vocabulary,
    matched: Match | NDArray[np.bool_],
    counts: Any = None,
    top: int = TOP,
    sizes: TableSizes | None = None,
) -> CoverageReport:
    """Counts what was matched and by which rule, and lists the heaviest of what was not.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary = read_vocabulary(["", "[UNK]", "the", "zzz", "qqq"])
    >>> measure_coverage(vocabulary, np.array([0, 0, 1, 0, 0], bool), counts={"the": 8, "zzz": 1, "qqq": 3}).oov
    (('qqq', 3), ('zzz', 1))

    Args:
        vocabulary: the tokens.
        matched: what `Candidates.match` gives; or bool `(num_tokens,)`: whether the id has a pretrained vector, by
            exact match. What it says of reserved ids is ignored.
        counts: how often each token occurs, as `align_counts` takes them, or None.
        top: how many out-of-vocabulary tokens to list.
        sizes: rows and bytes of the tables, where they are known.

    Raises:
        SplitError: `matched` has another shape or dtype, or `top` is negative.
        VocabularyError: counts that are none.
    """
    rule, rules = _rules(matched, vocabulary.num_tokens)
    if not is_count(top, 0):
        raise SplitError(f"`top` must be an integer, 0 or more. Received: {top}.")
    rule = np.where(vocabulary.is_ordinary, rule, -1)
    weights = None if counts is None else align_counts(counts, vocabulary)
    ordinary = np.flatnonzero(vocabulary.is_ordinary)
    by_rule = tuple(_rule_coverage(name, rule == place, weights) for place, name in enumerate(rules))
    return CoverageReport(
        num_tokens=len(ordinary),
        num_matched=int(np.count_nonzero(rule >= 0)),
        running_tokens=_sum(weights, ordinary),
        running_matched=_sum(weights, rule >= 0),
        oov=_heaviest(vocabulary, ordinary[rule[ordinary] < 0], weights, top),
        rules=by_rule,
        sizes=sizes,
        curve=None if weights is None else _curve(rule[ordinary] >= 0, weights[ordinary]),
    )


def _rules(matched: Match | NDArray[np.bool_], num_tokens: int) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """`(num_tokens,)`: the place of the rule that matched each id, or -1; and the rules."""
    if isinstance(matched, Match):
        if matched.rule.shape != (num_tokens,):
            raise SplitError(f"`matched` must be a Match for {num_tokens} tokens. Received: for {len(matched.rule)}.")
        return matched.rule, matched.rules
    if matched.dtype != bool or matched.shape != (num_tokens,):
        found = f"{matched.dtype}, {matched.shape}"
        raise SplitError(f"`matched` must be bool of shape ({num_tokens},). Received: {found}.")
    return np.where(matched, np.int16(0), np.int16(-1)), (EXACT,)


def _rule_coverage(name: str, is_its: NDArray[np.bool_], weights: Weights | None) -> RuleCoverage:
    return RuleCoverage(name, int(np.count_nonzero(is_its)), _sum(weights, is_its))


def _sum(weights: Weights | None, chosen: NDArray[Any]) -> Number | None:
    if weights is None:
        return None
    some = weights[chosen]  # floats are added exactly, so that parts without weight change no sum
    return math.fsum(some.tolist()) if some.dtype.kind == "f" else some.sum().item()


def _heaviest(
    vocabulary: Vocabulary, missing: NDArray[np.int64], weights: Weights | None, top: int
) -> tuple[tuple[str, Number | None], ...]:
    if weights is None:
        return tuple((vocabulary.tokens[place], None) for place in missing[:top].tolist())
    first = missing[np.argsort(-weights[missing], kind="stable")[:top]]
    return tuple((vocabulary.tokens[place], weights[place].item()) for place in first.tolist())


def _curve(is_matched: NDArray[np.bool_], weights: Weights) -> tuple[RankPoint, ...]:
    """Sums over the most frequent tokens, at ranks spaced evenly on a log scale, the last of them included."""
    if not len(weights):
        return ()
    order = np.argsort(-weights, kind="stable")
    is_matched, weights = is_matched[order], weights[order]
    ranks = np.unique(np.geomspace(1, len(weights), MAX_POINTS).round().astype(np.int64))
    sums = (np.cumsum(is_matched), np.cumsum(weights), np.cumsum(weights * is_matched))
    columns = (ranks, *(each[ranks - 1] for each in sums))
    return tuple(RankPoint(*row) for row in zip(*(column.tolist() for column in columns), strict=True))
