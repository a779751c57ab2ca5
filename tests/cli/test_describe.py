"""Descriptions of tables, line by line."""

import json
from pathlib import Path

import pytest

from splitembed import build_split
from splitembed.cli.describe import as_text, describe, is_trainable
from splitembed.errors import SplitEmbedError

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def directory(tmp_path):
    split = build_split(["", "[UNK]", "the", "zzz"], {"the": [1.0, 1.5]}, seed=0)
    split.save(tmp_path / "tables")
    return tmp_path / "tables"


def labels(text):
    return [line.split("  ")[0] for line in text.splitlines()]


def test_a_frozen_table(directory):
    text = as_text(describe(directory / "frozen.h5"))
    assert labels(text) == ["frozen table", "words", "source", "fingerprint"]
    assert "2 rows x 2, float32, mapped" in text


def test_a_trainable_table(directory):
    text = as_text(describe(directory / "trainable.h5"))
    assert labels(text) == ["trainable table", "tokens", "vocabulary", "frozen table", ""]
    assert "2 rows x 2" in text and "4, 0 of them share another token's row; padding 0" in text


def test_a_directory_has_the_split_and_both_tables(directory):
    text = as_text(describe(directory))
    assert text.splitlines()[0] == "SplitTable(num_tokens=4, dim=2, num_frozen=2, num_trainable=2)"
    parts = [as_text(describe(directory / name)) for name in ("trainable.h5", "frozen.h5")]
    assert text.split("\n", 1)[1] == "\n".join(parts)


def test_a_directory_with_a_frozen_table_alone(directory):
    (directory / "trainable.h5").unlink()
    assert describe(directory) == describe(directory / "frozen.h5")


def test_both_tables_of_an_untied_layer():
    text = as_text(describe(GOLDEN / "trainable-untied-v1.h5"))
    assert text.count("trainable table  ") == 2 and "\n\nuntied logits\n" in text


def test_a_trainable_table_is_recognized_by_its_format(directory):
    assert is_trainable(directory / "trainable.h5")
    assert not is_trainable(directory / "frozen.h5")
    (directory / "text.txt").write_text("the 1 2\n")
    assert not is_trainable(directory / "text.txt")


def test_a_file_without_a_table_is_refused(directory):
    (directory / "text.txt").write_text("the 1 2\n")
    with pytest.raises(SplitEmbedError, match="text.txt"):
        describe(directory / "text.txt")


def test_a_description_is_plain_data(directory):
    description = json.loads(json.dumps(describe(directory)))
    assert description["split"] == {"num_tokens": 4, "dim": 2, "num_frozen": 2, "num_trainable": 2}
    assert description["trainable"]["frozen_fingerprint"] == description["frozen"]["fingerprint"]
    assert description["frozen"]["path"] == str(directory / "frozen.h5")
    assert "logits" in describe(GOLDEN / "trainable-untied-v1.h5")
