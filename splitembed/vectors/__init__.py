"""Pretrained vectors: foreign files, frozen tables and objects in memory enter; words and their rows leave."""

from splitembed.vectors.blocks import Block, WordVectors
from splitembed.vectors.read import iter_vectors, read_vectors

__all__ = ["Block", "WordVectors", "iter_vectors", "read_vectors"]
