"""Other vectors under trained rows: a split and a source go in; the split on that source leaves, and a report."""

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import aligned_empty
from splitembed.errors import SplitError
from splitembed.matching.match import find_candidates
from splitembed.split.base import SplitBase
from splitembed.split.grow import named
from splitembed.split.sources import NONE, read_source, zero_row_of
from splitembed.split.thaw_freeze import Remap, thaw, without_unused
from splitembed.tables.fingerprints import row_blocks
from splitembed.vectors import WordVectors
from splitembed.vocabulary import UNKNOWN_TOKEN, Vocabulary, read_vocabulary

Split = TypeVar("Split", bound=SplitBase)
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
LACKING, ANEW = ("train", "keep", "error"), ("keep", "freeze")


@dataclass(frozen=True)
class VectorChange:
    """Which tokens other vectors know, and what became of those that they do not, or that only they do.

    >>> print(VectorChange("glove.txt", num_found=2, lacking=("zzz",), anew=("usr", "lol")))
    frozen tokens with a vector in glove.txt: 2 of 3
    lacking: 1 (train): 'zzz'
    anew: 2 (keep): 'usr', 'lol'

    Args:
        source: what the vectors are called.
        num_found: number of tokens that were frozen and have a vector in the source.
        lacking: those that were frozen and have none, in id order.
        anew: those that trained because they had no vector, and have one in the source, in id order.
        lacking_rule: "train": they train, from the old vector; "keep": they keep it.
        anew_rule: "keep": they train on as they are; "freeze": their new vector is in the place of what they learned.
    """

    source: str
    num_found: int
    lacking: tuple[str, ...]
    anew: tuple[str, ...]
    lacking_rule: str = "train"
    anew_rule: str = "keep"

    def __str__(self) -> str:
        total = self.num_found + len(self.lacking)
        lines = [f"frozen tokens with a vector in {self.source}: {self.num_found:,} of {total:,}"]
        for name, tokens, rule in (("lacking", self.lacking, self.lacking_rule), ("anew", self.anew, self.anew_rule)):
            lines.append(f"{name}: {len(tokens):,} ({rule})" + (f": {named(tokens)}" if tokens else ""))
        return "\n".join(lines)


def with_frozen(
    split: Split, source: Any, *, lacking: str, anew: str, fallbacks: Any, vocabulary: Any
) -> tuple[Split, VectorChange]:
    """The split on other vectors, and what that changed; see `SplitTable.with_frozen`."""
    if lacking not in LACKING or anew not in ANEW:
        raise SplitError(
            f"`lacking` must be one of {', '.join(LACKING)}, and `anew` one of {', '.join(ANEW)}. "
            f"Received: lacking={lacking!r}, anew={anew!r}."
        )
    tokens = _tokens(split, vocabulary)
    candidates = find_candidates(tokens, fallbacks)
    vectors = read_source(source, candidates, split.dim)
    places = candidates.match_vectors(vectors).rows
    is_lacking = (split.remap >= 0) & (places == NONE)
    if split.padding is not None:
        is_lacking[split.padding] = False
    is_anew = _is_anew(split, tokens, places)
    change = VectorChange(
        vectors.source,
        int(np.count_nonzero((split.remap >= 0) & (places != NONE))),
        _named(tokens, is_lacking),
        _named(tokens, is_anew),
        lacking,
        anew,
    )
    if lacking == "error" and change.lacking:
        raise SplitError(
            f"Frozen tokens without a vector in {vectors.source}, {len(change.lacking)}: {named(change.lacking)}. "
            'Let them train from their old vector (lacking="train"), or keep it (lacking="keep").'
        )
    thawed = thaw(split, np.flatnonzero(is_lacking)) if lacking == "train" else split
    freezes = is_anew if anew == "freeze" else np.zeros_like(is_anew)
    found = ((thawed.remap >= 0) | freezes) & (places != NONE)
    kept = np.flatnonzero(is_lacking) if lacking == "keep" else np.empty(0, np.int64)
    remap = thawed.remap.copy()
    frozen = _frozen_parts(thawed, remap, np.flatnonzero(found), places[found], kept, vectors)
    remap, trainable = without_unused(remap, thawed.trainable)
    return thawed.with_parts(remap=remap, trainable=trainable, coverage=None, **frozen), change


