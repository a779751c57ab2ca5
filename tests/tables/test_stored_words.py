"""Words as datasets of our files: read on first use, compared with their fingerprint, refused after a replacement."""

import h5py
import numpy as np
import pytest

from splitembed.errors import TableFormatError, VocabularyError
from splitembed.tables.atomic_files import publishing, reading
from splitembed.tables.fields import FROZEN_FORMAT, store_text
from splitembed.tables.stored_words import open_word_rows, open_words, store_word_rows, store_words
from tests.helpers.odd_words import ODD_WORDS


def write(path, words, row_of=None):
    with publishing(path, FROZEN_FORMAT) as file:
        store_words(file, "words", words)
        if row_of is not None:
            store_word_rows(file, np.array(row_of))


def open_and_check(path, num_words, verify=False):
    with reading(path, FROZEN_FORMAT) as file:
        return open_words(file, "words", num_words, verify)


def test_any_words_are_read_as_they_were_written(tmp_path):
    write(tmp_path / "t.h5", ODD_WORDS)
    words = open_and_check(tmp_path / "t.h5", len(ODD_WORDS), verify=True)
    assert "decoded" not in repr(words) and list(words) == ODD_WORDS


def test_no_words_write_no_group(tmp_path):
    write(tmp_path / "t.h5", None)
    with reading(tmp_path / "t.h5", FROZEN_FORMAT) as file:
        assert "words" not in file and open_words(file, "words", 5, verify=True) is None
        assert open_word_rows(file, 5, verify=True) is None


def test_words_of_a_replaced_file_are_refused(tmp_path):
    write(tmp_path / "t.h5", ["a", "b"])
    words = open_and_check(tmp_path / "t.h5", 2)
    write(tmp_path / "t.h5", ["a", "c"])
    with pytest.raises(TableFormatError, match="was replaced after it had been opened: the fingerprint of `words`"):
        list(words)


def test_the_number_of_words_and_their_offsets_are_checked_when_the_file_is_opened(tmp_path):
    write(tmp_path / "t.h5", ["a", "b"])
    with pytest.raises(TableFormatError, match="`words/offsets` has length 3; expected 4"):
        open_and_check(tmp_path / "t.h5", 3, verify=False)
    with h5py.File(tmp_path / "t.h5", "r+") as file:
        file["words/offsets"][:] = [0, 2, 1]
    with pytest.raises((TableFormatError, VocabularyError), match="must not decrease"):
        open_and_check(tmp_path / "t.h5", 2, verify=False)


def test_changed_words_are_found_by_verify_alone(tmp_path):
    write(tmp_path / "t.h5", ["a", "b"])
    with h5py.File(tmp_path / "t.h5", "r+") as file:
        file["words/utf8"][:] = list(b"ac")
    assert list(open_and_check(tmp_path / "t.h5", 2).packed()[0]) == list(b"ac")
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


def test_changed_rows_of_words_are_found_by_verify(tmp_path):
    write(tmp_path / "t.h5", ["a", "b"], row_of=[0, 1])
    with h5py.File(tmp_path / "t.h5", "r+") as file:
        store_text(file, word_rows_fingerprint="sha256:other")
    message = "its attribute `word_rows_fingerprint`"
    with pytest.raises(TableFormatError, match=message), reading(tmp_path / "t.h5", FROZEN_FORMAT) as file:
        open_word_rows(file, 2, verify=True)
