"""The sizes and fingerprints of a split that a saved layer holds, and the registry of live splits by them."""

import dataclasses
import re
import weakref
from dataclasses import dataclass
from typing import Any

from splitembed.arrays import is_count
from splitembed.errors import FingerprintError, SplitError, shortened
from splitembed.split.table import SplitTable
from splitembed.tables.storage import FLOAT32, STORAGES, storage_named

# empty for a split without tokens
_FINGERPRINT = re.compile("(sha256:[0-9a-f]{64})?")


@dataclass(frozen=True)
class SplitSpec:
    """The description of a split in the config of a layer: sizes and fingerprints, never rows or tokens."""

    num_tokens: int
    num_frozen: int
    num_trainable: int
    dim: int
    padding: int | None
    frozen_fingerprint: str
    remap_fingerprint: str
    vocabulary_fingerprint: str
    trainable_fingerprint: str
    frozen_dtype: str = "float32"

    @classmethod
    def of(cls, split: SplitTable) -> "SplitSpec":
        """Describe a split, computing fingerprints that are not known yet."""
        sizes = (split.num_tokens, split.num_frozen, split.num_trainable, split.dim, split.padding)
        fingerprints = (split.fingerprint, split.remap_fingerprint, split.vocabulary_fingerprint)
        return cls(*sizes, *fingerprints, split.trainable_fingerprint, split.frozen_dtype)

    @classmethod
    def from_config(cls, config: Any) -> "SplitSpec":
        """Return the spec that a saved config holds, after checking it, because the file may be anyone's.

        Raises:
            SplitError: other keys, or a value that no split has.
        """
        fields = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(config, dict) or set(config) | {"frozen_dtype"} != fields:
            found = sorted(config) if isinstance(config, dict) else config
            raise _unsound("its keys", found, sorted(fields))
        spec = cls(**config)
        for name in ("num_tokens", "num_frozen", "num_trainable", "dim"):
            if not is_count(getattr(spec, name), int(name == "dim")):
                raise _unsound(name, getattr(spec, name), "an integer, 0 or more, and `dim` 1 or more")
        if spec.padding is not None and not (is_count(spec.padding, 0) and spec.padding < spec.num_tokens):
            raise _unsound("padding", spec.padding, f"None, or an id below {spec.num_tokens}")
        for name in fields:
            value = getattr(spec, name)
            if name.endswith("fingerprint") and not (isinstance(value, str) and _FINGERPRINT.fullmatch(value)):
                raise _unsound(name, value, "`sha256:` and 64 hexadecimal digits")
        if spec.frozen_dtype not in list(STORAGES):
            raise _unsound("frozen_dtype", spec.frozen_dtype, f"one of {', '.join(STORAGES)}")
        return spec

    def tables(self) -> dict[str, str]:
        """Return what training does not change: sizes, as text, and fingerprints."""
        sizes = {name: str(getattr(self, name)) for name in ("num_tokens", "num_frozen", "num_trainable", "dim")}
        names = ("frozen_fingerprint", "remap_fingerprint", "vocabulary_fingerprint")
        return {**sizes, **{name: getattr(self, name) for name in names}}

    def refuse_other(self, found: dict[str, str], where: str) -> None:
        """Raise if the tables found elsewhere, in the form of `tables`, are those of another split."""
        for name, ours in self.tables().items():
            theirs = found.get(name, "missing")
            if theirs != ours:
                what = name.replace("_fingerprint", " fingerprint")
                raise FingerprintError(
                    f"{where} belongs to another split: its {what} is {theirs}, the layer's is {ours}. Give the layer "
                    f"the tables that it was saved with."
                )


def _unsound(name: str, found: Any, expected: Any) -> SplitError:
    return SplitError(
        f"The saved config of a split is damaged: `{name}` is {shortened([found], 1, repr)}; expected {expected}. Save "
        "the model again, or use another copy."
    )


LIVE: "weakref.WeakValueDictionary[SplitSpec, SplitTable]" = weakref.WeakValueDictionary()


def live_on(spec: SplitSpec) -> SplitTable | None:
    """Return a live split on the same tables, with any trainable rows."""
    return next((split for other, split in list(LIVE.items()) if other.tables() == spec.tables()), None)


def live_with_frozen(fingerprint: str) -> SplitTable | None:
    """Return a live split with the same frozen rows, on any remap."""
    return next((split for split in list(LIVE.values()) if split.fingerprint == fingerprint), None)


def summarize(spec: SplitSpec) -> str:
    """Return a table of the sizes of a split's parts and of a dense trainable layer.

    >>> split = SplitTable.from_matrix([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [2])
    >>> print(summarize(SplitSpec.of(split)))
    part             rows        numbers          bytes
    frozen              2              4             16  float32
    trainable           1              2              8  float32
    remap               3              3             12  int32
    dense layer         3              6             24  float32, all trainable
    """
    parts = (
        ("frozen", spec.num_frozen, spec.dim, storage_named(spec.frozen_dtype).table_bytes, spec.frozen_dtype),
        ("trainable", spec.num_trainable, spec.dim, FLOAT32.table_bytes, "float32"),
        ("remap", spec.num_tokens, 1, lambda num_tokens, _: 4 * num_tokens, "int32"),
        ("dense layer", spec.num_tokens, spec.dim, FLOAT32.table_bytes, "float32, all trainable"),
    )
    lines = [f"{'part':11}{'rows':>10}{'numbers':>15}{'bytes':>15}"]
    for name, rows, length, num_bytes, dtype in parts:
        lines.append(f"{name:11}{rows:10,}{rows * length:15,}{num_bytes(rows, length):15,}  {dtype}")
    return "\n".join(lines)
