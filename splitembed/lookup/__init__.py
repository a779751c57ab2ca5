"""The lookup: token ids to rows, and the gradient back to the trainable ones."""
