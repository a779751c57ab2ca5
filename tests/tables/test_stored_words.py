"""Words as arrays of our files: decoded on first use, compared with what was written."""

import numpy as np
import pytest

from splitembed.errors import TableFormatError
from splitembed.tables.fields import FROZEN_FORMAT
from splitembed.tables.stored_words import open_word_rows, open_words, store_word_rows, store_words
from splitembed.tables.table_file import reading
from splitembed.tables.write_table import publishing
from tests.helpers.odd_words import ODD_WORDS
from tests.helpers.table_heads import attribute, replace_array, rewrite_head


def write(path, words, row_of=None):
    with publishing(path, FROZEN_FORMAT, alignment=64) as writer:
        store_words(writer, "words", words)
        if row_of is not None:
            store_word_rows(writer, np.array(row_of))


def open_and_check(path, num_words, verify=False, memory_map=True):
    with reading(path, FROZEN_FORMAT, memory_map) as file:
        return open_words(file, "words", num_words, verify)


@pytest.mark.parametrize("memory_map", [True, False])
def test_any_words_are_read_as_they_were_written(tmp_path, memory_map):
    write(tmp_path / "t.h5", ODD_WORDS)
    words = open_and_check(tmp_path / "t.h5", len(ODD_WORDS), True, memory_map)
    assert "decoded" not in repr(words) and list(words) == ODD_WORDS


def test_no_words_write_no_arrays(tmp_path):
    write(tmp_path / "t.h5", None)
    with reading(tmp_path / "t.h5", FROZEN_FORMAT) as file:
        assert "words/utf8" not in file and open_words(file, "words", 5, verify=True) is None
        assert open_word_rows(file, 5, verify=True) is None


def test_the_number_of_words_and_their_offsets_are_checked_when_the_file_is_opened(tmp_path):
    write(tmp_path / "t.h5", ["a", "b"])
    with pytest.raises(TableFormatError, match="`words/offsets` has length 3; expected 4"):
        open_and_check(tmp_path / "t.h5", 3)
    replace_array(tmp_path / "t.h5", "words/offsets", np.array([0, 2, 1], np.uint64))
    with pytest.raises(TableFormatError, match="`words/offsets`: .*must not decrease"):
        open_and_check(tmp_path / "t.h5", 2)


def test_forged_words_are_found_by_verify_alone(tmp_path):
    write(tmp_path / "t.h5", ["a", "b"])
    replace_array(tmp_path / "t.h5", "words/utf8", np.frombuffer(b"ac", np.uint8))
    assert list(open_and_check(tmp_path / "t.h5", 2)) == ["a", "c"]
    with pytest.raises(TableFormatError, match="its attribute `words_fingerprint`"):
        open_and_check(tmp_path / "t.h5", 2, verify=True)


@pytest.mark.parametrize(("num_rows", "message"), [(2, None), (1, "names row 1; expected 0 to 0")])
def test_rows_of_words_must_be_rows_of_the_table(tmp_path, num_rows, message):
    write(tmp_path / "t.h5", ["a", "b", "c"], row_of=[0, 1, 0])
    with reading(tmp_path / "t.h5", FROZEN_FORMAT) as file:
        if message is None:
            assert open_word_rows(file, num_rows, verify=True).tolist() == [0, 1, 0]
        else:
            with pytest.raises(TableFormatError, match=message):
                open_word_rows(file, num_rows, verify=False)


def test_another_fingerprint_of_the_rows_of_words_is_found_by_verify(tmp_path):
    write(tmp_path / "t.h5", ["a", "b"], row_of=[0, 1])
    rewrite_head(tmp_path / "t.h5", attribute("word_rows_fingerprint", "sha256:other"))
    message = "its attribute `word_rows_fingerprint`"
    with pytest.raises(TableFormatError, match=message), reading(tmp_path / "t.h5", FROZEN_FORMAT) as file:
        open_word_rows(file, 2, verify=True)
