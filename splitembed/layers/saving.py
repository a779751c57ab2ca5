"""How a SplitEmbedding is saved and loaded: in a `.keras` file, a weights file, a `tf.train.Checkpoint`, an export."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from splitembed.errors import MissingTableError, SplitError
from splitembed.keras_compat import refuse_files
from splitembed.layers.spec import LIVE, SplitSpec, live_on, live_with_frozen
from splitembed.split.table import SplitTable
from splitembed.tables import SEARCH_PATH, TRAINABLE_NAME, find_frozen, is_frozen

_FILES_CAN_GO_WHILE_MAPPED = os.name == "posix"  # Keras removes what it unpacked
ROWS = "trainable_rows"  # the weight's name, in the layer and in weights files


class SavesSplit(keras.layers.Layer):
    """The part of `SplitEmbedding` that saves and loads: mixed in as its base.

    The layer has `_split` and `_spec`, one of which may be None, `_constants`, None until it is built on tables, and
    the weight `trainable_rows` once it is built; `_hold_tables` makes or fills `_constants` from `_split`.

    Args:
        save_by_reference: whether a `.keras` file says where the frozen table is, instead of holding it.
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
            self._belongs_to = _belongs_to(self)

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
        """Writes the split into the folder that Keras packs into a `.keras` file; frozen rows once for all layers.

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
        """Opens the tables where Keras unpacked them; a layer that has its tables already keeps them."""
        if self._split is not None:
            return
        if directory is None:
            raise MissingTableError(f"The archive holds no tables of layer {self.name!r}. Save the model again.")
        split = live_on(self._described()) or self._opened(directory)
        self._split = split.with_trainable(self._rows()) if self.built else split
        self._spec = None  # the rows may be others by now
        self._described()
        if self.built:
            self._hold_tables()

    def _file_of(self, split: SplitTable) -> str:
        """Where the frozen rows are in a file of their own."""
        path = split.frozen_file() or next(find_frozen(split.fingerprint), None)
        if path is None:
            raise SplitError(
                f"Layer {self.name!r} cannot be saved by reference: its frozen table {split.fingerprint} is in no file "
                f"that can be found. Save the split first, split.save(folder), and make the layer of "
                f"SplitTable.open(folder); or list the folder that holds the table in the environment variable "
                f"{SEARCH_PATH}; or set the layer's save_by_reference to False."
            )
        return str(path.absolute())

    def _opened(self, directory: str) -> SplitTable:
        """The split of an archive, on the frozen rows that another layer holds already, if one does."""
        memory_map = self.save_by_reference or _FILES_CAN_GO_WHILE_MAPPED
        split = SplitTable.open(directory, memory_map=memory_map).detached(keep_table=self.save_by_reference)
        self._described().refuse_other(SplitSpec.of(split).tables(), f"The archive's table of layer {self.name!r}")
        live = live_with_frozen(split.fingerprint)
        return split if live is None else split.sharing(live)

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


def _belongs_to(layer: SavesSplit) -> Any:
    """What a `tf.train.Checkpoint` knows of a layer's split: it refuses the rows of another one."""
    import tensorflow as tf

    class BelongsTo(tf.train.experimental.PythonState):
        def serialize(self) -> str:
            return json.dumps(layer._described().tables())

        def deserialize(self, string_value: str) -> None:
            layer._described().refuse_other(json.loads(string_value), f"The checkpoint of layer {layer.name!r}")

    return BelongsTo()


def _write_once(split: SplitTable, folder: Path) -> str:
    """Writes the frozen rows where every layer of an archive finds them, unless another one has done so.

    Args:
        split: whose frozen rows.
        folder: where the archive keeps what belongs to one layer.

    Returns:
        The file, relative to the folder: archives are unpacked elsewhere.
    """
    path = _folder_of_all(folder) / f"frozen-{split.fingerprint.removeprefix('sha256:')}.h5"
    if not is_frozen(path, split.fingerprint):
        split.save_frozen(path)
    return Path(os.path.relpath(path, folder)).as_posix()


def _folder_of_all(folder: Path) -> Path:
    """The folder `assets` of what Keras is saving, in which each layer has its own; the layer's own if there is none.

    Keras tells a layer its own folder alone. It makes `assets` in a temporary folder, or beside a config.json.
    """
    for place in (folder, *folder.parents):
        made_now = os.path.realpath(place.parent.parent) == os.path.realpath(tempfile.gettempdir())
        if place.name == "assets" and (made_now or (place.parent / "config.json").is_file()):
            return place
    return folder
