"""TransposedEmbedding, the untied table of the logits of a SplitReversibleEmbedding."""

import keras

from splitembed.layers.embedding import SplitEmbedding


class TransposedEmbedding(SplitEmbedding):
    """A `SplitEmbedding` that stores its frozen rows as columns, `(dim, num_frozen)`, as Keras stores such a table."""

    is_turned = True

    def _hold_tables(self) -> None:
        if keras.backend.backend() != "tensorflow":
            # the weights of other backends belong to this layer alone
            super()._hold_tables()
        elif self._split is not None:
            from splitembed.lookup.dynamic import Constants

            self._constants = Constants(self._split, turned=True)
