"""The share of a vocabulary that has pretrained vectors, and the memory of its tables."""

from splitembed.coverage.measure import measure_coverage
from splitembed.coverage.plot import RankPoint
from splitembed.coverage.report import CoverageReport, RuleCoverage
from splitembed.coverage.report_coverage import report_coverage
from splitembed.coverage.sizes import TableSizes
from splitembed.coverage.suggestions import Suggestion

__all__ = [
    "CoverageReport",
    "RankPoint",
    "RuleCoverage",
    "Suggestion",
    "TableSizes",
    "measure_coverage",
    "report_coverage",
]
