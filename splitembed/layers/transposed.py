"""TransposedEmbedding, the untied table of the logits of a SplitReversibleEmbedding."""

from splitembed.layers.embedding import SplitEmbedding


class TransposedEmbedding(SplitEmbedding):
    """A `SplitEmbedding` that stores its frozen rows as columns, `(dim, num_frozen)`, as Keras stores such a table."""

    is_transposed = True
