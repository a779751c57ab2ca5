r"""Read and check the header and the matrix shapes of a fastText .bin model.

    magic, version          int32 each; the first versions of fastText wrote neither
    12 options, 1 float64   int32: dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, ...
    dictionary              int32 size, words, labels; int64 tokens, and with magic int64 pruned (-1: not pruned);
                            then each entry, words before labels: its bytes, NUL, int64 count, int8 type
    input matrix            with magic 1 byte (1: quantized); int64 rows, dim; float32 rows, one for each word, then
                            one for each bucket
    output matrix           likewise

All little-endian. Source of the format: fastText 0.9.2, `FastText::saveModel`, `Args::save`, `Dictionary::save`.
"""

import re
import struct
from dataclasses import dataclass

from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.read_checks import ReadChecks

MAGIC = b"\xba\x16\x4f\x2f"
# A header with a larger dim is damaged.
MAX_DIM = 1 << 24
# In characters; fastText's default is 6.
MAX_NGRAM = 64
FLOAT_BYTES = 4
# The only word without n-grams.
END_OF_SENTENCE = b"</s>"

# A model without magic: dim and five options, all small, then loss and model, each 1 to 3.
_OLD_HEAD = re.compile(rb"([\s\S]{2}\x00\x00){6}([\x01-\x03]\x00\x00\x00){2}")
_VERSIONS = (11, 12)
# The number used here for files without a version.
_FIRST_VERSION = 0
_OPTIONS = struct.Struct("<12id")
_SUPERVISED = 3
_COUNTS, _OLD_COUNTS = struct.Struct("<3i2q"), struct.Struct("<3iq")
_SHAPE = struct.Struct("<2q")

_UPDATE = "Write it with a released fastText, or pass its .vec file."
_QUANTIZED = (
    "It is a compressed model (.ftz). Pass the .bin that it was made from, or let fastText write its vectors: "
    "`fasttext print-word-vectors MODEL < WORDS > vectors.vec`."
)


@dataclass(frozen=True)
class Header:
    """The options of a model and the counts of its dictionary.

    Args:
        has_magic: whether the model has magic, flags and a count of pruned n-grams.
        dim: length of a row.
        bucket: number of rows for n-grams; an n-gram's row is its hash modulo this number.
        minn: characters of the shortest n-grams.
        maxn: characters of the longest n-grams; less than `minn`, or 0, in a model without n-grams.
        num_words: words in the dictionary.
        num_labels: labels in the dictionary, after the words.
        position: the byte at which the counts of the dictionary start.
    """

    has_magic: bool
    dim: int
    bucket: int
    minn: int
    maxn: int
    num_words: int
    num_labels: int
    position: int

    @property
    def has_subwords(self) -> bool:
        """Whether a word outside the dictionary can have a row."""
        return self.maxn >= max(self.minn, 1)


def is_fasttext(head: bytes) -> bool:
    r"""Return whether a file starts like a fastText .bin model.

    >>> is_fasttext(b"\xba\x16\x4f\x2f\x0c\0\0\0"), is_fasttext(b"the 0.1 0.2\n")
    (True, False)
    """
    return head.startswith(MAGIC) or _OLD_HEAD.match(head) is not None


def read_dim(head: bytes) -> int:
    r"""Return the dim of a fastText .bin model by its first bytes; 0 where they end before it.

    >>> read_dim(b"\xba\x16\x4f\x2f\x0c\0\0\0\x64\0\0\0\5\0\0\0")
    100
    """
    start = 8 if head.startswith(MAGIC) else 0
    return int.from_bytes(head[start : start + 4], "little", signed=True) if len(head) >= start + 4 else 0


