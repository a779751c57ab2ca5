"""The files of TensorBoard's Projector: every token has a line in both files, and its numbers are the row's bits."""

import csv

import numpy as np
import pytest

from splitembed import SplitEmbedding, SplitTable, export_vectors
from splitembed.errors import SplitError
from splitembed.models.projector import write_projector
from tests.helpers.bits import same_bits
from tests.helpers.models import WORDS, make_split


def read(folder) -> tuple[list[list[str]], np.ndarray]:
    """Read the files as the Projector does: by lines and tabs, the first line of the metadata as names."""
    numbers = [line.split("\t") for line in (folder / "vectors.tsv").read_text().split("\n")[:-1]]
    with open(folder / "metadata.tsv", encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)), np.array(numbers, np.float32)


def test_each_token_has_its_row_and_kind(tmp_path):
    before = make_split()
    rows = before.trainable.copy()
    rows[1] += 1
    after = before.with_trainable(rows)
    assert export_vectors(tmp_path / "p", after, format="projector", before=before) == []
    metadata, vectors = read(tmp_path / "p")
    kinds = ["frozen", "trainable", "frozen", "frozen", "moved", "frozen"]
    assert metadata == [["token", "id", "rows"], *map(list, zip(WORDS, "012345", kinds, strict=True))]
    same_bits(vectors, after.combine())
    config = (tmp_path / "p" / "projector_config.pbtxt").read_text()
    assert 'tensor_path: "vectors.tsv"' in config and 'metadata_path: "metadata.tsv"' in config


def test_a_layer_without_a_vocabulary_is_written_with_its_ids(tmp_path):
    layer = SplitEmbedding(SplitTable.from_matrix(np.eye(3), [1]))
    write_projector(tmp_path, layer.to_split())
    assert read(tmp_path)[0][1:] == [["0", "0", "frozen"], ["1", "1", "trainable"], ["2", "2", "frozen"]]


def test_tokens_with_separators_take_one_line(tmp_path):
    tokens = ["a\tb", "c\nd", "e\r\nf", "g\u2028h", "\ud800", '"', ""]
    write_projector(tmp_path, SplitTable.from_matrix(np.ones((7, 2)), [], vocabulary=tokens))
    metadata, vectors = read(tmp_path)
    assert [row[0] for row in metadata[1:]] == ["a b", "c d", "e  f", "g h", "?", '"', ""]
    assert vectors.shape == (7, 2)


def test_blocks_join(tmp_path, monkeypatch):
    monkeypatch.setattr("splitembed.models.projector.NUM_BLOCK_NUMBERS", 6)
    split = make_split()
    write_projector(tmp_path, split)
    same_bits(read(tmp_path)[1], split.combine())


def test_a_row_that_is_not_finite_is_refused(tmp_path):
    with pytest.raises(SplitError, match="row of id 1 is not finite"):
        write_projector(tmp_path, SplitTable.from_matrix([[0.0], [np.nan]], []))
    assert list(tmp_path.iterdir()) == []


def test_before_needs_the_projector_format(tmp_path):
    with pytest.raises(SplitError, match='`before` is for format="projector"'):
        export_vectors(tmp_path / "v.txt", make_split(), before=make_split())
