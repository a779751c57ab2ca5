"""Files that are foreign, cut short, damaged or too new are refused, without a crash or a wrong row."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from splitembed.errors import TableFormatError
from splitembed.tables import format_of, is_frozen, open_frozen, open_trainable, write_frozen, write_trainable
from splitembed.tables.head import MAGIC
from tests.helpers.table_heads import attribute, head_of, place_of, remove, replace_array, rewrite_head, write_text

ROOT = Path(__file__).parents[2]
FROZEN = "sha256:" + "0" * 64
OPENERS = {"frozen.h5": open_frozen, "trainable.h5": open_trainable}


@pytest.fixture
def folder(tmp_path):
    """Write one frozen and one trainable table, with words, a zero row and a padding id."""
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], np.float32)
    write_frozen(tmp_path / "frozen.h5", rows, words=["the", "é", ""], source="here", zero_row=2)
    options = {"vocabulary": ["", "the", "usr"], "padding": 0, "frozen_fingerprint": FROZEN}
    write_trainable(tmp_path / "trainable.h5", [[5.0, 6.0]], [2, 0, ~0], **options)
    return tmp_path


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (b"secret 0.1 0.2\n", "is a file without the head of a table; .*read_vectors"),
        (gzip.compress(b"the 0.1 0.2\n", mtime=0), "is a file without the head"),
        (b"\x89HDF\r\n\x1a\n", "is an HDF5 file without the head"),
        (b"\x89HDF\r\n\x1a\n" + b"\xff" * 4096, "is an HDF5 file without the head"),
        (MAGIC[:-1], "is a file without the head"),
        (MAGIC, "is damaged: its head is cut short"),
        (MAGIC + b"\1\0\0\0" + b"\xff" * 4096, "is damaged: its head has 4294967295 bytes; expected at most 1048576"),
        (MAGIC + b"\1\0\0\0" + bytes(4096), "is damaged: the checksum of its head does not match"),
    ],
)
def test_other_files_are_refused_and_not_quoted(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableFormatError, match=f"{name} ({message})") as caught:
        OPENERS[name](tmp_path / name)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", OPENERS)
def test_foreign_hdf5_is_refused(tmp_path, name):
    with h5py.File(tmp_path / name, "w") as file:
        file["model_weights/dense"] = [1.0]
    with pytest.raises(TableFormatError, match="is an HDF5 file without the head of a table"):
        OPENERS[name](tmp_path / name)


def test_the_other_kind_of_table_names_its_opener(folder):
    with pytest.raises(
        TableFormatError, match=r"'splitembed\.trainable'; expected 'splitembed\.frozen'.*open_trainable"
    ):
        open_frozen(folder / "trainable.h5")
    with pytest.raises(TableFormatError, match=r"'splitembed\.frozen'; expected 'splitembed\.trainable'.*open_frozen"):
        open_trainable(folder / "frozen.h5")


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_another_version_is_refused_and_named(folder, name, version):
    # The content of a newer version does not matter.
    write_text(folder / name, "{}", version)
    with pytest.raises(TableFormatError, match=f"{name} has format version {version}; expected 1. Install a newer"):
        OPENERS[name](folder / name)


def without_keys(head):
    del head["arrays"]


def place(of, **changes):
    return lambda head: place_of(head, of).update(changes)


def overlapping(head):
    place_of(head, "words/utf8")["offset"] = place_of(head, "vectors")["offset"]


def twice(head):
    head["arrays"].append(dict(head["arrays"][0]))


HEADS = [
    (lambda _: "", "not JSON .*JSONDecodeError"),
    (lambda _: "[" * 100_000, "not JSON .*(RecursionError|JSONDecodeError)"),
    (lambda _: "9" * 5000, "not JSON .*ValueError|its keys"),
    (lambda _: '{"format": NaN}', "not JSON .*ValueError"),
    (lambda _: '{"format": 1.0}', "not JSON .*ValueError"),
    (lambda _: '{"format": "", "format": ""}', "not JSON .*ValueError"),
    (lambda _: "[]", "wrong in its keys"),
    (without_keys, "wrong in its keys"),
    (lambda head: head.update(format=7), "wrong in `format`"),
    (lambda head: head.update(file_size=-1), "wrong in `file_size`"),
    (lambda head: head.update(file_size=True), "wrong in `file_size`"),
    (lambda head: head.update(attributes=[]), "wrong in `attributes`"),
    (attribute("source", None), "wrong in `attributes`"),
    (attribute("source", "\ud800"), "wrong in `attributes`"),
    (attribute("source", "a\0b"), "wrong in `attributes`"),
    (attribute("dim", 1 << 63), "wrong in `attributes`"),
    (lambda head: head.update(arrays={}), "wrong in `arrays`"),
    (lambda head: head.update(arrays=[7]), "wrong in the keys of an array"),
    (place("vectors", name="../vectors"), "wrong in the name of an array"),
    (place("vectors", dtype="|O"), "wrong in the dtype of `vectors`"),
    (place("vectors", dtype=["<f4"]), "wrong in the dtype of `vectors`"),
    (place("vectors", shape=[3, 2, 1]), "wrong in the shape of `vectors`"),
    (place("vectors", shape=[3, True]), "wrong in the shape of `vectors`"),
    (place("vectors", shape=[2**61, 2**61]), "wrong in the place of `vectors`"),
    (place("vectors", size=23), "wrong in the place of `vectors`"),
    (place("vectors", ends=-1), "wrong in the place of `vectors`"),
    (place("vectors", offset=0), "wrong in the place of `vectors`"),
    (place("vectors", offset=2**40), "wrong in the place of `vectors`"),
    (place("vectors", offset=8193), "wrong in the place of `vectors`"),
    (overlapping, "wrong in the place of `(vectors|words/utf8)`, which overlaps another"),
    (twice, "wrong in two arrays of one name"),
]


@pytest.mark.parametrize(("change", "message"), HEADS)
def test_wrong_heads_are_refused(folder, change, message):
    rewrite_head(folder / "frozen.h5", change)
    with pytest.raises(TableFormatError, match=f"frozen.h5 is damaged: .*({message})"):
        open_frozen(folder / "frozen.h5")


@pytest.mark.parametrize("name", OPENERS)
def test_missing_files_folders_and_rights_raise_the_errors_of_open(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=name):
        OPENERS[name](tmp_path / name)
    with pytest.raises(IsADirectoryError):
        OPENERS[name](tmp_path)


def replaced(name, data):
    return lambda path: replace_array(path, name, data)


def in_head(change):
    return lambda path: rewrite_head(path, change)


FROZEN_DAMAGES = [
    (in_head(remove("vectors")), "the array `vectors` is missing"),
    (in_head(remove("words")), "the array `words/utf8` is missing"),
    (in_head(remove("words/offsets")), "the array `words/offsets` is missing"),
    (in_head(remove("fingerprint")), "its attribute `fingerprint` is None; expected text"),
    (in_head(remove("words_fingerprint")), "its attribute `words_fingerprint` is None; expected text"),
    (in_head(remove("dtype")), "its attribute `dtype` is None; expected text"),
    (in_head(remove("dim")), "its attribute `dim` is None; expected an integer"),
    (in_head(attribute("dim", 3)), r"`vectors` has shape \(3, 2\) and dtype float32; expected float32 rows of dim 3"),
    (in_head(attribute("dtype", "float16")), "expected float16 rows of dim 2"),
    (in_head(attribute("source", 7)), "its attribute `source` is 7; expected text"),
    (in_head(attribute("zero_row", 3)), "its attribute `zero_row` is 3; expected 0 to 2"),
    (in_head(attribute("zero_row", -1)), "its attribute `zero_row` is -1; expected 0 to 2"),
    (in_head(attribute("zero_row", 1)), "its attribute `zero_row` is 1, and that row is not zero"),
    (in_head(attribute("zero_row", "2")), "its attribute `zero_row` is .*; expected an integer"),
    (replaced("vectors", np.zeros((3, 2))), r"`vectors` has shape \(3, 2\) and dtype float64; expected 2 axes"),
    (replaced("vectors", np.zeros(6, "f4")), r"`vectors` has shape \(6,\) and .*; expected 2 axes"),
    (replaced("vectors", np.zeros((3, 2), "i1")), "dtype int8; expected float32 rows of dim 2"),
    (replaced("vectors", np.zeros((2, 2), "f4")), "zero_row"),
    (replaced("words/offsets", np.array([0, 3, 5], "u8")), "`words/offsets` has length 3; expected 4"),
    (replaced("words/offsets", np.array([0, 3, 5, 6], "u8")), "must end at the 5 bytes. Received: 6"),
    (replaced("words/offsets", np.array([0, 4, 3, 5], "u8")), "word 1 from 4 to 3"),
    (replaced("words/offsets", np.array([1, 3, 5, 5], "u8")), r"must start with 0. Received: \[1\]"),
    (
        replaced("words/offsets", np.array([0, 3, 5, 5], "i8")),
        "`words/offsets` has .*; expected 1 axes and dtype u",
    ),
    (replaced("words/utf8", np.zeros(4, "u1")), "must end at the 4 bytes. Received: 5"),
    (replaced("words/utf8", np.zeros((5, 1), "u1")), "`words/utf8` has .*; expected 1 axes"),
]
TRAINABLE_DAMAGES = [
    (in_head(remove("vectors")), "the array `vectors` is missing"),
    (in_head(remove("remap")), "the array `remap` is missing"),
    (in_head(remove("vocabulary/utf8")), "the array `vocabulary/utf8` is missing"),
    (in_head(remove("frozen_fingerprint")), "its attribute `frozen_fingerprint` is .*; expected text"),
    (in_head(remove("remap_fingerprint")), "its attribute `remap_fingerprint` is .*; expected text"),
    (in_head(remove("vocabulary_fingerprint")), "its attribute `vocabulary_fingerprint` is .*; expected text"),
    (in_head(remove("fingerprint")), "its attribute `fingerprint` is .*; expected text"),
    (in_head(remove("frozen_path")), "its attribute `frozen_path` is .*; expected text"),
    (in_head(attribute("padding", 3)), "its attribute `padding` is 3; expected 0 to 2"),
    (in_head(attribute("padding", -1)), "its attribute `padding` is -1; expected 0 to 2"),
    (replaced("remap", np.array([2, 0, ~1], "i4")), r"`remap\[2\]` is trainable row 1; expected less than 1"),
    (replaced("remap", np.array([2, 0, -(2**31)], "i4")), "is trainable row 2147483647"),
    (replaced("remap", np.array([2, 0, -1])), "`remap` has .*; expected 1 axes and dtype int32"),
    (replaced("remap", np.array([2, 0], "i4")), "`vocabulary/offsets` has length 4; expected 3"),
    (replaced("vectors", np.zeros((1, 2), "f2")), "`vectors` has .*; expected 2 axes and dtype float32"),
    (replaced("vectors", np.zeros((0, 2), "f4")), "is trainable row 0; expected less than 0"),
]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [("frozen.h5", *damage) for damage in FROZEN_DAMAGES] + [("trainable.h5", *damage) for damage in TRAINABLE_DAMAGES],
)
def test_damaged_contents_are_refused(folder, name, change, message):
    change(folder / name)
    with pytest.raises(TableFormatError, match=f"{name} is damaged: .*({message})"):
        OPENERS[name](folder / name)


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.parametrize("change", ["more", "fewer", "moved"])
def test_a_file_that_another_tool_wrote_again_is_refused(folder, name, change):
    path = folder / name
    content = path.read_bytes()
    if change == "moved":
        with h5py.File(path, "r+") as file:
            rows = file["vectors"][:]
            del file["vectors"]
            file["vectors"] = rows[::-1] + 1
        path.write_bytes(path.read_bytes()[: len(content)].ljust(len(content), b"\0"))
        with h5py.File(path, "r+") as file:
            file["vectors"][0] = 7
    else:
        path.write_bytes(content[:-20] if change == "fewer" else content + b"\0")
    with pytest.raises(TableFormatError, match=f"{name} is not as splitembed wrote it: .*splitembed convert"):
        OPENERS[name](path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe")
@pytest.mark.parametrize("opens", [open_frozen, open_trainable, format_of, lambda path: is_frozen(path, FROZEN)])
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path, opens):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        if opens in (open_frozen, open_trainable):
            with pytest.raises(OSError, match="is a pipe or a device; expected a file"):
                opens(path)
        else:
            assert not opens(path)


# Run in another process, so that a crash of HDF5 shows as a negative exit status without a last line.
SWEEP = """
import sys
from pathlib import Path
from splitembed.errors import TableFormatError
from splitembed.tables import open_frozen, open_trainable

