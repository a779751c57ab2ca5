"""What training did to a vocabulary: two splits enter; which rows moved, how far and where to, leaves."""

from splitembed.difference.measure import diff
from splitembed.difference.moved import Difference, MovedRow

__all__ = ["Difference", "MovedRow", "diff"]
