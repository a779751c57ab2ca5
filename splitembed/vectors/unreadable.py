"""Formats that are recognised, but not supported."""

import re
from collections.abc import Callable
from typing import NamedTuple

from splitembed.errors import VectorFormatError


class Foreign(NamedTuple):
    """A format that is recognised, but not read."""

    # Matched at the first byte.
    pattern: bytes
    name: str
    advice: str


# The marks of the first file, of an empty archive, and of one in parts.
ZIP = rb"PK(\x03\x04|\x05\x06|\x07\x08)"

_LOAD = "If you trust it, load it with its library (a .kv file: gensim's KeyedVectors.load), and pass the object."
_UNPACK = "Unpack it, and pass the file of vectors inside."
_DECOMPRESS = "Decompress it first, and pass the file itself."
_CONVERT = "Load it with a library that reads it, and pass (words, matrix)."

BINARY = (
    Foreign(rb"\x80[\x02-\x05]", "a pickle, which can run any code when it is loaded", _LOAD),
    Foreign(
        rb"\x93NUMPY",
        "a NumPy .npy array, which holds no words,",
        "Decompress it, if it is compressed, and put the words beside it; or pass (words, numpy.load(path)).",
    ),
    Foreign(ZIP, "a zip archive inside another file, or in a stream", _UNPACK),
    Foreign(rb"\x89HDF\r\n\x1a\n", "an HDF5 file inside a compressed one, or in a stream", _DECOMPRESS),
    Foreign(rb"\x1f\x8b", "gzip data inside twice compressed data", _UNPACK),
    Foreign(rb"BZh[1-9]1AY&SY", "bzip2 data inside twice compressed data", _UNPACK),
    Foreign(rb"\xfd7zXZ\x00", "xz data inside twice compressed data", _UNPACK),
    Foreign(rb"\x28\xb5\x2f\xfd", "Zstandard data inside twice compressed data", _UNPACK),
    Foreign(rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    Foreign(rb"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    Foreign(rb"(?=[\s\S]{257}ustar)[^\n]{1,100}\x00", "a tar archive", _UNPACK),
    Foreign(rb"\xff\xfe[\s\S]\x00|\xfe\xff\x00", "UTF-16 text", "Save it as UTF-8."),
    Foreign(
        rb"\w+:(token|float)(_seq)?([ \t]+\w+:(token|float)(_seq)?)*[ \t]*\r?\n",
        "an atomic file of RecBole, whose first line names its columns",
        "Remove the first line if the columns are an id and its vector (tail -n +2), or load the table, for example "
        "with pandas.read_csv, and pass (ids, matrix).",
    ),
    Foreign(rb"SQLite format 3\x00", "an SQLite database (such as a .magnitude file)", _CONVERT),
    Foreign(rb"PAR1[\x00-\x08\x0e-\x1f]", "a Parquet file", _CONVERT),
    Foreign(rb"ARROW1\x00\x00", "an Arrow file", _CONVERT),
    Foreign(rb"GGUF[\x01-\x0f]\x00\x00\x00", "a GGUF model", _CONVERT),
    Foreign(rb"[\s\S]{4}\x00{4}\{", "a safetensors file inside a compressed one, or in a stream", _DECOMPRESS),
)
TEXT = (
    Foreign(rb"(?i)\s*<(!doctype|html|head|body|!--|\?xml)", "a web page, not vectors", "Download the file itself."),
    Foreign(rb"version https://git-lfs", "a Git LFS pointer, not the file itself", "Fetch it with `git lfs pull`."),
    Foreign(rb"\s*(\{|\[\s*[\[{\"\d-])", "JSON", "Load it with the json module, and pass a dict word -> row."),
    Foreign(
        rb"(ccopy_reg|cgensim|cnumpy|\((dp|lp)?\d*\n)", "a pickle, which can run any code when it is loaded", _LOAD
    ),
    Foreign(rb"%PDF", "a PDF document", "Download the file of vectors itself."),
)

# Formats that are zip archives, recognised by the names of their members.
ARCHIVES: tuple[tuple[Callable[[set[str]], bool], Foreign], ...] = (
    (
        lambda names: bool(names) and all(name.endswith(".npy") for name in names),
        Foreign(ZIP, "a NumPy .npz archive inside another file, or in a stream", _DECOMPRESS),
    ),
    (
        lambda names: {"metadata.json", "config.json", "model.weights.h5"} <= names,
        Foreign(ZIP, "a Keras model, a zip archive,", "Load it, and pass (words, matrix) of its embedding."),
    ),
    (
        lambda names: any(name.rpartition("/")[2] == "data.pkl" for name in names),
        Foreign(ZIP, "a PyTorch file, a zip archive that holds a pickle,", _LOAD),
    ),
    (lambda names: "[Content_Types].xml" in names, Foreign(ZIP, "an Office document", "Save it as plain text.")),
)


def name_foreign(head: bytes, formats: tuple[Foreign, ...]) -> Foreign | None:
    r"""Return the unsupported format of a file with these first bytes.

    >>> name_foreign(b"\x93NUMPY\x01\0", BINARY).name
    'a NumPy .npy array, which holds no words,'
    >>> name_foreign(b"the 0.1 0.2\n", BINARY + TEXT) is None
    True

    Args:
        head: the first bytes, decompressed.
        formats: `BINARY`, with marks that start no text, or `TEXT`, with marks that may also be words.

    Returns:
        The first format that matches, or None.
    """
    return next((each for each in formats if re.match(each.pattern, head)), None)


def refusal(path: str, foreign: Foreign) -> VectorFormatError:
    """Return the error that names an unsupported format.

    >>> str(refusal("v.bin", BINARY[0]))[:63]
    'v.bin: found a pickle, which can run any code when it is loaded'
    """
    return VectorFormatError(
        f"{path}: found {foreign.name}; expected text (GloVe, word2vec, fastText .vec), word2vec binary or fastText "
        f".bin. {foreign.advice}"
    )