def show(table):
    names = ["words", "zero_row"] if hasattr(table, "words") else ["vocabulary", "padding", "frozen_fingerprint"]
    shown = [getattr(table, name) for name in [*names, "fingerprint"]] + [table.vectors.tobytes()]
    return [list(part) if "Words" in type(part).__name__ else part for part in shown] + [
        table.remap.tobytes() if hasattr(table, "remap") else None
    ]

def check(path, changed, verify):
    path.write_bytes(changed)
    try:
        found = show(opener(path, verify=verify))
    except TableFormatError as error:
        assert path.name in str(error), error
        return 1
    assert found == whole, (path.name, found)
    return 0

folder = Path(sys.argv[1])
counts = []
for name, opener in (("frozen.h5", open_frozen), ("trainable.h5", open_trainable)):
    content, whole = (folder / name).read_bytes(), show(opener(folder / name))
    changed = folder / ("changed-" + name)
    {body}
print("done", *counts)
"""


def run_sweep(folder, body):
    code = SWEEP.replace("{body}", body)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("done "), done.stdout
    return [int(count) for count in done.stdout.split()[1:]]


def test_a_file_cut_anywhere_is_refused(folder):
    body = """
    for size in sorted({*range(0, len(content), 67), *range(0, len(content), 4096), *range(len(content))[-30:]}):
        counts.append(check(changed, content[:size], False))
    """
    refused = run_sweep(folder, body.strip())
    assert len(refused) > 500
    assert all(refused)


def test_a_flipped_bit_is_found_or_harmless(folder):
    """With `verify`, for a third of the nonzero bytes and some zeros, an opened table equals the original."""
    body = """
    for position in range(len(content)):
        if position % 3 == 0 and content[position] or position % 199 == 0:
            flipped = bytearray(content)
            flipped[position] ^= 1 << position % 8
            counts.append(check(changed, flipped, True))
    """
    refused = run_sweep(folder, body.strip())
    assert len(refused) > 600
    assert sum(refused) > len(refused) / 3


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("frozen.h5", np.array([3.0, 4.0], np.float32).tobytes(), "`vectors`"),
        ("frozen.h5", "theé".encode(), "`words/utf8`"),
        ("frozen.h5", np.array([0, 3, 5, 5], np.uint64).tobytes(), "`words/offsets`"),
        ("trainable.h5", np.array([5.0, 6.0], np.float32).tobytes(), "`vectors`"),
        ("trainable.h5", np.array([2, 0, ~0], np.int32).tobytes(), "`remap`"),
        ("trainable.h5", b"theusr", "`vocabulary/utf8`"),
    ],
)
def test_every_flipped_bit_of_short_arrays_is_found(folder, name, data, message):
    path = folder / name
    content = path.read_bytes()
    start = content.index(data)
    for bit in range(8 * len(data)):
        flipped = bytearray(content)
        flipped[start + bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(TableFormatError, match=message):
            OPENERS[name](path)
    path.write_bytes(content)
    OPENERS[name](path, verify=True)


@pytest.mark.parametrize("words", [None, [f"word {number}" for number in range(3_000)]])
def test_verify_finds_bits_in_the_middle_of_mapped_arrays(tmp_path, words):
    path = tmp_path / "frozen.h5"
    write_frozen(path, np.arange(6_000, dtype=np.float32).reshape(3_000, 2), words=words)
    name = "vectors" if words is None else "words/utf8"
    place = head_of(path).arrays[name]
    content = bytearray(path.read_bytes())
    content[place.offset + place.size // 2] ^= 1
    path.write_bytes(content)
    table = open_frozen(path)
    if words is not None:
        with pytest.raises(TableFormatError, match="the bytes of `words/utf8` are not those that were written"):
            list(table.words)
    with pytest.raises(TableFormatError, match="fingerprint"):
        open_frozen(path, verify=True)
