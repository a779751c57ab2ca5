"""Formats that are recognised but not read: the first bytes of a file enter; its real name and the next step leave."""

import re
from typing import NamedTuple


class Foreign(NamedTuple):
    """A format that the readers of vectors do not read."""

    pattern: bytes  # matched at the first byte
    name: str
    advice: str


_LOAD = "Load it, if you trust it, with what wrote it (a .kv file: gensim's KeyedVectors.load), and pass the object."
_UNPACK = "Unpack it, and pass the file of vectors inside."
_CONVERT = "Load it with a library that reads it, and pass (words, matrix)."

_FASTTEXT = "Pass its .vec file, or gensim.models.fasttext.load_facebook_vectors(path)."

BINARY = (
    Foreign(rb"\xba\x16\x4f\x2f", "a fastText .bin model", _FASTTEXT),
    # The first versions began with their integer options: six small ones, then loss and model, each 1 to 3.
    Foreign(rb"([\s\S]{2}\x00\x00){6}([\x01-\x03]\x00\x00\x00){2}", "a fastText .bin model", _FASTTEXT),
    Foreign(rb"\x80[\x02-\x05]", "a pickle, which can run any code when it is loaded", _LOAD),
    Foreign(rb"\x93NUMPY", "a NumPy .npy array, which holds no words,", "Pass (words, numpy.load(path))."),
    Foreign(rb"PK(\x03\x04|\x05\x06)", "a zip archive (such as .zip, .npz, .keras or .pt)", _UNPACK),
    Foreign(rb"\x89HDF\r\n\x1a\n", "an HDF5 file inside a compressed one", "Decompress it first: tables are mapped."),
    Foreign(rb"\x1f\x8b", "gzip data inside compressed data", _UNPACK),
    Foreign(rb"\xfd7zXZ\x00", "xz data inside compressed data", _UNPACK),
    Foreign(rb"\x28\xb5\x2f\xfd", "Zstandard data", "Decompress it first (zstd -d)."),
    Foreign(rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    Foreign(rb"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    Foreign(rb"(?=[\s\S]{257}ustar)[^\n]{1,100}\x00", "a tar archive", _UNPACK),
    Foreign(rb"\xff\xfe[\s\S]\x00|\xfe\xff\x00", "UTF-16 text", "Save it as UTF-8."),
    Foreign(rb"SQLite format 3\x00", "an SQLite database (such as a .magnitude file)", _CONVERT),
    Foreign(rb"PAR1[\x00-\x08\x0e-\x1f]", "a Parquet file", _CONVERT),
    Foreign(rb"ARROW1\x00\x00", "an Arrow file", _CONVERT),
    Foreign(rb"GGUF[\x01-\x0f]\x00\x00\x00", "a GGUF model", _CONVERT),
    Foreign(rb"[\s\S]{4}\x00{4}\{", "a safetensors file", _CONVERT),
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


def name_foreign(head: bytes, formats: tuple[Foreign, ...]) -> Foreign | None:
    r"""Names the format that a file's first bytes belong to.

    >>> name_foreign(b"\xba\x16\x4f\x2f\x0c\0\0\0", BINARY).name
    'a fastText .bin model'
    >>> name_foreign(b"the 0.1 0.2\n", BINARY + TEXT) is None
    True

    Args:
        head: the first bytes, decompressed.
        formats: `BINARY`, whose marks no text begins with, or `TEXT`, whose marks are also words.

    Returns:
        The first format that fits, or None.
    """
    return next((each for each in formats if re.match(each.pattern, head)), None)
