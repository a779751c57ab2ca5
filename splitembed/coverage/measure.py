"""The coverage of a vocabulary, counted from its `Match`."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import is_count
from splitembed.coverage.plot import RankPoint
from splitembed.coverage.report import CoverageReport, RuleCoverage
from splitembed.coverage.sizes import TableSizes
from splitembed.coverage.text_table import Number
from splitembed.errors import SplitError
from splitembed.matching.match import NO_RULE, Match
from splitembed.matching.rules import EXACT
from splitembed.vocabulary import Vocabulary, align_counts

# OOV tokens listed by a report.
TOP = 20
# Points of a curve.
MAX_POINTS = 200

Weights = NDArray[np.int64] | NDArray[np.float64]


def measure_coverage(
    vocabulary: Vocabulary,
    matched: Match | NDArray[np.bool_],
    counts: Any = None,
    top: int = TOP,
    sizes: TableSizes | None = None,
) -> CoverageReport:
    """Count the matched tokens by rule, and list the most frequent OOV tokens.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary = read_vocabulary(["", "[UNK]", "the", "zzz", "qqq"])
    >>> measure_coverage(vocabulary, np.array([0, 0, 1, 0, 0], bool), counts={"the": 8, "zzz": 1, "qqq": 3}).oov
    (('qqq', 3), ('zzz', 1))

    Args:
        vocabulary: the tokens.
        matched: the result of `Candidates.match`; or bool `(num_tokens,)`, true for each id with an exact match.
            Reserved ids are ignored.
        counts: how often each token occurs, in a form that `align_counts` accepts, or None.
        top: number of OOV tokens to list.
        sizes: rows and bytes of the tables, if they are known.

    Raises:
        SplitError: `matched` has another shape or dtype, or `top` is negative.
        VocabularyError: `counts` are invalid.
    """
    rule, rules = _rules(matched, vocabulary.num_tokens)
    if not is_count(top, 0):
        raise SplitError(f"`top` must be an integer, 0 or more. Received: {top}.")
    rule = np.where(vocabulary.is_ordinary, rule, NO_RULE)
    weights = None if counts is None else align_counts(counts, vocabulary)
    ordinary = np.flatnonzero(vocabulary.is_ordinary)
    by_rule = tuple(_rule_coverage(name, rule == index, weights) for index, name in enumerate(rules))
    return CoverageReport(
        num_tokens=len(ordinary),
        num_matched=int(np.count_nonzero(rule >= 0)),
        num_gaps=len(vocabulary.gaps),
        running_tokens=_sum(weights, ordinary),
        running_matched=_sum(weights, rule >= 0),
        oov=_most_frequent(vocabulary, ordinary[rule[ordinary] < 0], weights, top),
        rules=by_rule,
        sizes=sizes,
        curve=None if weights is None else _curve(rule[ordinary] >= 0, weights[ordinary]),
    )


def _rules(matched: Match | NDArray[np.bool_], num_tokens: int) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """Return for each id the index of the rule that matched it, or -1, and the names of the rules."""
    if isinstance(matched, Match):
        if matched.rule.shape != (num_tokens,):
            raise SplitError(
                f"`matched` must be a Match for {num_tokens} tokens. Received: one for {len(matched.rule)}."
            )
        return matched.rule, matched.rules
    if matched.dtype != bool or matched.shape != (num_tokens,):
        found = f"{matched.dtype}, {matched.shape}"
        raise SplitError(f"`matched` must be bool of shape ({num_tokens},). Received: {found}.")
    return np.where(matched, np.int16(0), np.int16(NO_RULE)), (EXACT,)


def _rule_coverage(name: str, is_matched: NDArray[np.bool_], weights: Weights | None) -> RuleCoverage:
    return RuleCoverage(name, int(np.count_nonzero(is_matched)), _sum(weights, is_matched))


def _sum(weights: Weights | None, chosen: NDArray[Any]) -> Number | None:
    if weights is None:
        return None
    chosen_weights = weights[chosen]
    # `fsum` is exact, so that tokens of weight 0 do not change the rounding.
    return math.fsum(chosen_weights.tolist()) if weights.dtype.kind == "f" else chosen_weights.sum().item()


def _most_frequent(
    vocabulary: Vocabulary, missing: NDArray[np.int64], weights: Weights | None, top: int
) -> tuple[tuple[str, Number | None], ...]:
    if weights is None:
        return tuple((vocabulary.tokens[token_id], None) for token_id in missing[:top].tolist())
    first = missing[np.argsort(-weights[missing], kind="stable")[:top]]
    return tuple((vocabulary.tokens[token_id], weights[token_id].item()) for token_id in first.tolist())


def _curve(is_matched: NDArray[np.bool_], weights: Weights) -> tuple[RankPoint, ...]:
    """Return sums over the most frequent tokens, at ranks spaced evenly on a log scale up to the last token."""
    if not len(weights):
        return ()
    order = np.argsort(-weights, kind="stable")
    is_matched, weights = is_matched[order], weights[order]
    ranks = np.unique(np.geomspace(1, len(weights), MAX_POINTS).round().astype(np.int64))
    sums = (np.cumsum(is_matched), np.cumsum(weights), np.cumsum(weights * is_matched))
    columns = (ranks, *(each[ranks - 1] for each in sums))
    return tuple(RankPoint(*row) for row in zip(*(column.tolist() for column in columns), strict=True))
