"""The benchmark suite: real vectors and texts in, measured tables out; nothing else in the package imports it."""
