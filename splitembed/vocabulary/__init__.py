"""The user's vocabulary: whatever lists tokens goes in; a `Vocabulary`, ids and counts in id order come out.

Row i belongs to what the user's own pipeline sends to i: nothing is sorted, stripped or cleared of duplicates.
"""

from splitembed.vocabulary.counts import align_counts
from splitembed.vocabulary.read import read_vocabulary
from splitembed.vocabulary.selections import out_of_range, resolve_ids
from splitembed.vocabulary.tokens import UNKNOWN_TOKEN
from splitembed.vocabulary.vocabulary import Vocabulary

__all__ = ["UNKNOWN_TOKEN", "Vocabulary", "align_counts", "out_of_range", "read_vocabulary", "resolve_ids"]
