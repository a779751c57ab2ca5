"""The suite behind `splitembed bench`: scenarios go in; contestants are checked, then timed in turn; reports come out.

problems.py, texts.py   what contestants work on: tables and ids, files of vectors
contestants/            one small file for each way to do the job
scenarios/              who runs against whom, at which sizes, and the targets
worker.py               a contestant in a process of its own
harness.py              A B A B ..., medians, spread
checks.py               that everyone computes the same, and whether "frozen" rows moved
outcome.py, report.py, plots.py   what it came to
"""