def _named(tokens: Vocabulary, chosen: Mask) -> tuple[str, ...]:
    return tuple(itertools.compress(tokens.tokens, chosen.tolist()))


def _tokens(split: SplitBase, vocabulary: Any) -> Vocabulary:
    """The tokens of the split as they are to be matched: "" and `[UNK]` are no words."""
    if vocabulary is not None:
        return _checked_tokens(split, read_vocabulary(vocabulary))
    if split.vocabulary is None:
        raise SplitError("Vectors are matched by token, and the ids of this split have none. Pass `vocabulary`.")
    tokens = tuple(split.vocabulary)
    no_words = {token_id for token_id, token in enumerate(tokens) if token in ("", UNKNOWN_TOKEN)}
    return Vocabulary(tokens, split.padding, frozenset(no_words | _padding_of(split)), None)


def _padding_of(split: SplitBase) -> set[int]:
    return set() if split.padding is None else {split.padding}


def _checked_tokens(split: SplitBase, given: Vocabulary) -> Vocabulary:
    """A vocabulary that is the split's, with the words that were appended to it."""
    tokens = given.tokens if split.vocabulary is None else tuple(split.vocabulary)
    if len(tokens) != split.num_tokens or tokens[: given.num_tokens] != given.tokens:
        raise SplitError(
            f"`vocabulary` must hold the tokens of the split, or the first of them, at the same ids. Received: "
            f"{given.num_tokens} tokens that are not those; the split has {split.num_tokens}."
        )
    spellings = None if given.spellings is None else (*given.spellings, *tokens[given.num_tokens :])
    reserved = given.reserved | _padding_of(split)
    return dataclasses.replace(given, tokens=tokens, spellings=spellings, padding=split.padding, reserved=reserved)


def _is_anew(split: SplitBase, tokens: Vocabulary, places: Places) -> Mask:
    """`(num_tokens,)` bool: tokens that train, have a vector, and are no word of the old table, if it has words."""
    is_anew: Mask = (split.remap < 0) & (places != NONE)
    table = split.table
    if table is not None and table.words is not None and is_anew.any():
        old, names = set(table.words), tokens.spellings or tokens.tokens
        is_anew[[token_id for token_id in np.flatnonzero(is_anew).tolist() if names[token_id] in old]] = False
    return is_anew


def _frozen_parts(
    split: SplitBase, remap: Remap, found: Places, places: Places, kept: Places, vectors: WordVectors
) -> dict[str, Any]:
    """The frozen rows of ids that were found, in place or as a table of one's own, and of ids that keep theirs.

    Writes the rows of those ids, and of the padding id, into the remap.
    """
    rows = vectors.rows(places)
    table = vectors.table
    if table is not None and not len(kept):
        remap[found] = rows
        if split.padding is not None:
            remap[split.padding] = zero_row_of(vectors)
        return {"frozen": table.vectors, "scale": table.scale, "frozen_dtype": table.dtype, "table": table}
    _, first, row = np.unique(rows, return_index=True, return_inverse=True)
    _, first_kept, row_kept = np.unique(split.remap[kept], return_index=True, return_inverse=True)
    num_found, num_kept = len(first), len(first_kept)
    frozen = aligned_empty((num_found + num_kept + (split.padding is not None), split.dim), np.float32)
    for block in row_blocks(num_found, frozen.itemsize * split.dim):
        frozen[block] = vectors.take(places[first[block]])
    frozen[num_found : num_found + num_kept] = split.lookup(kept[first_kept])
    remap[found], remap[kept] = row, num_found + row_kept
    if split.padding is not None:
        frozen[-1], remap[split.padding] = 0, len(frozen) - 1
    return {"frozen": frozen}
