"""Pretrained vectors: words and their rows, read from files, frozen tables and objects in memory."""

from splitembed.vectors.fasttext.subwords import SubwordVectors
from splitembed.vectors.read import iter_vectors, read_vectors
from splitembed.vectors.source import VectorSource
from splitembed.vectors.word_vectors import Block, WordVectors

__all__ = [
    "Block",
    "SubwordVectors",
    "VectorSource",
    "WordVectors",
    "iter_vectors",
    "read_vectors",
]
