"""Arguments of the public functions: each source, vocabulary and path is taken in every form, with the same options."""

import dataclasses
import inspect
import io
from pathlib import Path

import keras
import numpy as np
import pytest

import splitembed
from splitembed import SplitTable, build_split, read_vectors, read_vocabulary, report_coverage, save_frozen
from splitembed.coverage import CoverageReport, RankPoint
from splitembed.errors import SplitError, VectorFormatError
from splitembed.gradients import PartialEmbedding
from splitembed.initializers import SubwordVectors
from splitembed.vectors import VectorSource, iter_vectors

TEXT = b"the 1 2\nof 3 4\n"
WORDS = b"the\nof\n"
OPTIONS = {field.name: field.default for field in dataclasses.fields(VectorSource)[1:]}

# Functions under the names that `public_signatures` finds, called with a source and options.
VECTORS = {
    "read_vectors": read_vectors,
    "vectors.iter_vectors": lambda source, **options: list(iter_vectors(source, **options)),
    "save_frozen": lambda source, **options: save_frozen("saved.h5", source, **options),
    "report_coverage": lambda source, **options: report_coverage(["the"], source, **options),
    "build_split": lambda source, **options: build_split(["the"], source, **options),
    "SplitTable.grow": lambda source, **options: split().grow(["of"], source, **options),
    "SplitTable.with_frozen": lambda source, **options: split().with_frozen(source, **options),
}
# Of these, `source` is no source of vectors.
OTHER_SOURCES = {
    "read_vocabulary",
    # A split, a layer or a table.
    "export_vectors",
    # These hold what was read, or the request to read it.
    "vectors.VectorSource",
    "vectors.WordVectors",
}
VOCABULARIES = {
    "read_vocabulary": read_vocabulary,
    "read_vectors": lambda vocabulary: read_vectors({"the": [1.0, 2.0]}, vocabulary),
    "vectors.iter_vectors": lambda vocabulary: list(iter_vectors({"the": [1.0, 2.0]}, vocabulary)),
    "build_split": lambda vocabulary: build_split(vocabulary, {"the": [1.0, 2.0]}),
    "report_coverage": lambda vocabulary: report_coverage(vocabulary, {"the": [1.0, 2.0]}),
    "SplitTable.with_frozen": lambda vocabulary: build_split(["the", "of"], {"the": [1.0]}).with_frozen(
        {"the": [2.0]}, vocabulary=vocabulary
    ),
    "split_embedding": lambda vocabulary: split_model(vocabulary),
    "SplitTable": lambda vocabulary: SplitTable([[1.0]], [0, 0], [], vocabulary=vocabulary),
    "SplitTable.from_arrays": lambda vocabulary: SplitTable.from_arrays([[1.0]], [0, 0], [], vocabulary=vocabulary),
    "SplitTable.from_matrix": lambda vocabulary: SplitTable.from_matrix([[1.0], [2.0]], ["of"], vocabulary=vocabulary),
    "gradients.PartialEmbedding": lambda vocabulary: PartialEmbedding(2, [[1.0], [2.0]], ["of"], vocabulary=vocabulary),
}
OTHER_VOCABULARIES = {
    # These take what `read_vocabulary` returned.
    "vocabulary.align_counts",
    "coverage.measure_coverage",
}


class Model:
    def save(self, path):
        path.write_bytes(b"")


def save_nothing(path):
    splitembed.save_model(Model(), f"{path}.keras")


# What a function adds to the name that it is given.
SUFFIXES = {"coverage.CoverageReport.plot": ".png", "save_model": ".keras"}
PATHS = {
    "save_frozen": lambda path: save_frozen(path, {"the": [1.0, 2.0]}),
    "save_trainable": lambda path: splitembed.save_trainable(path, split()),
    "load_trainable": lambda path: splitembed.load_trainable(path, None),
    "export_vectors": lambda path: splitembed.export_vectors(path, split()),
    "save_model": save_nothing,
    "SplitTable.open": SplitTable.open,
    "SplitTable.save": lambda path: split().save(path),
    "SplitTable.save_frozen": lambda path: split().save_frozen(path),
    "SplitTable.save_trainable": lambda path: split().save_trainable(path),
    "initializers.SubwordVectors": SubwordVectors,
    "coverage.CoverageReport.to_json": lambda path: report().to_json(path),
    "coverage.CoverageReport.plot": lambda path: report().plot(f"{path}.png"),
}
READ_PATHS = {"load_trainable", "SplitTable.open", "initializers.SubwordVectors"}


