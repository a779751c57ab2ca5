"""Formats that hold words beside a matrix: objects in memory, container files and frozen tables."""
