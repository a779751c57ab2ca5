"""Accuracy, time and memory on real texts."""
