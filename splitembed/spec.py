"""What a saved layer says of its split: sizes and fingerprints; and by them, the splits that are in use."""

import weakref
from dataclasses import dataclass
from typing import Any

from splitembed.errors import FingerprintError
from splitembed.split import SplitTable


@dataclass(frozen=True)
class SplitSpec:
    """What a layer's config says of its split: sizes and fingerprints, never rows or tokens."""

    num_tokens: int
    num_frozen: int
    num_trainable: int
    dim: int
    padding: int | None
    frozen_fingerprint: str
    remap_fingerprint: str
    vocabulary_fingerprint: str
    trainable_fingerprint: str

    @classmethod
    def of(cls, split: SplitTable) -> "SplitSpec":
        """Describes a split; its fingerprints are computed here if they are not known yet."""
        sizes = (split.num_tokens, split.num_frozen, split.num_trainable, split.dim, split.padding)
        fingerprints = (split.fingerprint, split.remap_fingerprint, split.vocabulary_fingerprint)
        return cls(*sizes, *fingerprints, split.trainable_fingerprint)

    def tables(self) -> dict[str, str]:
        """The fingerprints of what training does not change."""
        names = ("frozen_fingerprint", "remap_fingerprint", "vocabulary_fingerprint")
        return {name: getattr(self, name) for name in names}

    def refuse_other(self, found: dict[str, Any], where: str) -> None:
        """Raises if what was found at a place differs from what this describes."""
        for name, value in found.items():
            if getattr(self, name) != value:
                raise FingerprintError(
                    f"{where} belongs to another split: its {name.replace('_', ' ')} is {value}, the layer's is "
                    f"{getattr(self, name)}. Give the layer the tables that it was saved with."
                )


LIVE: "weakref.WeakValueDictionary[SplitSpec, SplitTable]" = weakref.WeakValueDictionary()


def live_on(spec: SplitSpec) -> SplitTable | None:
    """A split in use that stands on the same tables, whatever its trainable rows."""
    return next((split for other, split in list(LIVE.items()) if other.tables() == spec.tables()), None)
