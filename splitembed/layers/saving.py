"""Saving and loading of a SplitEmbedding: `.keras` files, weights files, `tf.train.Checkpoint` and exports."""

import json
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np

from splitembed.errors import MissingTableError, SplitError
from splitembed.keras_compat import assets_folder, refuse_files
from splitembed.layers.spec import LIVE, SplitSpec, live_on, live_with_frozen
from splitembed.split.table import SplitTable
from splitembed.tables import SEARCH_PATH, TRAINABLE_NAME, find_frozen, is_frozen

# Keras removes the unpacked files
_MAPPED_FILES_CAN_BE_REMOVED = os.name == "posix"
# the name of the trainable rows in weights files
ROWS = "trainable_rows"
# the name of their variable: optimizers such as Muon recognise a table of rows by "embedding" in a variable's path
VARIABLE = "trainable_embeddings"


class SavesSplit(keras.layers.Layer):
    """A base class of `SplitEmbedding` that saves and loads it.

    The layer has `_split` and `_spec`, one of which may be None, `_constants`, None until it is built on tables, and
    the weight `trainable_rows` once it is built; `_hold_tables` makes or fills `_constants` from `_split`.

    Args:
        save_by_reference: whether a `.keras` file holds the path of the frozen table instead of the table.
    """

    # in a model that Keras rebuilds from constructor arguments, which would make a plain layer
    refuses_archives = False

    _split: SplitTable | None
    _spec: SplitSpec | None
    _constants: Any

    def __init__(self, *, save_by_reference: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.save_by_reference = save_by_reference
        if keras.backend.backend() == "tensorflow":
            self._checkpoint_tables = _checkpoint_tables(self)

    def save_own_variables(self, store: Any) -> None:
        """Write the trainable rows, and the sizes and fingerprints of their split, into a weights file."""
        store[ROWS] = self._rows()
        for name, value in self._described().tables().items():
            store[name] = np.frombuffer(value.encode(), np.uint8)

    def load_own_variables(self, store: Any) -> None:
        """Read the trainable rows, after checking that they belong to the split of this layer."""
        expected = self._described().tables()
        if set(store.keys()) != {ROWS, *expected}:
            raise SplitError(
                f"The saved weights of layer {self.name!r} hold {sorted(store.keys())}, expected "
                f"{sorted([ROWS, *expected])} of a SplitEmbedding. Load them into a model of the same layers."
            )
        found = {name: bytes(np.array(store[name])).decode() for name in expected}
        self._described().refuse_other(found, f"The saved weights of layer {self.name!r}")
        if not self.built:
            self.build()
        self.trainable_rows.assign(np.array(store[ROWS]))

    def save_assets(self, directory: str) -> None:
        """Write the split into the folder that Keras packs into a `.keras` file; layers on one table write it once.

        Keras calls this for `.keras` files alone, and not for weights files.

        Raises:
            NotImplementedError: the layer is in a model that Keras rebuilds from constructor arguments.
        """
        if self.refuses_archives:
            refuse_files("Saving a model", self.name)
        split, folder = self.to_split(), Path(directory)
        frozen = self._file_of(split) if self.save_by_reference else _write_once(split, folder)
        split.save_trainable(folder / TRAINABLE_NAME, frozen_path=frozen)

    def load_assets(self, directory: str | None) -> None:
        """Open the tables that Keras unpacked; a layer that already has its tables keeps them."""
        if self._split is not None:
            return
        if directory is None:
            raise MissingTableError(f"The archive holds no tables of layer {self.name!r}. Save the model again.")
        split = live_on(self._described()) or self._opened(directory)
        self._split = split.with_trainable(self._rows()) if self.built else split
        # the rows may have changed
        self._spec = None
        self._described()
        if self.built:
            self._hold_tables()

    def _file_of(self, split: SplitTable) -> str:
        """Return the path of a file that holds the frozen rows."""
        path = split.frozen_file() or next(find_frozen(split.fingerprint), None)
        if path is None:
            raise SplitError(
                f"Layer {self.name!r} cannot be saved by reference: no file of its frozen table {split.fingerprint} "
                f"was found. Save the split first with split.save(folder), and make the layer from "
                f"SplitTable.open(folder); or list the folder of the table in the environment variable "
                f"{SEARCH_PATH}; or set save_by_reference of the layer to False."
            )
        return str(path.absolute())

    def _opened(self, directory: str) -> SplitTable:
        """Open the split of an archive, on the frozen rows of a live split if there is one."""
        memory_map, archive = self.save_by_reference or _MAPPED_FILES_CAN_BE_REMOVED, assets_folder(Path(directory))
        live = live_with_frozen(self._described().frozen_fingerprint)
        table = live.table if live is not None and self.save_by_reference else None
        # the first layer of an archive may have made it of the archive's own file
        table = None if table is None or table.path is None else table
        # a path in an archive may be any path of this machine
        split = SplitTable.open(directory, table, memory_map=memory_map, within=archive)
        split = split.detached(keep_table=self.save_by_reference)
        self._described().refuse_other(SplitSpec.of(split).tables(), f"The archive's table of layer {self.name!r}")
        return split if live is None else split.sharing(live)

    def _described(self) -> SplitSpec:
        """Return the spec of the split, and register the split as live."""
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
        # a copy, as training continues in the variable
        return np.array(keras.ops.convert_to_numpy(self.trainable_rows))

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """Return the trainable rows and their fingerprints for checkpoints, and the tables for exports."""
        children = dict(super()._trackable_children(save_type, **kwargs))
        if save_type != "checkpoint":
            # an export without tables would always fail
            self._loaded_split()
        children.pop("_constants" if save_type == "checkpoint" else "_checkpoint_tables", None)
        return children


def _checkpoint_tables(layer: SavesSplit) -> Any:
    """Return the part of a `tf.train.Checkpoint` that refuses trainable rows of another split."""
    import tensorflow as tf

    class CheckpointTables(tf.train.experimental.PythonState):
        def serialize(self) -> str:
            return json.dumps(layer._described().tables())

        def deserialize(self, string_value: str) -> None:
            layer._described().refuse_other(json.loads(string_value), f"The checkpoint of layer {layer.name!r}")

    return CheckpointTables()


def _write_once(split: SplitTable, folder: Path) -> str:
    """Write the frozen rows where all layers of an archive find them, unless another layer has.

    Args:
        split: the split whose frozen rows are written.
        folder: the folder of one layer in the archive.

    Returns:
        The path relative to the folder, as archives are unpacked elsewhere.
    """
    path = assets_folder(folder) / f"frozen-{split.fingerprint.removeprefix('sha256:')}.h5"
    if not is_frozen(path, split.fingerprint):
        split.save_frozen(path)
    return Path(os.path.relpath(path, folder)).as_posix()
