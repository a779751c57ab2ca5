"""Benchmarks of speed, memory and accuracy. They are not part of the installed package."""
