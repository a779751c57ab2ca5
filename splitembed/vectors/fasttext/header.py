r"""The parts of a fastText .bin model: bytes enter; what it says of itself, checked, leaves.

    magic, version          int32 each; the first versions of fastText wrote neither
    12 options, 1 float64   int32: dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, ...
    dictionary              int32 size, words, labels; int64 tokens, and with magic int64 pruned (-1: not pruned);
                            then for each entry, words before labels: its bytes, NUL, int64 count, int8 type
    input matrix            with magic 1 byte (1: quantized); int64 rows, dim; float32, a row for each word, then for
                            each bucket
    output matrix           likewise

All little-endian. Source of the format: fastText 0.9.2, `FastText::saveModel`, `Args::save`, `Dictionary::save`.
"""

import re
import struct
from dataclasses import dataclass

from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.intake import Intake

MAGIC = b"\xba\x16\x4f\x2f"
LARGEST_DIM = 1 << 24  # a header that says more is none
LONGEST_NGRAM = 64  # characters; fastText's own default is 6
FLOAT_BYTES = 4
END_OF_SENTENCE = b"</s>"  # the one word that has no n-grams

# Without magic: dim and five options, all small, then loss and model, each 1 to 3.
_OLD_HEAD = re.compile(rb"([\s\S]{2}\x00\x00){6}([\x01-\x03]\x00\x00\x00){2}")
_VERSIONS = (11, 12)
_FIRST_VERSION = 0  # ours: the file names none
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
    """What a model says of itself before its first word.

    Args:
        has_magic: whether it is of a version that has magic, flags and a count of pruned n-grams.
        dim: length of a row.
        bucket: rows for n-grams; an n-gram's hash modulo this is its row.
        minn: characters of the shortest n-grams.
        maxn: characters of the longest; less than `minn`, or 0, where the model has none.
        num_words: words in the dictionary.
        num_labels: labels after them.
        place: the byte at which the counts of the dictionary start.
    """

    has_magic: bool
    dim: int
    bucket: int
    minn: int
    maxn: int
    num_words: int
    num_labels: int
    place: int

    @property
    def has_subwords(self) -> bool:
        """Whether a word outside the dictionary can have a row."""
        return self.maxn >= max(self.minn, 1)


def is_fasttext(head: bytes) -> bool:
    r"""Says whether a file starts as a fastText .bin model does.

    >>> is_fasttext(b"\xba\x16\x4f\x2f\x0c\0\0\0"), is_fasttext(b"the 0.1 0.2\n")
    (True, False)
    """
    return head.startswith(MAGIC) or _OLD_HEAD.match(head) is not None


def read_dim(head: bytes) -> int:
    r"""Reads the dim of a fastText .bin model from its first bytes; 0 where they end before it.

    >>> read_dim(b"\xba\x16\x4f\x2f\x0c\0\0\0\x64\0\0\0\5\0\0\0")
    100
    """
    start = 8 if head.startswith(MAGIC) else 0
    return int.from_bytes(head[start : start + 4], "little", signed=True) if len(head) >= start + 4 else 0


def read_header(cursor: Cursor) -> Header:
    """Reads and checks everything before the first word.

    Raises:
        VectorFormatError: it is cut short, of an unknown version, pruned, or says what cannot be.
    """
    version = _read_version(cursor)
    has_magic = version != _FIRST_VERSION
    dim, *_, model, bucket, minn, maxn, _, _ = _OPTIONS.unpack(cursor.take(_OPTIONS.size, "the header"))
    if model == _SUPERVISED and version < max(_VERSIONS):
        maxn = 0  # as fastText does: these did not use n-grams of characters
    counts, place = _COUNTS if has_magic else _OLD_COUNTS, cursor.place
    size, num_words, num_labels, _, *pruned = counts.unpack(cursor.take(counts.size, "the header"))
    header = Header(has_magic, dim, bucket, minn, maxn, num_words, num_labels, place)
    _check_header(cursor, header, size)
    if pruned and pruned[0] >= 0:
        raise cursor.error(place, f"a pruned dictionary ({pruned[0]} n-grams kept)", "a model that is not", _QUANTIZED)
    return header


def _read_version(cursor: Cursor) -> int:
    start = cursor.take(len(MAGIC), "the header")
    if start != MAGIC:
        cursor.give_back(start)
        return _FIRST_VERSION
    version = int.from_bytes(cursor.take(4, "the header"), "little", signed=True)
    if version not in _VERSIONS:
        raise cursor.error(4, f"version {version} of fastText's format", "version 11 or 12", _UPDATE)
    return version


def _check_header(cursor: Cursor, header: Header, size: int) -> None:
    base = 8 if header.has_magic else 0
    if not 1 <= header.dim <= LARGEST_DIM:
        raise cursor.error(base, f"a header that says dim {header.dim}", f"dim 1 to {LARGEST_DIM}")
    if header.bucket < 0 or (header.has_subwords and not header.bucket):
        raise cursor.error(base + 32, f"a header that says {header.bucket} buckets of n-grams", "1 or more")
    if header.maxn > LONGEST_NGRAM:
        raise cursor.error(
            base + 40, f"a header that says n-grams of {header.maxn} characters", f"at most {LONGEST_NGRAM}"
        )
    if header.num_words < 0 or header.num_labels < 0 or size != header.num_words + header.num_labels:
        raise cursor.error(
            header.place,
            f"a dictionary of {size} entries, {header.num_words} words and {header.num_labels} labels",
            "words and labels that add up to its entries",
        )


def read_matrix_shape(cursor: Cursor, header: Header) -> int:
    """Reads what precedes the rows of the input matrix; `cursor.place` is then their place.

    Returns:
        The number of rows.

    Raises:
        VectorFormatError: it is cut short, quantized, or of another shape than the header says.
    """
    place = cursor.place
    if header.has_magic and cursor.take(1, "the input matrix") != b"\0":
        raise cursor.error(place, "quantized rows", "float32", _QUANTIZED)
    place = cursor.place
    num_rows, dim = _SHAPE.unpack(cursor.take(_SHAPE.size, "the input matrix"))
    if (num_rows, dim) != (header.num_words + header.bucket, header.dim):
        raise cursor.error(
            place,
            f"an input matrix of {num_rows} rows of dim {dim}",
            f"{header.num_words} words and {header.bucket} buckets of dim {header.dim}, as the header says",
        )
    return int(num_rows)


def skip_output(cursor: Cursor, header: Header, intake: Intake) -> None:
    """Reads on to the end, so that a model that is cut short is never taken for a whole one."""
    if header.has_magic:
        cursor.skip(1, "the output matrix")
    place = cursor.place
    num_rows, dim = _SHAPE.unpack(cursor.take(_SHAPE.size, "the output matrix"))
    if num_rows < 0 or dim != header.dim:
        raise cursor.error(place, f"an output matrix of {num_rows} rows of dim {dim}", f"rows of dim {header.dim}")
    cursor.skip(num_rows * dim * FLOAT_BYTES, "the output matrix")
    end = cursor.place
    if cursor.take_chunk():
        intake.doubts.add("bytes after the model's end, ignored", f"byte {end}", None)
