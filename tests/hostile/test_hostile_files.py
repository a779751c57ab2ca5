"""Crafted and fuzzed files: each reader refuses them by name, with a bound on CPU time."""

import gzip
import json
import struct
import time
from pathlib import Path

import pytest

from splitembed.errors import SplitEmbedError
from splitembed.vectors import read_vectors
from splitembed.vocabulary import read_vocabulary

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize(
    ("read", "name"),
    [(read_vectors, "member.npz"), (read_vectors, "block.gz"), (read_vocabulary, "tokenizer.json")],
)
def test_damaged_files_are_refused_by_name(read, name):
    with pytest.raises(SplitEmbedError, match=name):
        read(FILES / name)


def test_one_high_id_is_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 999_999}}}))
    with pytest.raises(SplitEmbedError, match=r"tokenizer\.json.*found 'b' with id 999999, but only 2 tokens"):
        read_vocabulary(path)


def test_ngrams_that_share_a_row_cost_linear_time(tmp_path):
    word = b"a" * 50_000
    content = b"\xba\x16\x4f\x2f" + struct.pack("<13id", 12, 1, 5, 5, 1, 5, 1, 2, 2, 1, 3, 6, 100, 1e-4)
    content += struct.pack("<3i2q", 1, 1, 0, 9, -1) + word + b"\0" + struct.pack("<qb", 9, 0)
    content += struct.pack("<?2q2f", 0, 2, 1, 0.5, 2.0) + struct.pack("<?2qf", 0, 1, 1, 0.0)
    path = tmp_path / "model.bin.gz"
    path.write_bytes(gzip.compress(content))
    before = time.process_time()
    assert read_vectors(path).matrix.tolist() == [[pytest.approx(2, abs=1e-3)]]
    assert time.process_time() - before < 3
