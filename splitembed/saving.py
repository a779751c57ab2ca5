"""How a SplitEmbedding is saved and loaded: in a `.keras` file, a weights file, a `tf.train.Checkpoint`, an export."""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from splitembed.errors import MissingTableError, SplitError
from splitembed.lookup import Constants
from splitembed.spec import LIVE, SplitSpec, live_on
from splitembed.split import SplitTable

ROWS = "trainable_rows"  # the weight's name, in the layer and in weights files


class SavesSplit(keras.layers.Layer):
    """The part of `SplitEmbedding` that saves and loads: mixed in as its base.

    The layer has `_split` and `_spec`, one of which may be None, `_constants`, None until it is built on tables, and
    the weight `trainable_rows` once it is built.
    """

    _split: SplitTable | None
    _spec: SplitSpec | None
    _constants: Constants | None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._belongs_to = _BelongsTo(self)

    def save_own_variables(self, store: Any) -> None:
        """Writes the trainable rows, and what they belong to, into a weights file."""
        store[ROWS] = self._rows()
        for name, value in self._described().tables().items():
            store[name] = np.frombuffer(value.encode(), np.uint8)

    def load_own_variables(self, store: Any) -> None:
        """Reads the trainable rows, after checking that they belong to this layer's split."""
        expected = self._described().tables()
        if set(store.keys()) != {ROWS, *expected}:
            raise SplitError(
                f"What was saved for layer {self.name!r} is no SplitEmbedding: it holds {sorted(store.keys())}. "
                f"Expected {sorted([ROWS, *expected])}. Load a model of the same layers."
            )
        found = {name: bytes(np.array(store[name])).decode() for name in expected}
        self._described().refuse_other(found, f"What was saved for layer {self.name!r}")
        if not self.built:
            self.build()
        self.trainable_rows.assign(np.array(store[ROWS]))

    def save_assets(self, directory: str) -> None:
        """Writes both tables into the folder that Keras packs into a `.keras` file."""
        split = self.to_split()
        split.save_frozen(Path(directory) / "frozen.h5")
        split.save_trainable(Path(directory) / "trainable.h5")

    def load_assets(self, directory: str | None) -> None:
        """Opens the tables where Keras unpacked them; a layer that has its tables already keeps them."""
        if self._split is not None or directory is None:
            return
        split = live_on(self._described())  # another layer of the archive may have read it
        if split is None:
            split = SplitTable.open(directory).detached()  # Keras removes the folder
            self._described().refuse_other(SplitSpec.of(split).tables(), f"The archive's table of layer {self.name!r}")
        self._split = split.with_trainable(self._rows()) if self.built else split
        self._spec = None  # the rows may be others by now
        self._described()
        if self.built:
            self._constants = Constants(self._split)

    def _described(self) -> SplitSpec:
        """The spec, and from now on the split is found by it."""
        if self._spec is None:
            self._spec = SplitSpec.of(self._loaded_split())
        if self._split is not None:
            LIVE[self._spec] = self._split
        return self._spec

    def _loaded_split(self) -> SplitTable:
        if self._split is None:
            raise MissingTableError(self._missing())
        return self._split

    def _missing(self) -> str:
        return (
            f"Layer {self.name!r} has no tables: it was made from a config, which holds only their fingerprints. "
            f"Load the whole model with keras.models.load_model, or make the layer from a SplitTable."
        )

    def _rows(self) -> np.ndarray:
        return np.array(keras.ops.convert_to_numpy(self.trainable_rows))  # a copy: training goes on in the variable

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """Checkpoints hold what trains, and what it belongs to; the frozen rows and the remap are for exports alone."""
        children = dict(super()._trackable_children(save_type, **kwargs))
        if save_type != "checkpoint":
            self._loaded_split()  # an export without tables would always fail
        children.pop("_constants" if save_type == "checkpoint" else "_belongs_to", None)
        return children


class _BelongsTo(tf.train.experimental.PythonState):
    """What a `tf.train.Checkpoint` knows of a layer's split: it refuses the rows of another one."""

    def __init__(self, layer: SavesSplit) -> None:
        self._layer = layer

    def serialize(self) -> str:
        """The fingerprints, into a checkpoint."""
        return json.dumps(self._layer._described().tables())

    def deserialize(self, string_value: str) -> None:
        """The fingerprints, out of a checkpoint that is being restored."""
        where = f"The checkpoint of layer {self._layer.name!r}"
        self._layer._described().refuse_other(json.loads(string_value), where)
