"""NumPy's files: every layout is mapped and equals NumPy's own loading; damaged files and pickles are refused."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from splitembed.vectors.pairs.npy import is_npz, list_npz, map_npy
from tests.helpers.reference import table_of

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
LAYOUTS = {
    "C": MATRIX,
    "Fortran": np.asfortranarray(MATRIX),
    "big-endian": MATRIX.astype(">f4"),
    "float64": MATRIX.astype(np.float64),
    "float16": MATRIX.astype(np.float16),
    "integers": MATRIX.astype(np.int16),
    "words": np.array(["the", "é", ""]),
    "bytes": np.array([b"the", b"of"]),
    "empty": MATRIX[:0],
    "scalar": np.float32(7),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_layout_is_as_numpy_loads_it(tmp_path, name, save):
    array = LAYOUTS[name]
    np.save(tmp_path / "a.npy", array)
    mapped = map_npy(tmp_path / "a.npy")
    assert np.array_equal(mapped, array) and mapped.dtype == np.load(tmp_path / "a.npy").dtype
    save(tmp_path / "a.npz", first=np.arange(7), array=array)
    member = list_npz(tmp_path / "a.npz")[1]
    assert member.name == "array" and (member.shape, member.dtype) == (array.shape, mapped.dtype)
    assert np.array_equal(member.map(), array)


@given(arrays(np.float64, array_shapes(max_dims=2, min_side=0, max_side=5)), st.booleans(), st.booleans())
def test_any_array(tmp_path_factory, array, is_fortran, is_packed):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    array = np.asfortranarray(array) if is_fortran else array
    (np.savez_compressed if is_packed else np.savez)(path, array)
    assert np.array_equal(list_npz(path)[0].map(), array, equal_nan=True)


def test_arrays_are_mapped_and_not_read(tmp_path):
    np.save(tmp_path / "a.npy", MATRIX)
    np.savez(tmp_path / "a.npz", MATRIX)
    np.savez_compressed(tmp_path / "b.npz", MATRIX)
    arrays = map_npy(tmp_path / "a.npy"), *(list_npz(tmp_path / name)[0].map() for name in ("a.npz", "b.npz"))
    assert all(isinstance(array, np.memmap) and not array.flags.writeable for array in arrays)


def test_python_objects_are_only_loaded_with_allow_pickle(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("a pickle was loaded",)

    np.save(tmp_path / "a.npy", np.array([Bomb()]), allow_pickle=True)
    np.savez(tmp_path / "a.npz", np.array([Bomb()]))
    with pytest.raises(
        VectorFormatError, match=r"a\.npy: found an array of Python objects, a pickle.*allow_pickle=True"
    ):
        map_npy(tmp_path / "a.npy")
    with pytest.raises(VectorFormatError, match=r"a\.npz, 'arr_0': found an array of Python objects"):
        list_npz(tmp_path / "a.npz")[0].map()
    words = np.array(["the", "of"], object)
    np.save(tmp_path / "b.npy", words, allow_pickle=True)
    np.savez(tmp_path / "b.npz", words)
    assert map_npy(tmp_path / "b.npy", allow_pickle=True).tolist() == ["the", "of"]
    assert list_npz(tmp_path / "b.npz")[0].map(allow_pickle=True).tolist() == ["the", "of"]


@pytest.mark.parametrize("content", [{"the": [1, 2], "of": [3, 4]}, (["the", "of"], [[1, 2], [3, 4]])])
def test_a_dict_or_pair_in_a_npy_is_read_when_allowed(tmp_path, content):
    path = tmp_path / "d.npy"
    array = np.empty(2, object)
    array[:] = content if isinstance(content, tuple) else None
    np.save(path, content if isinstance(content, dict) else array, allow_pickle=True)
    with pytest.raises(VectorFormatError, match=r"d\.npy: found an array of Python objects.*pass allow_pickle=True"):
        read_vectors(path)
    assert table_of(read_vectors(path, allow_pickle=True)) == {"the": [1, 2], "of": [3, 4]}
    # With words beside it, no option helps: the advice is the same with and without it.
    for allow_pickle in (False, True):
        with pytest.raises(
            VectorFormatError, match=r"expected the numbers of \(words, path\).*pass the path alone with"
        ):
            read_vectors((["the", "of"], path), allow_pickle=allow_pickle)


@pytest.mark.parametrize("content", [["the"], "the", None, ["a", "b", "c"]])
def test_other_objects_in_a_npy_are_not_a_source(tmp_path, content):
    np.save(tmp_path / "d.npy", np.array(content, object), allow_pickle=True)
    with pytest.raises(VectorFormatError, match=r"d\.npy: found a pickle of .*; expected a dict"):
        read_vectors(tmp_path / "d.npy", allow_pickle=True)


def test_a_matrix_of_objects_in_an_npz_leads_to_no_circle(tmp_path):
    np.savez(tmp_path / "v.npz", words=["the"], matrix=np.array([[1, 2]], object))
    options = {"datasets": ("words", "matrix")}
    with pytest.raises(VectorFormatError, match="pass allow_pickle=True"):
        read_vectors(tmp_path / "v.npz", **options)
    with pytest.raises(VectorFormatError, match=r"found dtype object; expected real numbers.*astype\(float\)"):
        read_vectors(tmp_path / "v.npz", allow_pickle=True, **options)


@pytest.mark.parametrize(
    ("name", "main_file"),
    [
        ("k.kv.vectors.npy", "k.kv"),
        ("m.model.wv.vectors.npy", "m.model"),
        ("m.model.wv.vectors_ngrams.npy", "m.model"),
        ("m.model.syn1neg.npy", "m.model"),
    ],
)
def test_an_array_that_gensim_saved_names_its_file(tmp_path, name, main_file):
    np.save(tmp_path / name, MATRIX)
    message = (
        rf"found a NumPy \.npy array, which gensim has saved beside {main_file}; .*Pass that file with allow_pickle"
    )
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(tmp_path / name)
    assert read_vectors((["a", "b", "c", "d"], tmp_path / name)).dim == 3


@pytest.mark.parametrize("length", range(0, 176, 11))
def test_a_npy_file_cut_short_anywhere(tmp_path, length):
    np.save(tmp_path / "a.npy", MATRIX)
    content = (tmp_path / "a.npy").read_bytes()
    assert length < len(content) == 176
    (tmp_path / "a.npy").write_bytes(content[:length])
    with pytest.raises(VectorFormatError, match=r"a\.npy: found data of NumPy that is damaged or cut short"):
        map_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_npz_file_cut_short_or_changed(tmp_path, save):
    save(tmp_path / "a.npz", np.random.default_rng(0).random((50, 3)))
    content = (tmp_path / "a.npz").read_bytes()
    for length in range(0, len(content), 97):
        (tmp_path / "b.npz").write_bytes(content[:length])
        with pytest.raises(VectorFormatError, match=r"b\.npz: found data of NumPy that is damaged or cut short"):
            list_npz(tmp_path / "b.npz")
    (tmp_path / "b.npz").write_bytes(content[:300] + bytes(8) + content[308:])
    if save is np.savez_compressed:
        with pytest.raises(VectorFormatError, match="damaged"):
            list_npz(tmp_path / "b.npz")[0].map()


def npy_with_shape(shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return stream.getvalue() + bytes(12)


@pytest.mark.parametrize("shape", [(1 << 40, 300), (1 << 62, 1 << 62), (1 << 32, 1 << 32), (2, 2), (2,), (4, 4)])
def test_a_header_that_promises_other_rows_never_allocates_them(tmp_path, shape):
    (tmp_path / "a.npy").write_bytes(npy_with_shape(shape))
    # Bytes after the array of a .npy file are ignored.
    if shape != (2,):
        with pytest.raises(VectorFormatError, match="damaged or cut short"):
            map_npy(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", npy_with_shape(shape))
    with pytest.raises(VectorFormatError, match=r"'a\.npy': found 12 bytes of content; expected \d+ for shape"):
        list_npz(tmp_path / "a.npz")


def test_only_archives_of_arrays_are_npz(tmp_path):
    np.savez(tmp_path / "a.npz", MATRIX)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("a.npy", b"")
        archive.writestr("glove.txt", b"the 1 2")
    with zipfile.ZipFile(tmp_path / "c.npz", "w"):
        pass
    (tmp_path / "d.npz").write_bytes(b"PK\x03\x04")
    assert [is_npz(tmp_path / f"{name}.npz") for name in "abcd"] == [True, False, False, False]


@pytest.mark.parametrize("shape", ["(2, 2", "(2, 99999999999999999999999)"], ids=["unclosed", "too large"])
def test_headers_that_python_cannot_read(tmp_path, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}".encode()
    header += b", }\n" if shape.endswith(")") else b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64))
    with pytest.raises(VectorFormatError, match="damaged or cut short"):
        map_npy(tmp_path / "a.npy")
