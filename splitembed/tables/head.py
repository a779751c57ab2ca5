"""The head of our files: what they hold and where, so that no reader needs libhdf5, which damaged files can crash.

The head is in the user block of the HDF5 file, which HDF5 itself ignores:

    bytes 0 to 15    MAGIC
    16 to 19         the version of the format, little-endian
    20 to 23         the number of bytes of the JSON text, little-endian
    24 to 55         SHA-256 of bytes 0 to 23 and of the JSON text
    from 56          the JSON text in ASCII; zeros up to the end of the user block
"""

import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import numpy as np

from splitembed.arrays import ALIGNMENT
from splitembed.tables.fields import FORMAT_VERSION

MAGIC = b"\x89splitembed\r\n\x1a\n\0"
# The length of the bytes before the JSON text.
_START = 56
_LEAST_BLOCK, _MOST_BLOCK = 1 << 12, 1 << 20
# The JSON text without long attributes: at most 8 arrays of 180 bytes, and the fingerprints.
_ROOM = 3072
# In bytes, at either end of an array.
NUM_END_BYTES = 4096
_DTYPE = re.compile(r"\|[iu]1|<[fiu][248]")
_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")


class HeadError(ValueError):
    """A head that does not hold what it must; the message says what was found."""


class NoHeadError(HeadError):
    """A file without a head."""


class OtherVersionError(HeadError):
    """A head of another version of the format."""


