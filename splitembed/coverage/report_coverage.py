"""The coverage of a vocabulary by a source of pretrained vectors."""

import dataclasses
from typing import Any

import numpy as np

from splitembed.coverage.measure import TOP, measure_coverage
from splitembed.coverage.report import CoverageReport
from splitembed.coverage.sizes import TableSizes
from splitembed.coverage.suggestions import Suggestion, load_rapidfuzz, suggest_words
from splitembed.matching.match import Match, find_candidates
from splitembed.tables.storage import FLOAT32
from splitembed.vectors import iter_vectors
from splitembed.vocabulary import Vocabulary, read_vocabulary


def report_coverage(
    vocabulary: Any,
    source: Any,
    counts: Any = None,
    top: int = TOP,
    *,
    fallbacks: Any = (),
    suggest: bool = False,
    padding: int | str | None = "auto",
    unknown: int | str | None = "auto",
    **reading: Any,
) -> CoverageReport:
    """Report how much of a vocabulary the pretrained vectors cover, without building a split.

    >>> vectors = {"the": [0.1, 0.2], "of": [0.3, 0.4]}
    >>> print(report_coverage(["The", "zzz", "of"], vectors, counts={"The": 6, "of": 3, "zzz": 1}, fallbacks=["lower"]))
                    matched      of      share
    types                 2       3     66.7 %
      exact               1       3     33.3 %
      lower               1       3     33.3 %
    running tokens        9      10     90.0 %
      exact               3      10     30.0 %
      lower               6      10     60.0 %
                     rows  memory  with Adam
    frozen              2    16 B
    trainable           1     8 B       24 B
    all trainable       3    24 B       72 B
    out of vocabulary: 1 type, 1 running token
    zzz                   1

    Args:
        vocabulary: anything that `read_vocabulary` accepts.
        source: anything that `read_vectors` accepts; it is read once, and only the words that can match are kept.
        counts: how often each token occurs: a dict token -> count, or an array in id order; None if unknown.
        top: number of OOV tokens to list.
        fallbacks: other spellings to try for tokens without an exact match, as in `build_split`.
        suggest: find a similar word for each listed token. This reads and checks every row of the source, and holds
            all its words in memory.
        padding: the id or token of padding, as for `read_vocabulary`.
        unknown: the id or token of `[UNK]`, as for `read_vocabulary`.
        **reading: options of `read_vectors`, such as `dim` and `allow_pickle`.

    Returns:
        The report; its sizes are those of a split with float32 rows in which each matched word is frozen.

    Raises:
        VocabularyError: the vocabulary or the counts are invalid.
        VectorFormatError: the source holds no vectors.
        SplitError: a fallback is invalid or fails.
        ImportError: `suggest` needs rapidfuzz, which is missing.
    """
    tokens = read_vocabulary(vocabulary, padding=padding, unknown=unknown)
    candidates = find_candidates(tokens, fallbacks)
    if suggest:
        # Fail before reading the source, which can take minutes.
        load_rapidfuzz()
    words: list[str] = []
    for block in iter_vectors(source, None if suggest else candidates.words, **reading):
        words += block.words
    match = candidates.match(words)
    report = measure_coverage(tokens, match, counts, top, _default_sizes(tokens, match, block.vectors.shape[1]))
    if not suggest:
        return report
    return dataclasses.replace(report, suggestions=_suggestions(tokens, report, words))


def _default_sizes(tokens: Vocabulary, match: Match, dim: int) -> TableSizes:
    """Return the sizes of the split that `build_split` makes by default."""
    num_zero_ids = int(tokens.padding is not None) + len(tokens.gaps)
    num_frozen = len(np.unique(match.rows[match.is_matched])) + min(1, num_zero_ids)
    num_trainable = int(np.count_nonzero(~match.is_matched)) - num_zero_ids
    return TableSizes(tokens.num_tokens, dim, num_frozen, num_trainable, FLOAT32.table_bytes(num_frozen, dim))


def _suggestions(tokens: Vocabulary, report: CoverageReport, words: list[str]) -> tuple[Suggestion | None, ...]:
    """Return a suggestion for each token that the report lists, looked up by its spelling in files of vectors."""
    missing = [token for token, _ in report.oov]
    spellings = tokens.spellings
    if spellings is None:
        return suggest_words(missing, words)
    names = [spellings[tokens.index[token]] for token in missing]
    spelled = [name for name in names if name]
    found = dict(zip(spelled, suggest_words(spelled, words), strict=True))
    return tuple(found.get(name) if name else None for name in names)