def split():
    return SplitTable.from_matrix([[1.0, 2.0]], [], vocabulary=["the"])


def split_model(vocabulary):
    model = keras.Sequential([keras.Input((None,), dtype="int32"), keras.layers.Embedding(2, 1)])
    return splitembed.split_embedding(model, ["of"], vocabulary=vocabulary)


def report():
    return CoverageReport(1, 1, 1, 1, (), curve=(RankPoint(1, 1, 1, 1),))


def public_signatures():
    """Return the signature of every public function, class and method, by the first of its names."""
    found = {}
    for prefix, holder in [("", splitembed), ("coverage.", splitembed.coverage)]:
        for name in holder.__all__:
            value = getattr(holder, name)
            if inspect.ismodule(value):
                add_members(found, f"{name}.", {each: getattr(value, each) for each in getattr(value, "__all__", ())})
            else:
                add_members(found, prefix, {name: value})
    return found


def add_members(found, prefix, members):
    for name, value in members.items():
        if value in {each for each, _ in found.values()}:
            continue
        if inspect.isclass(value):
            found[prefix + name] = value, inspect.signature(value)
            methods = {each: getattr(value, each) for each in vars(value) if not each.startswith("_")}
            functions = {each: method for each, method in methods.items() if inspect.isroutine(method)}
            add_members(found, f"{prefix}{name}.", functions)
        elif callable(value):
            found[prefix + name] = value, inspect.signature(value)


def names_with(*parameters):
    return {
        name for name, (_, signature) in public_signatures().items() if set(parameters) & signature.parameters.keys()
    }


def forms(content, folder, monkeypatch):
    """Yield the same content as a path, a path below the home folder, an open file and standard input."""
    (folder / "content.txt").write_bytes(content)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    yield str(folder / "content.txt")
    yield "~/content.txt"
    yield Path("~/content.txt")
    yield io.BytesIO(content)
    with open(folder / "content.txt", "rb") as file:
        yield file
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    yield "-"


def test_every_function_that_takes_vectors_is_tried_here():
    assert names_with("source") == VECTORS.keys() | OTHER_SOURCES


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_in_every_form_with_every_option(name, tmp_path, monkeypatch):
    read = VECTORS[name]
    for source in forms(TEXT, tmp_path, monkeypatch):
        read(source, **{**OPTIONS, "dim": 2, "format": "text"})
    with pytest.raises(VectorFormatError, match="because of format='fasttext-bin'"):
        read("content.txt", format="fasttext-bin")
    with pytest.raises(TypeError, match="unexpected keyword argument 'dims'"):
        read("content.txt", dims=2)
    with pytest.raises(SplitError, match="download the file first"):
        read("s3://bucket/glove.txt")


def test_every_function_that_takes_a_vocabulary_is_tried_here():
    assert names_with("vocabulary") | {"read_vocabulary"} == VOCABULARIES.keys() | OTHER_VOCABULARIES


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_vocabulary_in_every_form(name, tmp_path, monkeypatch):
    read = VOCABULARIES[name]
    for vocabulary in forms(WORDS, tmp_path, monkeypatch):
        read(vocabulary)
    with pytest.raises(SplitError, match="download the file first"):
        read("https://host/words.txt")
    with open("content.txt") as file, pytest.raises(SplitError, match="opened as text; expected bytes"):
        read(file)


def test_every_function_that_takes_a_path_is_tried_here():
    assert names_with("path", "directory") == PATHS.keys()


@pytest.mark.parametrize("name", PATHS)
def test_a_path_below_the_home_folder_and_one_of_remote_storage(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SplitError, match="found an address of the scheme 'gs'"):
        PATHS[name]("gs://bucket/x")
    if name in READ_PATHS:
        with pytest.raises(FileNotFoundError, match=str(tmp_path / "x")):
            PATHS[name]("~/x")
        return
    PATHS[name]("~/x")
    assert [path.name for path in tmp_path.iterdir()] == ["x" + SUFFIXES.get(name, "")]


def test_options_without_vectors_are_refused():
    with pytest.raises(SplitError, match="`dim` is an option for reading `source`"):
        split().grow(["of"], dim=2)


def test_a_function_without_the_options_is_found():
    found = {}
    add_members(found, "", {"read": lambda source: source, "np": np})
    assert list(found) == ["read"] and "source" in found["read"][1].parameters
