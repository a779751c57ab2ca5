"""Files that are foreign, cut short, damaged or too new are refused, without a crash or a wrong row."""

import gzip
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from splitembed.errors import TableFormatError
from splitembed.tables import open_frozen, open_trainable, write_frozen, write_trainable

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
        (b"the 0.1 0.2\n", r"is not an HDF5 file: it starts with b'the 0.1 0.2\\n'.*read_vectors"),
        (gzip.compress(b"the 0.1 0.2\n", mtime=0), r"is not an HDF5 file: it starts with b'\\x1f\\x8b"),
        (b"\x89HDF\r\n\x1a\n", "cannot be read as a table|is cut short"),
        (b"\x89HDF\r\n\x1a\n" + b"\xff" * 4096, "cannot be read as a table"),
    ],
    ids=["empty", "text", "gzip", "signature alone", "signature and noise"],
)
def test_files_other_than_hdf5_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableFormatError, match=f"{name} ({message})"):
        OPENERS[name](tmp_path / name)


@pytest.mark.parametrize("name", OPENERS)
def test_foreign_hdf5_is_refused(tmp_path, name):
    with h5py.File(tmp_path / name, "w") as file:
        file["model_weights/dense"] = [1.0]
    with pytest.raises(TableFormatError, match=r"its attribute `format` is None, its top level holds model_weights"):
        OPENERS[name](tmp_path / name)


@pytest.mark.parametrize("value", [7, "keras", np.zeros(3), b"splitembed.frozen2", h5py.Empty("f")])
def test_an_odd_attribute_format_is_refused(tmp_path, value):
    with h5py.File(tmp_path / "frozen.h5", "w") as file:
        file.attrs["format"] = value
    with pytest.raises(TableFormatError, match=r"is an HDF5 file of another format: .*holds nothing"):
        open_frozen(tmp_path / "frozen.h5")


def test_the_other_kind_of_table_names_its_opener(folder):
    with pytest.raises(
        TableFormatError, match=r"'splitembed\.trainable'; expected 'splitembed\.frozen'.*open_trainable"
    ):
        open_frozen(folder / "trainable.h5")
    with pytest.raises(TableFormatError, match=r"'splitembed\.frozen'; expected 'splitembed\.trainable'.*open_frozen"):
        open_trainable(folder / "frozen.h5")


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.parametrize("version", [0, 4])
def test_another_version_is_refused_and_named(folder, name, version):
    with h5py.File(folder / name, "r+") as file:
        file.attrs["format_version"] = version
        # The content of a newer version does not matter.
        del file["vectors"]
    with pytest.raises(TableFormatError, match=f"has format version {version}; expected 1 to 3"):
        OPENERS[name](folder / name)


@pytest.mark.parametrize("name", OPENERS)
def test_missing_files_folders_and_rights_raise_the_errors_of_open(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=name):
        OPENERS[name](tmp_path / name)
    with pytest.raises(IsADirectoryError):
        OPENERS[name](tmp_path)


def replaced(name, data):
    def change(file):
        del file[name]
        file[name] = data

    return change


def attribute(name, value):
    return lambda file: file.attrs.__setitem__(name, value)


def removed(name):
    return lambda file: (file.attrs if name in file.attrs else file).__delitem__(name)


