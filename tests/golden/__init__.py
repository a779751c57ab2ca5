"""Golden files: one of every format version, which must stay readable.

`make golden` writes those of the present version again; the files of older versions are never touched. A missing file
fails its test and is never made by it.
"""

from pathlib import Path

import numpy as np

from splitembed.tables import FrozenWriter, TrainableTable, write_frozen, write_trainable

FOLDER = Path(__file__).parent

# Bits, not numbers: 0.5, -0.0, a subnormal number, infinity, a NaN with a payload, the largest float32.
FLOAT32_BITS = [[0x3F000000, 0x80000000], [0x00000001, 0x7F800000], [0x7FC12345, 0x7F7FFFFF], [0, 0]]
FLOAT16_BITS = [[0x3C00, 0x8000, 0x7BFF]]
BFLOAT16_BITS = [[0x3FC0, 0xC000]]
INT8_ROWS, INT8_SCALES = [[127, -127, 0], [1, 2, 3]], [0.5, 2.0]
WORDS = ["the", "\0\u2028 \udcff", "é😀", ""]

TRAINABLE_BITS = [[0xBF800000, 0x7FC00001]]
REMAP = [3, 0, ~0, 2, 2]
RAMPS = [*range(7), ~0, *range(8, 20)]
VOCABULARY = ["", "the", "\udcd0 usr", "é", "É"]

NAMES = [
    *("frozen-float32", "frozen-float16", "frozen-bfloat16", "frozen-int8", "frozen-shared-rows"),
    *("trainable", "trainable-ids", "trainable-ramps", "trainable-untied"),
]
REVERSE_BITS, REVERSE_REMAP = [[0x80000000, 0x3F800000], [0xFF800000, 0x00000001]], [0, ~1, 3, ~0, 1]
OTHER_FINGERPRINT = "sha256:" + "5" * 64
SHARED_WORDS, ROW_OF = ["the", "The", "é"], [1, 1, 0]


def path_of(name: str, folder: Path = FOLDER) -> Path:
    return folder / f"{name}-v1.h5"


def write_all(folder: Path = FOLDER) -> None:
    """Write the files of the present version."""
    paths = {name: path_of(name, folder) for name in NAMES}
    with FrozenWriter(paths["frozen-float32"], source="golden: é", with_zero_row=True) as writer:
        writer.append(WORDS[:3], np.array(FLOAT32_BITS[:3], np.uint32).view(np.float32))
    write_frozen(paths["frozen-float16"], np.array(FLOAT16_BITS, np.uint16).view(np.float16))
    write_frozen(paths["frozen-bfloat16"], np.array(BFLOAT16_BITS, np.uint16))
    write_frozen(paths["frozen-int8"], np.array(INT8_ROWS, np.int8), scale=np.array(INT8_SCALES, np.float32))
    write_trainable(
        paths["trainable"],
        np.array(TRAINABLE_BITS, np.uint32).view(np.float32),
        REMAP,
        vocabulary=VOCABULARY,
        padding=0,
        frozen_fingerprint=writer.fingerprint,
    )
    write_trainable(
        paths["trainable-ids"],
        np.zeros((0, 2), np.float32),
        [],
        frozen_fingerprint=writer.fingerprint,
        frozen_path="../shared/glove.h5",
    )
    write_trainable(
        paths["trainable-ramps"],
        np.array(TRAINABLE_BITS, np.uint32).view(np.float32),
        RAMPS,
        frozen_fingerprint=writer.fingerprint,
        owned_frozen=[writer.fingerprint],
    )
    write_frozen(
        paths["frozen-shared-rows"],
        np.array([[1, 2], [3, 4], [0, 0]], np.float32),
        words=SHARED_WORDS,
        row_of=np.array(ROW_OF),
        zero_row=2,
    )
    write_trainable(
        paths["trainable-untied"],
        np.array(TRAINABLE_BITS, np.uint32).view(np.float32),
        REMAP,
        vocabulary=VOCABULARY,
        padding=0,
        frozen_fingerprint=writer.fingerprint,
        reverse=TrainableTable(
            np.array(REVERSE_BITS, np.uint32).view(np.float32), np.array(REVERSE_REMAP), OTHER_FINGERPRINT, padding=4
        ),
    )
