"""The rows that differ between two splits, such as before and after training."""

from splitembed.difference.measure import diff
from splitembed.difference.moved import Difference, MovedRow

__all__ = ["Difference", "MovedRow", "diff"]
