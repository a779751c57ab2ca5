"""The split: frozen rows, trainable rows and the remap between them, and what becomes of them."""
