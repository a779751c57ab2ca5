"""What of a vocabulary has a pretrained vector, what has not, and what it weighs."""

from splitembed.coverage.measure import measure_coverage
from splitembed.coverage.records import RankPoint, RuleCoverage, Suggestion, TableSizes
from splitembed.coverage.report import CoverageReport
from splitembed.coverage.report_coverage import report_coverage

__all__ = [
    "CoverageReport",
    "RankPoint",
    "RuleCoverage",
    "Suggestion",
    "TableSizes",
    "measure_coverage",
    "report_coverage",
]
