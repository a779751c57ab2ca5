"""The speed suite behind `make bench`.

problems.py, texts.py   the tables, ids and files that contestants work on
contestants/            one small file for each method that is compared
scenarios/              which contestants run, at which sizes, and the targets
worker.py               a contestant in its own process
harness.py              turns (A B A B ...), medians and spread
checks.py               whether all contestants compute the same, and whether "frozen" rows move
outcome.py, report.py, plots.py   the results
"""
