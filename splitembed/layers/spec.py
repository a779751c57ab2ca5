"""The sizes and fingerprints of a split that a saved layer holds, and the registry of live splits by them."""

import weakref
from dataclasses import dataclass

from splitembed.errors import FingerprintError
from splitembed.split.table import SplitTable
from splitembed.tables.storage import FLOAT32, storage_named


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