FROZEN_DAMAGES = [
    (removed("vectors"), "the dataset `vectors` is missing, or"),
    (removed("words"), "the dataset `words/utf8` is missing, or"),
    (removed("words/offsets"), "the dataset `words/offsets` is missing, or"),
    (removed("fingerprint"), "its attribute `fingerprint` is None; expected text"),
    (removed("words_fingerprint"), "its attribute `words_fingerprint` is None; expected text"),
    (removed("dtype"), "its attribute `dtype` is None; expected text"),
    (removed("dim"), "its attribute `dim` is None; expected an integer"),
    (attribute("dim", 3), r"`vectors` has shape \(3, 2\) and dtype float32; expected float32 rows of dim 3"),
    (attribute("dim", 2.0), "its attribute `dim` is .*; expected an integer"),
    (attribute("dim", [2]), "its attribute `dim` is .*; expected an integer"),
    (attribute("dtype", "float16"), "expected float16 rows of dim 2"),
    (attribute("source", 7), "its attribute `source` is np.int64.7.; expected text|is 7; expected text"),
    (attribute("zero_row", 3), "its attribute `zero_row` is 3; expected 0 to 2"),
    (attribute("zero_row", -1), "its attribute `zero_row` is -1; expected 0 to 2"),
    (attribute("zero_row", 1), "its attribute `zero_row` is 1, and that row is not zero"),
    (attribute("zero_row", "2"), "its attribute `zero_row` is .*; expected an integer"),
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
    (removed("vectors"), "the dataset `vectors` is missing, or"),
    (removed("remap"), "the dataset `remap` is missing, or"),
    (removed("vocabulary/utf8"), "the dataset `vocabulary/utf8` is missing, or"),
    (removed("frozen_fingerprint"), "its attribute `frozen_fingerprint` is .*; expected text"),
    (removed("remap_fingerprint"), "its attribute `remap_fingerprint` is .*; expected text"),
    (removed("vocabulary_fingerprint"), "its attribute `vocabulary_fingerprint` is .*; expected text"),
    (removed("fingerprint"), "its attribute `fingerprint` is .*; expected text"),
    (removed("frozen_path"), "its attribute `frozen_path` is .*; expected text"),
    (attribute("padding", 3), "its attribute `padding` is 3; expected 0 to 2"),
    (attribute("padding", -1), "its attribute `padding` is -1; expected 0 to 2"),
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
    with h5py.File(folder / name, "r+") as file:
        change(file)
    with pytest.raises(TableFormatError, match=f"{name} .*({message})"):
        OPENERS[name](folder / name)


@pytest.mark.parametrize("name", ["words", "words/utf8", "vectors"])
def test_data_in_another_file_is_refused(folder, name):
    write_frozen(folder / "other.h5", np.zeros((3, 2), np.float32), words=["the", "é", ""])
    with h5py.File(folder / "frozen.h5", "r+") as file:
        del file[name]
        file[name] = h5py.ExternalLink(str(folder / "other.h5"), name)
    with pytest.raises(TableFormatError, match=r"the dataset `.*` is missing, or"):
        open_frozen(folder / "frozen.h5")


def external_storage(file, folder):
    (folder / "raw").write_bytes(bytes(24))
    file.create_dataset("vectors", (3, 2), "f4", external=[(str(folder / "raw"), 0, 24)])


def virtual(file, folder):
    write_frozen(folder / "other.h5", np.zeros((3, 2), np.float32))
    layout = h5py.VirtualLayout((3, 2), "f4")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "vectors", (3, 2))
    file.create_virtual_dataset("vectors", layout)


@pytest.mark.parametrize("create", [external_storage, virtual])
def test_views_of_data_in_another_file_are_refused(folder, create):
    with h5py.File(folder / "frozen.h5", "r+") as file:
        del file["vectors"]
        create(file, folder)
    with pytest.raises(TableFormatError, match="the dataset `vectors` is missing, or"):
        open_frozen(folder / "frozen.h5")


@pytest.mark.parametrize("chunks", [None, (1, 2)])
def test_rows_that_were_not_written_are_refused(folder, chunks):
    """This holds for shapes larger than the memory too."""
    for shape in ((3, 2), (2**40, 2)):
        with h5py.File(folder / "frozen.h5", "r+") as file:
            del file["vectors"]
            rows = file.create_dataset("vectors", shape, "f4", chunks=chunks)
            if chunks:
                rows[1] = 1
        with pytest.raises(TableFormatError, match=r"`vectors` has shape .* [08] of its .* bytes were written"):
            open_frozen(folder / "frozen.h5")


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


def test_a_file_that_is_cut_short_is_named_as_such(folder):
    content = (folder / "frozen.h5").read_bytes()
    (folder / "frozen.h5").write_bytes(content[:-20])
    with pytest.raises(TableFormatError, match=f"frozen.h5 is cut short: only {len(content) - 20} bytes are left"):
        open_frozen(folder / "frozen.h5")


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
        ("frozen.h5", np.array([3.0, 4.0], np.float32).tobytes(), "`fingerprint`"),
        ("frozen.h5", "theé".encode(), "`words_fingerprint`"),
        ("frozen.h5", np.array([0, 3, 5, 5], np.uint64).tobytes(), "offsets|Offsets|`words_fingerprint`"),
        ("trainable.h5", np.array([5.0, 6.0], np.float32).tobytes(), "`fingerprint`"),
        ("trainable.h5", np.array([2, 0, ~0], np.int32).tobytes(), "`remap_fingerprint`|is trainable row"),
        ("trainable.h5", b"theusr", "`vocabulary_fingerprint`"),
    ],
)
def test_verify_finds_every_flipped_bit_of_the_data(folder, name, data, message):
    path = folder / name
    content = path.read_bytes()
    start = content.index(data)
    for bit in range(8 * len(data)):
        flipped = bytearray(content)
        flipped[start + bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(TableFormatError, match=message):
            OPENERS[name](path, verify=True)
    path.write_bytes(content)
    OPENERS[name](path, verify=True)
