"""Benchmarks of accuracy, with time and memory, on real texts."""
