"""Crafted and damaged files of all formats, each of which a reader must refuse by name.

A case is the bytes of one file, or of the files of a folder, and the way to read it. Small fuzzed files are in `files`.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import h5py
import numpy as np

from tests.helpers.table_heads import attribute, place_of, remove, replace_array, rewrite_head, write_text

FILES = Path(__file__).parent / "files"
TEXT = b"the 0.5 0.25\nof 1.5 2\n"
NAMES = ("words", "matrix")


class Case(NamedTuple):
    """One file or folder, and how it is read.

    Args:
        name: the name of the file or folder, which the error must contain.
        content: its bytes; a dict of file name -> bytes for a folder; or a function that writes it to a path.
        reader: "vectors", "words" (the matrix of (words, path)), "vocabulary", "frozen" or "trainable" (tables).
        options: of `read_vectors`.
    """

    name: str
    content: bytes | dict[str, bytes] | Callable[[Path], Any]
    reader: str = "vectors"
    options: Mapping[str, Any] = MappingProxyType({})

    def write(self, folder: Path) -> Path:
        """Write the case into a folder of its own, and return its path."""
        path = folder / self.name
        if callable(self.content):
            self.content(path)
        elif isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            path.mkdir()
            for name, content in self.content.items():
                (path / name).write_bytes(content)
        return path

    def read(self, path: Path) -> Any:
        """Read the case, which must raise an error."""
        from splitembed import tables
        from splitembed.vectors import read_vectors
        from splitembed.vocabulary import read_vocabulary

        if self.reader in ("frozen", "trainable"):
            return getattr(tables, f"open_{self.reader}")(path, verify=True)
        if self.reader == "vocabulary":
            return read_vocabulary(path)
        return read_vectors((["the", "of"], path) if self.reader == "words" else path, **self.options)


def all_cases() -> list[Case]:
    """Return every case; names are distinct."""
    groups = (
        text,
        compressed,
        word2vec,
        fasttext,
        npy,
        npz,
        safetensors,
        spacy,
        hdf5,
        tables_as_hdf5,
        tables,
        pickles,
        vocabularies,
    )
    return [case for group in groups for case in group()]


def text() -> Iterator[Case]:
    strict = {"strict": True}
    yield Case("empty.txt", b"")
    yield Case("blank.txt", b"\n" * 3_000_000)
    yield Case("blank-between.txt", b"the 0.5 0.25\n" + b"\n" * 2_000_000 + b"of 1\n")
    yield Case("blank-crlf-strict.txt", b"the 0.5 0.25\r\n" + b" \t\r\n" * 500_000 + b"of 1 2\r\n", options=strict)
    yield Case("nul.txt", bytes(3_000_000))
    yield Case("spaces.txt", b" " * 3_000_000)
    yield Case("page.txt", b"<!DOCTYPE html><html></html>")
    yield Case("utf16.txt", "the 0.5 0.25\n".encode("utf-16"))
    yield Case("one-word.txt", b"a" * 3_000_000)
    yield Case("long-word.txt", TEXT + b"a" * 3_000_000 + b" 1 2\n")
    yield Case("merged.txt", TEXT + b"a0.5 1\n")
    yield Case("infinite.txt", TEXT + b"a 1e999 2\n")
    yield Case("nan.txt", TEXT + b"a nan 2\n")
    yield Case("digits.txt", TEXT + b"a " + b"9" * 1_000_000 + b" 2\n")
    yield Case("hexadecimal.txt", TEXT + b"a 0x1p3 2\n")
    yield Case("underscore.txt", TEXT + b"a 1_0 2\n")
    yield Case("arabic-digits.txt", TEXT + "a ١ 2\n".encode())
    yield Case("header-alone.txt", b"999999999999999999 300\n")
    yield Case("header-dim.txt", b"2 999999999999999999\n" + TEXT)
    yield Case("header-rows.txt", b"999999999999999999 2\n" + TEXT, options=strict)
    yield Case("other-dim.txt", TEXT, options={"dim": 3})


def compressed() -> Iterator[Case]:
    packed = gzip.compress(TEXT * 100, mtime=0)
    yield Case("block.gz", (FILES / "block.gz").read_bytes())
    yield Case("cut.gz", packed[:-9])
    yield Case("checksum.gz", packed[:-8] + bytes(8))
    yield Case("garbage.gz", packed + b"garbage")
    yield Case("nested.gz", gzip.compress(gzip.compress(gzip.compress(packed))))
    yield Case("zeros.gz", gzip.compress(bytes(50_000_000), 1))
    yield Case("long-lines.gz", gzip.compress((b"a" + b" 1" * 16_000_000 + b"\n") * 2, 1))
    yield Case("long-row.gz", gzip.compress((b"a" + b" 1" * 500_000 + b"\n") * 2 + b"b 1\n", 1))
    yield Case("blank.gz", gzip.compress(b"\n" * 50_000_000, 1))
    yield Case("cut.bz2", bz2.compress(TEXT * 100)[:-5])
    yield Case("checksum.bz2", bz2.compress(TEXT)[:-4] + bytes(4))
    yield Case("blank.bz2", bz2.compress(b"\n" * 20_000_000))
    yield Case("garbage.bz2", bz2.compress(TEXT) + b"garbage")
    yield Case("cut.xz", lzma.compress(TEXT * 100)[:-5])
    yield Case("damaged.xz", lzma.compress(TEXT)[:20] + bytes(40))
    yield Case("cut.zst", b"\x28\xb5\x2f\xfd\x20\x07")
    yield Case("window.zst", b"\x28\xb5\x2f\xfd\x00\xff" + bytes(20))
    yield Case("none.zip", zip_of({}))
    yield Case("two.zip", zip_of({"a.txt": TEXT, "b.txt": TEXT}))
    yield Case("no-vectors.zip", zip_of({"a.pdf": b"%PDF-1.4\nobj\n" * 9}))
    yield Case("cut.zip", zip_of({"a.txt": TEXT})[:-5])
    yield Case("directory.zip", b"PK\x03\x04" + bytes(100))
    yield Case("method.zip", patched(zip_of({"a.txt": TEXT}), b"PK\x01\x02", 10, b"\x63\0"))
    yield Case("encrypted.zip", patched(zip_of({"a.txt": TEXT}), b"PK\x01\x02", 8, b"\1\0"))
    yield Case("offset.zip", patched(zip_of({"a.txt": TEXT}), b"PK\x01\x02", 42, b"\xff\xff\xff\x7f"))
    yield Case("checksum.zip", patched(zip_of({"a.txt": TEXT}), b"PK\x01\x02", 16, b"abcd"))


def word2vec() -> Iterator[Case]:
    row = struct.pack("<2f", 1, 2)
    yield Case("cut-row.bin", b"2 2\nthe " + row + b"of " + row[:5])
    yield Case("rows.bin", b"9000000000 2\nthe " + row + b"of " + row, options={"strict": True})
    yield Case("dim.bin", b"2 999999999\nthe " + row * 50)
    yield Case("dim-0.bin", b"2 0\nthe \xff of \xff ")
    yield Case("no-space.bin", b"2 2\nthe " + row + b"\xff\x01" * 1_000_000)
    yield Case("nan.bin", b"2 2\nthe " + row + b"of " + struct.pack("<2f", 1, np.nan))


def fasttext_model(
    dim: int = 1, bucket: int = 1, words: int = 1, size: int = 1, rows: int = 2, **changes: Any
) -> bytes:
    given = {"version": 12, "minn": 3, "maxn": 6, "pruned": -1, "word": b"the\0", "type": 0, "quantized": 0, **changes}
    options = (given["version"], dim, 5, 5, 1, 5, 1, 2, 2, bucket, given["minn"], given["maxn"], 100)
    content = b"\xba\x16\x4f\x2f" + struct.pack("<13id", *options, 1e-4)
    content += struct.pack("<3i2q", size, words, 0, 9, given["pruned"]) + given["word"]
    content += struct.pack("<qb?2q", 9, given["type"], given["quantized"], rows, dim)
    return (
        content
        + struct.pack(f"<{2 * min(abs(dim), 9)}f", *[1.0] * 2 * min(abs(dim), 9))
        + struct.pack("<?2q", 0, 0, dim)
    )


def fasttext() -> Iterator[Case]:
    for name, changes in {
        "dim-0": {"dim": 0},
        "dim-negative": {"dim": -1},
        "dim-huge": {"dim": 2**31 - 1},
        "bucket-negative": {"bucket": -1},
        "bucket-huge": {"bucket": 2**31 - 1, "rows": 2**31},
        "no-bucket": {"bucket": 0, "rows": 1},
        "words-huge": {"words": 2**31 - 1, "size": 2**31 - 1},
        "words-negative": {"words": -1, "size": -1},
        "size": {"size": 7},
        "maxn-huge": {"maxn": 2**31 - 1},
        "pruned": {"pruned": 3},
        "version": {"version": 99},
        "type": {"type": 7},
        "quantized": {"quantized": 1},
        "rows": {"rows": 2**62},
        "word-without-end": {"word": b"a" * 3_000_000},
    }.items():
        yield Case(f"fasttext-{name}.bin", fasttext_model(**changes))
        # A compressed model is read as a stream, without the size of its content.
        if name in ("bucket-huge", "words-huge", "rows"):
            yield Case(f"fasttext-{name}.bin.gz", gzip.compress(fasttext_model(**changes)))
    for name in ("fasttext-long-word.bin", "fasttext-long-word.bin.gz"):
        long = fasttext_model(word=b"a" * 500_000 + b"\0")[:-8] + struct.pack("<q", 9)
        yield Case(name, gzip.compress(long) if name.endswith(".gz") else long)
    yield Case("fasttext-header.bin", fasttext_model()[:40])
    yield Case("fasttext-cut.bin", fasttext_model()[:-20])


def npy_file(
    header: str | bytes, content: bytes = bytes(16), version: bytes = b"\1\0", length: int | None = None
) -> bytes:
    raw = header.encode() if isinstance(header, str) else header
    return b"\x93NUMPY" + version + struct.pack("<H", len(raw) if length is None else length) + raw + content


def npy_header(shape: str, descr: str = "'<f4'", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def npy() -> Iterator[Case]:
    for name, content in {
        "cut": npy_file(npy_header("(2, 2)"), bytes(7)),
        "shape-huge": npy_file(npy_header("(2, 1152921504606846976)")),
        "shape-overflow": npy_file(npy_header("(2, 99999999999999999999999)")),
        "shape-wraps": npy_file(npy_header("(4294967296, 4294967296)")),
        "shape-negative": npy_file(npy_header("(2, -2)")),
        "shape-text": npy_file(npy_header("('a', 2)")),
        "shape-bool": npy_file(npy_header("(True, 2)")),
        "shape-none": npy_file(npy_header("None")),
        "shape-80": npy_file(npy_header("(1,) * 80")),
        "dimensions": npy_file(npy_header(str((1,) * 80)), bytes(4)),
        "objects": npy_file(npy_header("(2, 2)", "'|O'")),
        "descr-unknown": npy_file(npy_header("(2, 2)", "'<q9'")),
        "descr-nested": npy_file(npy_header("(2,)", "[('a', [('b', '|O')])]")),
        "descr-huge": npy_file(npy_header("(2, 2)", "'|V2147483648'")),
        "text": npy_file(npy_header("(2, 2)", "'<U1'"), bytes(16)),
        "dates": npy_file(npy_header("(2, 1)", "'<M8[s]'"), bytes(16)),
        "code": npy_file("__import__('os').system('false')\n"),
        "key-missing": npy_file("{'descr': '<f4'}\n"),
        "nested": npy_file("(" * 9000 + ")" * 9000),
        "indented": npy_file("  {\n\t}\n"),
        "not-utf8": npy_file(b"{'descr': '\xff\xfe'}\n"),
        "length": npy_file(npy_header("(2, 2)"), length=65535),
        "version": npy_file(npy_header("(2, 2)"), version=b"\x09\0"),
        "magic-alone": b"\x93NUMPY",
    }.items():
        yield Case(f"{name}.npy", content, "words")


def npy_bytes(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


def zip_of(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def patched(content: bytes, mark: bytes, offset: int, new: bytes) -> bytes:
    """Replace bytes at an offset from a mark."""
    start = content.index(mark) + offset
    return content[:start] + new + content[start + len(new) :]


def npz() -> Iterator[Case]:
    words, matrix = npy_bytes(["the", "of"]), npy_bytes(np.ones((2, 2), np.float32))
    whole = zip_of({"words.npy": words, "matrix.npy": matrix})
    yield Case("member.npz", (FILES / "member.npz").read_bytes())
    yield Case("no-matrix.npz", zip_of({"words.npy": words}))
    yield Case("no-words.npz", zip_of({"matrix.npy": matrix}))
    yield Case("rows.npz", zip_of({"words.npy": words, "matrix.npy": npy_bytes(np.ones((3, 2), np.float32))}))
    yield Case("lying-shape.npz", zip_of({"words.npy": words, "matrix.npy": npy_file(npy_header("(2, 2000000000)"))}))
    yield Case("objects.npz", zip_of({"words.npy": npy_file(npy_header("(2,)", "'|O'")), "matrix.npy": matrix}))
    yield Case("method.npz", patched(whole, b"PK\x01\x02", 10, b"\x63\0"))
    yield Case("checksum.npz", patched(whole, b"PK\x01\x02", 16, b"abcd"))
    yield Case("size.npz", patched(whole, b"PK\x01\x02", 24, b"\xff\xff\xff\x7f"))
    yield Case(
        "stored.npz", patched(zip_of({"words.npy": words, "matrix.npy": matrix}, 0), b"PK\x01\x02", 42, b"\x40\0\0\0")
    )
    yield Case("bomb.npz", write_npz_bomb)


def write_npz_bomb(path: Path) -> None:
    """Write 200 kB that unpack to 200 MB of zeros."""
    rows = 50_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("words.npy", npy_bytes(np.arange(rows).astype("S6")))
        with archive.open("matrix.npy", "w") as member:
            member.write(npy_file(npy_header(f"({rows}, 1000)"), b""))
            for _ in range(100):
                member.write(bytes(rows * 40))


def safetensors_file(header: Any, content: bytes = bytes(16), length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + content


def tensor(shape: list[int], start: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def safetensors() -> Iterator[Case]:
    good = tensor([2, 2], 0, 16)
    for name, content in {
        "length": safetensors_file({"embeddings": good}, length=2**31),
        "json": safetensors_file(b"{" + b'"a":' * 20),
        "nested": safetensors_file(b'{"a":' * 5000),
        "overlap": safetensors_file({"a": good, "b": tensor([2, 2], 8, 24)}, bytes(24)),
        "hole": safetensors_file({"a": tensor([2, 2], 8, 24)}, bytes(24)),
        "decreasing": safetensors_file({"a": tensor([2, 2], 16, 0)}),
        "negative": safetensors_file({"a": tensor([2, -2], 0, 16)}),
        "shape-huge": safetensors_file({"a": tensor([2**40, 2**40], 0, 16)}),
        "dtype": safetensors_file({"a": tensor([2, 2], 0, 16, "F99")}),
        "float8": safetensors_file({"a": tensor([2, 2], 0, 4, "F8_E4M3")}, bytes(4)),
        "cut": safetensors_file({"embeddings": good}, bytes(7)),
        "none": safetensors_file({}, b""),
        "vector": safetensors_file({"a": tensor([4], 0, 16)}),
    }.items():
        yield Case(f"{name}.safetensors", content, "words")
    model = safetensors_file({"embeddings": good})
    for name, tokenizer in {
        "high-id": {"model": {"type": "WordLevel", "vocab": {"the": 0, "of": 999_999}}},
        "other-rows": {"model": {"type": "WordLevel", "vocab": {"the": 0, "of": 1, "a": 2}}},
    }.items():
        yield Case(f"model2vec-{name}", {"model.safetensors": model, "tokenizer.json": json.dumps(tokenizer).encode()})
    two = json.dumps({"model": {"type": "WordLevel", "vocab": {"the": 0, "of": 1}}}).encode()
    mapped = {"embeddings": good, "mapping": tensor([2], 16, 32, "I64")}
    for name, last in {"mapping-high": 7, "mapping-negative": -1}.items():
        content = safetensors_file(mapped, bytes(16) + struct.pack("<2q", 0, last))
        yield Case(f"model2vec-{name}", {"model.safetensors": content, "tokenizer.json": two})
    weighted = safetensors_file(
        {"embeddings": good, "weights": tensor([2], 16, 24)}, struct.pack("<6f", 1, 1, 1, 1, 1, np.nan)
    )
    yield Case("model2vec-nan", {"model.safetensors": weighted, "tokenizer.json": two})
    yield Case("model2vec-json", {"model.safetensors": model, "tokenizer.json": b"{" * 100_000})


def spacy() -> Iterator[Case]:
    # msgpack: the keys of "the" and "of", rows 0 and 1.
    keys = (
        b"\x82\xcf" + struct.pack(">Q", 7425985699627899538) + b"\0\xcf" + struct.pack(">Q", 886050111519832510) + b"\1"
    )
    good = {"vectors": npy_bytes(np.ones((2, 2), np.float32)), "key2row": keys, "strings.json": b'["the", "of"]'}
    for name, changes in {
        "list": {"key2row": b"\x92\0\1"},
        "cut": {"key2row": keys[:-3]},
        "lying-length": {"key2row": b"\xdf\xff\xff\xff\xff\0\0"},
        "lying-bytes": {"key2row": b"\xc6\xff\xff\xff\xff"},
        "high-row": {"key2row": keys[:-1] + b"\x07"},
        "negative-row": {"key2row": keys[:-1] + b"\xff"},
        "half-row": {"key2row": keys[:-1] + b"\xca\x3f\0\0\0"},
        "text-keys": {"key2row": b"\x81\xa1\xff\0"},
        "nested": {"key2row": b"\x91" * 3000},
        "unhashable": {"key2row": b"\x81\x90\0"},
        "timestamp": {"key2row": b"\x81\xd6\xff\0\0\0\0\0"},
        "not-json": {"strings.json": b"[" * 200_000},
        "not-utf8": {"strings.json": b'["\xff\xfe"]'},
        "not-a-list": {"strings.json": b'{"the": 1}'},
        "numbers": {"strings.json": b'["the", 1]'},
        "settings": {"vectors.cfg": b'{"mode": "floret"}'},
        "settings-list": {"vectors.cfg": b"[]"},
        "vector": {"vectors": npy_bytes(np.ones(4, np.float32))},
        "rows-text": {"vectors": npy_bytes(np.array([["a"], ["b"]]))},
        "rows-objects": {"vectors": npy_file(npy_header("(2, 2)", "'|O'"))},
        "rows-cut": {"vectors": npy_file(npy_header("(2, 2)"), bytes(3))},
    }.items():
        yield Case(f"spacy-{name}", {**good, **changes})


def written_hdf5(write: Callable[[h5py.File], Any]) -> Callable[[Path], None]:
    def write_file(path: Path) -> None:
        with h5py.File(path, "w") as file:
            write(file)

    return write_file


def with_words(write: Callable[[h5py.File], Any]) -> Callable[[h5py.File], None]:
    def write_both(file: h5py.File) -> None:
        file["words"] = np.array([b"the", b"of"])
        write(file)

    return write_both


def packed_words(utf8: Any, offsets: Any) -> Callable[[h5py.File], None]:
    def write(file: h5py.File) -> None:
        file["words/utf8"], file["words/offsets"] = utf8, offsets
        file["matrix"] = np.ones((2, 2), np.float32)

    return write


def hdf5() -> Iterator[Case]:
    datasets = {"datasets": NAMES}
    for name in ("crash", "encoding", "external-storage", "hang", "memory"):
        yield Case(f"{name}.h5", (FILES / f"{name}.h5").read_bytes(), options=datasets)
    for name, write in {
        "unwritten": lambda file: file.create_dataset("matrix", (2, 2**36), "f4"),
        "unwritten-chunks": lambda file: file.create_dataset("matrix", (2, 2**30), "f4", chunks=(1, 2**20)),
        "soft-link": lambda file: file.__setitem__("matrix", h5py.SoftLink("/words")),
        "dangling-link": lambda file: file.__setitem__("matrix", h5py.SoftLink("/nowhere")),
        "external-link": lambda file: file.__setitem__("matrix", h5py.ExternalLink("other.h5", "/matrix")),
        "virtual": lambda file: file.create_virtual_dataset("matrix", virtual_layout()),
        "external-matrix": lambda file: file.create_dataset(
            "matrix", (2, 2), "f4", external=[("/etc/hostname", 0, 16)]
        ),
        "group": lambda file: file.create_group("matrix"),
        "missing": lambda file: None,
        "empty": lambda file: file.create_dataset("matrix", data=h5py.Empty("f4")),
        "scalar": lambda file: file.__setitem__("matrix", 1.0),
        "three-dimensions": lambda file: file.__setitem__("matrix", np.ones((2, 1, 1))),
        "other-rows": lambda file: file.__setitem__("matrix", np.ones((3, 2))),
        "nan": lambda file: file.__setitem__("matrix", np.full((2, 2), np.nan)),
        "compound": lambda file: file.__setitem__("matrix", np.zeros((2, 2), "f4,f4")),
        "references": lambda file: file.create_dataset("matrix", (2, 2), h5py.ref_dtype),
        "text": lambda file: file.__setitem__("matrix", np.array([[b"a"], [b"b"]])),
        "chunk-bomb": lambda file: file.create_dataset(
            "matrix", data=np.zeros((2, 10_000_000), np.float32), compression="gzip", compression_opts=9
        ),
    }.items():
        yield Case(f"{name}-matrix.h5", written_hdf5(with_words(write)), options=datasets)
    for name, (utf8, offsets) in {
        "decreasing": (np.zeros(4, np.uint8), np.array([0, 3, 2], np.uint64)),
        "beyond": (np.zeros(4, np.uint8), np.array([0, 2, 2**63], np.uint64)),
        "signed": (np.zeros(4, np.uint8), np.array([0, 2, 4])),
        "wide": (np.zeros(4, np.uint16), np.array([0, 2, 4], np.uint64)),
        "none": (np.zeros(0, np.uint8), np.zeros(0, np.uint64)),
    }.items():
        yield Case(f"{name}-offsets.h5", written_hdf5(packed_words(utf8, offsets)), options=datasets)
    yield Case("cyclic.h5", written_hdf5(lambda file: file.create_group("a").__setitem__("b", file["a"])))
    yield Case("magic.h5", b"\x89HDF\r\n\x1a\n", options=datasets)
    yield Case("zeros.h5", b"\x89HDF\r\n\x1a\n" + bytes(5000), options=datasets)


def virtual_layout() -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout((2, 2), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "matrix", (2, 2))
    return layout


def fuzzed_tables() -> list[Path]:
    """Return tables of the format before the head, with damage at which libhdf5 hung, crashed or took minutes."""
    return sorted([*FILES.glob("frozen-*.h5"), *FILES.glob("trainable-*.h5")])


def tables_as_hdf5() -> Iterator[Case]:
    for path in fuzzed_tables():
        yield Case(f"hdf5-{path.name}", path.read_bytes(), options={"datasets": ("words", "vectors")})


def tables() -> Iterator[Case]:
    for path in fuzzed_tables():
        yield Case(path.name, path.read_bytes(), path.name.partition("-")[0])
    place, rows = {"offset": 4096}, {"shape": [2**40, 2], "size": 2**43}
    for name, array, changes in (
        ("overlap", "words/offsets", place),
        ("huge", "vectors", rows),
        ("outside", "vectors", {"offset": 2**40}),
        ("in-the-head", "vectors", {"offset": 64}),
        ("unaligned", "vectors", {"offset": 4097}),
        ("object", "vectors", {"dtype": "|O"}),
        ("other-dtype", "vectors", {"dtype": "<u4"}),
        ("other-shape", "vectors", {"shape": [4, 1]}),
        ("other-name", "vectors", {"name": "rows"}),
        ("words-as-rows", "words/utf8", {"name": "words/rows"}),
    ):
        yield Case(
            f"head-{name}.h5", written_table(lambda head, a=array, c=changes: place_of(head, a).update(c)), "frozen"
        )
    for name, text in (("deep", "[" * 1_000_000), ("digits", "9" * 1_000_000), ("names", "{" + '"a":1,' * 100_000)):
        yield Case(f"head-{name}.h5", lambda path, t=text: (written_table(None)(path), write_text(path, t)), "frozen")
    for name, value in (("zero-row", 1), ("dim", 2**40), ("fingerprint", "x" * 1000)):
        change = attribute(name.replace("-", "_"), value)
        yield Case(f"attribute-{name}.h5", written_table(change), "frozen")
    for name, array, data in (
        ("ramps-many", "remap/starts", np.zeros(2, np.int32)),
        ("ramps-rows", "remap/rows", np.array([2**31 - 1, -1, 5], np.int32)),
        ("remap", "remap", np.full(8, -9, np.int32)),
    ):
        yield Case(f"{name}.h5", lambda path, a=array, d=data: write_ramps(path, a, d), "trainable")
    many = attribute("num_tokens", 2**62)
    yield Case("ramps-long.h5", lambda path: rewrite_head(write_ramps(path), many), "trainable")


def written_table(change: Any) -> Callable[[Path], None]:
    """Return a function that writes a frozen table and changes its head."""
    from splitembed.tables import write_frozen

    def write(path: Path) -> None:
        write_frozen(path, np.array([[1, 2], [3, 4]], np.float32), words=["the", "of"])
        if change is not None:
            rewrite_head(path, change)

    return write


def write_ramps(path: Path, array: str = "", data: Any = None) -> Path:
    """Write a trainable table whose remap is three ramps, and replace one of its arrays."""
    from splitembed.tables import write_trainable

    write_trainable(path, [[1.0]], [*range(6), -1, *range(5, 12)], frozen_fingerprint="sha256:")
    if array == "remap":
        rewrite_head(path, remove("remap/starts"))
    if array:
        replace_array(path, array, data)
    return path


def pickles() -> Iterator[Case]:
    raw = pickle.dumps({"the": [1.0, 2.0]})
    yield Case("pickle.kv", raw)
    yield Case("pickle.kv.gz", gzip.compress(raw))
    allowed = {"allow_pickle": True}
    yield Case("cut.kv", raw[:-4], options=allowed)
    yield Case("missing-class.kv", b"\x80\x02cnowhere.module\nClass\n.", options=allowed)
    yield Case("number.kv", pickle.dumps(5), options=allowed)
    yield Case("path.kv", pickle.dumps(os.devnull), options=allowed)


def tokenizer(**changes: Any) -> bytes:
    return json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}}, **changes}).encode()


def vocabularies() -> Iterator[Case]:
    def vocab(tokens: Any, **model: Any) -> bytes:
        return tokenizer(model={"type": "WordLevel", "vocab": tokens, **model})

    token = {"id": 2, "content": "c", "special": True}
    for name, content in {
        "fuzzed": (FILES / "tokenizer.json").read_bytes(),
        "high": vocab({"a": 0, "b": 999_999}),
        "huge": vocab({"a": 0, "b": 10**30}),
        "negative": vocab({"a": 0, "b": -1}),
        "same": vocab({"a": 0, "b": 0}),
        "half": vocab({"a": 0, "b": 0.5}),
        "bool": vocab({"a": 0, "b": True}),
        "nan": vocab({"a": 0, "b": float("nan")}),
        "surrogate": vocab({"a": 0, "\ud800": 1}),
        "number": vocab(5),
        "scores": tokenizer(model={"type": "Unigram", "vocab": [["a", 0.0, 1], ["b"]]}),
        "list-tokens": tokenizer(model={"type": "Unigram", "vocab": [[["a"], 0.0]]}),
        "number-tokens": tokenizer(model={"type": "Unigram", "vocab": [[5, 0.0], [6, 0.0]]}),
        "none-tokens": tokenizer(model={"type": "Unigram", "vocab": [[None, 0.0]]}),
        "unknown": tokenizer(model={"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}),
        "added-number": tokenizer(added_tokens=5),
        "added-text": tokenizer(added_tokens=["c"]),
        "added-id": tokenizer(added_tokens=[{**token, "id": 10**20}]),
        "added-null": tokenizer(added_tokens=[{**token, "id": None}]),
        "padding": tokenizer(padding={"pad_id": 9, "pad_token": "z"}),
        "padding-list": tokenizer(padding={"pad_id": [], "pad_token": {}}),
        "prefix": vocab({"a": 0}, type="WordPiece", continuing_subword_prefix=[5]),
        "empty": tokenizer(model={"type": "WordLevel", "vocab": {}}),
        "deep": b'{"model": ' * 50_000,
        "digits": b'{"a": ' + b"9" * 100_000 + b"}",
        "word-index-gap": b'{"a": 0, "b": 7}',
        "word-index-lists": b'{"a": [0]}',
        "keras": json.dumps({"config": {"word_index": "[]", "num_words": "x", "oov_token": 1}}).encode(),
        "keras-deep": json.dumps(
            {"config": {"word_index": "[" * 90_000, "num_words": None, "oov_token": None}}
        ).encode(),
    }.items():
        yield Case(f"tokens-{name}.json", content, "vocabulary")
    yield Case("words.gz", gzip.compress(b"a\nb\n"), "vocabulary")
    yield Case("words.h5", b"\x89HDF\r\n\x1a\n", "vocabulary")
    yield Case("blank-lines.txt", b"a\n" + b"\n" * 1_000_000 + b"b\n", "vocabulary")
    yield Case("duplicates.txt", b"a\n" * 1_000_000, "vocabulary")
    yield Case("long-token.txt", b"a\n" + b"b" * 20_000 + b"\n", "vocabulary")
    yield Case("token-list.json", b'["a", "b"]', "vocabulary")