@dataclass(frozen=True)
class StoredArray:
    """The place of an array in a file, and what its bytes are checked with.

    Args:
        name: of the dataset, such as `words/utf8`.
        dtype: of real numbers, as NumPy writes it, such as `<f4`.
        shape: of the array.
        offset: of its first byte in the file; 0 for an empty array.
        size: in bytes.
        ends: CRC-32 of the first and the last `NUM_END_BYTES` bytes.
        crc32: CRC-32 of all bytes, or None for rows, whose fingerprint `verify` checks.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int
    ends: int
    crc32: int | None


@dataclass(frozen=True)
class Head:
    """What a file holds.

    Args:
        format: `FROZEN_FORMAT` or `TRAINABLE_FORMAT`.
        file_size: in bytes, with the head.
        attributes: texts and integers by name.
        arrays: by name.
    """

    format: str
    file_size: int
    attributes: dict[str, str | int]
    arrays: dict[str, StoredArray]

    def encode(self, num_bytes: int) -> bytes:
        """Return the head as the user block of a file.

        Args:
            num_bytes: of the block, as `block_bytes` returns it.
        """
        text = json.dumps({**asdict(self), "arrays": [asdict(each) for each in self.arrays.values()]}).encode("ascii")
        start = MAGIC + FORMAT_VERSION.to_bytes(4, "little") + len(text).to_bytes(4, "little")
        block = start + hashlib.sha256(start + text).digest() + text
        assert len(block) <= num_bytes
        return block.ljust(num_bytes, b"\0")


def block_bytes(attributes: dict[str, str]) -> int:
    """Return the size of the user block for a head with these long attributes: a power of 2 from 4096 on.

    >>> block_bytes({"source": "glove.txt"}), block_bytes({"source": "x" * 1200})
    (4096, 8192)

    Raises:
        HeadError: attributes that are too long.
    """
    needed = _START + _ROOM + len(json.dumps(attributes))
    if needed > _MOST_BLOCK:
        raise HeadError(f"{needed} bytes; expected at most {_MOST_BLOCK}.")
    return max(_LEAST_BLOCK, 1 << (needed - 1).bit_length())


def checksum_of_ends(first: bytes, last: bytes) -> int:
    """Return the CRC-32 of the first and the last bytes of an array.

    Args:
        first: the first `NUM_END_BYTES` bytes of the array, or all if there are fewer.
        last: the last `NUM_END_BYTES` bytes, or all.
    """
    return zlib.crc32(last, zlib.crc32(first))


def read_head(stream: BinaryIO) -> Head:
    """Read the head at the start of a file.

    Args:
        stream: open in binary mode, at its start.

    Raises:
        NoHeadError: the file does not start with one.
        HeadError: a head that is cut short, damaged, or of another version.
    """
    start = stream.read(_START)
    if not start.startswith(MAGIC):
        raise NoHeadError("no head.")
    if len(start) < _START:
        raise HeadError("its head is cut short.")
    version, length = (int.from_bytes(start[at : at + 4], "little") for at in (16, 20))
    if version != FORMAT_VERSION:
        raise OtherVersionError(f"has format version {version}; expected {FORMAT_VERSION}. Install a newer splitembed.")
    if length > _MOST_BLOCK:
        raise HeadError(f"its head has {length} bytes; expected at most {_MOST_BLOCK}.")
    text = stream.read(length)
    if hashlib.sha256(start[:24] + text).digest() != start[24:]:
        raise HeadError("the checksum of its head does not match.")
    return _parsed(text)


def _parsed(text: bytes) -> Head:
    try:
        found = json.loads(text.decode("ascii"), object_pairs_hook=_unique, parse_float=_refuse, parse_constant=_refuse)
    # A number of thousands of digits is a ValueError, deep nesting a RecursionError.
    except (ValueError, RecursionError) as error:
        raise HeadError(f"its head is not JSON as splitembed writes it ({type(error).__name__}).") from None
    _require(isinstance(found, dict) and list(found) == ["format", "file_size", "attributes", "arrays"], "its keys")
    _require(type(found["format"]) is str, "`format`")
    _require(_is_size(found["file_size"]), "`file_size`")
    attributes, arrays = found["attributes"], found["arrays"]
    _require(isinstance(attributes, dict) and all(map(_is_attribute, attributes.values())), "`attributes`")
    _require(isinstance(arrays, list), "`arrays`")
    places = [_place(each, found["file_size"], _START + len(text)) for each in arrays]
    _require(len({each.name for each in places}) == len(places), "two arrays of one name")
    _check_apart(places)
    return Head(found["format"], found["file_size"], attributes, {each.name: each for each in places})


def _place(found: Any, file_size: int, start: int) -> StoredArray:
    """Return the place of one array, after checking it against the size of the file and the end of the head."""
    keys = ["name", "dtype", "shape", "offset", "size", "ends", "crc32"]
    _require(isinstance(found, dict) and list(found) == keys, "the keys of an array")
    name, shape = found["name"], found["shape"]
    _require(type(name) is str and _NAME.fullmatch(name) is not None, "the name of an array")
    _require(type(found["dtype"]) is str and _DTYPE.fullmatch(found["dtype"]) is not None, f"the dtype of `{name}`")
    _require(isinstance(shape, list) and len(shape) in (1, 2) and all(map(_is_size, shape)), f"the shape of `{name}`")
    numbers = [found[key] for key in ("offset", "size", "ends")] + [found["crc32"] or 0]
    _require(all(map(_is_size, numbers)), f"the place of `{name}`")
    size = math.prod(shape) * np.dtype(found["dtype"]).itemsize
    is_inside = found["offset"] % ALIGNMENT == 0 and start <= found["offset"] <= file_size - size
    _require(found["size"] == size and (is_inside or not size), f"the place of `{name}`")
    return StoredArray(**{**found, "shape": tuple(shape)})


def _check_apart(places: Iterable[StoredArray]) -> None:
    end = 0
    for place in sorted(places, key=lambda each: each.offset):
        _require(place.offset >= end or not place.size, f"the place of `{place.name}`, which overlaps another")
        end = max(end, place.offset + place.size)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_attribute(value: Any) -> bool:
    if type(value) is not str:
        return type(value) is int and abs(value) < 1 << 63
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refuse(_: str) -> Any:
    raise ValueError


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise HeadError(f"its head is wrong in {what}.")
