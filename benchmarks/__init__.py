"""The benchmark suite: real vectors and texts in, measured tables out; nothing but the command line imports it."""