def read_header(cursor: Cursor) -> Header:
    """Read and check everything before the first word.

    Raises:
        VectorFormatError: the header is cut short, of an unknown version, pruned, or damaged.
    """
    version = _read_version(cursor)
    has_magic = version != _FIRST_VERSION
    dim, *_, model, bucket, minn, maxn, _, _ = _OPTIONS.unpack(cursor.take(_OPTIONS.size, "the header"))
    if model == _SUPERVISED and version < max(_VERSIONS):
        # As in fastText: supervised models of older versions do not use n-grams of characters.
        maxn = 0
    counts, position = _COUNTS if has_magic else _OLD_COUNTS, cursor.position
    size, num_words, num_labels, _, *pruned = counts.unpack(cursor.take(counts.size, "the header"))
    header = Header(has_magic, dim, bucket, minn, maxn, num_words, num_labels, position)
    _check_header(cursor, header, size)
    if pruned and pruned[0] >= 0:
        raise cursor.error(position, f"a pruned dictionary ({pruned[0]} n-grams kept)", "all n-grams", _QUANTIZED)
    return header


def _read_version(cursor: Cursor) -> int:
    start = cursor.take(len(MAGIC), "the header")
    if start != MAGIC:
        cursor.put_back(start)
        return _FIRST_VERSION
    version = int.from_bytes(cursor.take(4, "the header"), "little", signed=True)
    if version not in _VERSIONS:
        raise cursor.error(4, f"version {version} of fastText's format", "version 11 or 12", _UPDATE)
    return version


def _check_header(cursor: Cursor, header: Header, size: int) -> None:
    base = 8 if header.has_magic else 0
    if not 1 <= header.dim <= MAX_DIM:
        raise cursor.error(base, f"dim {header.dim} in the header", f"dim 1 to {MAX_DIM}")
    if header.bucket < 0 or (header.has_subwords and not header.bucket):
        raise cursor.error(base + 32, f"{header.bucket} buckets of n-grams in the header", "1 or more")
    if header.maxn > MAX_NGRAM:
        raise cursor.error(base + 40, f"n-grams of {header.maxn} characters in the header", f"at most {MAX_NGRAM}")
    if header.num_words < 0 or header.num_labels < 0 or size != header.num_words + header.num_labels:
        raise cursor.error(
            header.position,
            f"a dictionary of {size} entries, {header.num_words} words and {header.num_labels} labels",
            "as many words and labels together as entries",
        )


def read_matrix_shape(cursor: Cursor, header: Header) -> int:
    """Read the flag and shape of the input matrix, so that the cursor is at its first row.

    Returns:
        The number of rows.

    Raises:
        VectorFormatError: the matrix is cut short, quantized, or has another shape than the header says.
    """
    position = cursor.position
    if header.has_magic and cursor.take(1, "the input matrix") != b"\0":
        raise cursor.error(position, "quantized rows", "float32", _QUANTIZED)
    position = cursor.position
    num_rows, dim = _SHAPE.unpack(cursor.take(_SHAPE.size, "the input matrix"))
    if (num_rows, dim) != (header.num_words + header.bucket, header.dim):
        raise cursor.error(
            position,
            f"an input matrix of {num_rows} rows of dim {dim}",
            f"{header.num_words} words and {header.bucket} buckets of dim {header.dim}, as the header says",
        )
    return int(num_rows)


def skip_output(cursor: Cursor, header: Header, checks: ReadChecks) -> None:
    """Skip the output matrix, up to the end of the file, so that a model that is cut short is noticed."""
    if header.has_magic:
        cursor.skip(1, "the output matrix")
    position = cursor.position
    num_rows, dim = _SHAPE.unpack(cursor.take(_SHAPE.size, "the output matrix"))
    if num_rows < 0 or dim != header.dim:
        raise cursor.error(position, f"an output matrix of {num_rows} rows of dim {dim}", f"rows of dim {header.dim}")
    cursor.skip(num_rows * dim * FLOAT_BYTES, "the output matrix")
    end = cursor.position
    if cursor.take_chunk():
        checks.warnings.add("bytes after the model's end, ignored", f"byte {end}", None)
