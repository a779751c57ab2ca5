"""Read the user's vocabulary: tokens in id order, ids of selected tokens, and counts.

Row i belongs to the token that the user's pipeline maps to id i: nothing is sorted, stripped or deduplicated.
"""

from splitembed.vocabulary.counts import align_counts
from splitembed.vocabulary.read import read_vocabulary
from splitembed.vocabulary.selections import check_ids, out_of_range, resolve_ids
from splitembed.vocabulary.tokens import UNKNOWN_TOKEN
from splitembed.vocabulary.vocabulary import Vocabulary

__all__ = ["UNKNOWN_TOKEN", "Vocabulary", "align_counts", "check_ids", "out_of_range", "read_vocabulary", "resolve_ids"]
