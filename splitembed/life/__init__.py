"""The life of a split: rows thaw and freeze, tokens come and go, other vectors take the frozen rows' place."""

from splitembed.life.moves import carried_rows
from splitembed.life.swapping import VectorChange

__all__ = ["VectorChange", "carried_rows"]
