"""Initializers of the rows of OOV tokens."""

from splitembed.initializers.ngrams import NgramRidge
from splitembed.vectors.fasttext.subwords import SubwordVectors

__all__ = ["NgramRidge", "SubwordVectors"]
