"""Packed words: any string is restored, and a string that could not be restored is refused."""

import pickle
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import VocabularyError
from splitembed.words import Words, check_offsets, decode_word, encode_word, first_indices, pack_words, unpack_words
from tests.helpers.odd_words import ODD_WORDS, any_word, word_lists


@given(any_word)
def test_a_word_is_decoded_as_it_was_encoded(word):
    assert decode_word(encode_word(word)) == word


@given(st.binary(max_size=12))
def test_any_bytes_are_encoded_as_they_were_decoded(raw):
    assert encode_word(decode_word(raw)) == raw


@given(word_lists)
def test_unpack_is_the_inverse_of_pack(words):
    utf8, offsets = pack_words(words)
    assert (utf8.dtype, offsets.dtype, offsets.shape) == (np.uint8, np.uint64, (len(words) + 1,))
    assert unpack_words(utf8, offsets) == words


@pytest.mark.parametrize("words", [["the", "\udcff", "é"], ["the", "of"], [np.str_("a"), "\udcff"], []])
def test_any_iterable_of_words_is_packed(words):
    utf8, offsets = pack_words(word for word in words)
    assert unpack_words(utf8, offsets) == words


def test_P1_odd_words_are_unpacked_exactly():
    assert unpack_words(*pack_words(ODD_WORDS)) == ODD_WORDS


def test_words_cut_inside_a_character_are_not_joined():
    # Together they would be one valid character.
    words = [decode_word(b"\xd0"), decode_word(b"\xbf")]
    assert unpack_words(*pack_words(words)) == words != ["п"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a\ud800", r"lone surrogate '\\ud800' at character 1"),
        ("\udc00", r"lone surrogate '\\udc00' at character 0"),
        ("\udcd0\udcbf", "would be read back as 'п'"),
        (b"the", "must be str. Received: b'the' of type bytes"),
        (7, "must be str. Received: 7 of type int"),
        (None, "of type NoneType"),
    ],
)
def test_a_word_that_cannot_be_restored_is_refused(word, message):
    with pytest.raises(VocabularyError, match=message):
        encode_word(word)
    with pytest.raises(VocabularyError, match=message):
        pack_words(["fine", word])


@pytest.mark.parametrize("words", ["the", b"the"])
def test_one_string_is_not_a_list_of_words(words):
    with pytest.raises(VocabularyError, match="a sequence of strings. Received:"):
        pack_words(words)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([], r"must start with 0. Received: \[\]"),
        ([1, 5], r"must start with 0. Received: \[1\]"),
        ([0, 4, 2, 5], "word 1 from 4 to 2"),
        ([0, 2], "must end at the 5 bytes. Received: 2"),
        ([0, 9], "must end at the 5 bytes. Received: 9"),
        ([0, 2**64 - 1, 5], "word 1 from 18446744073709551615 to 5"),
    ],
)
def test_invalid_offsets_are_refused(offsets, message):
    offsets = np.array(offsets, np.uint64)
    with pytest.raises(VocabularyError, match=message):
        check_offsets(offsets, 5)
    with pytest.raises(VocabularyError, match=message):
        unpack_words(np.zeros(5, np.uint8), offsets)


def loader_of(words):
    """A loader that counts its calls."""
    calls = []

    def load():
        calls.append(1)
        return pack_words(words)

    return load, calls


def test_words_load_once_and_only_when_used():
    load, calls = loader_of(["the", "of", "and"])
    words = Words(3, load)
    assert (len(words), calls, repr(words)) == (3, [], "<Words: 3>")
    assert words[0] == "the"
    assert (words[-1], words[1:], list(words), "of" in words, words.index("and")) == (
        "and", ["of", "and"], ["the", "of", "and"], True, 2
    )  # fmt: skip
    assert (calls, repr(words)) == ([1], "<Words: 3, decoded>")


def test_words_are_packed_again_without_decoding():
    words = Words(3, loader_of(["the", "of", "and"])[0])
    assert [array.tolist() for array in pack_words(words)] == [a.tolist() for a in pack_words(["the", "of", "and"])]
    assert repr(words) == "<Words: 3>"


@given(word_lists)
def test_words_equal_their_list(words):
    lazy = Words.from_arrays(*pack_words(words))
    assert lazy == words == Words.from_list(words)
    assert lazy == tuple(words)
    assert pickle.loads(pickle.dumps(lazy)) == lazy
    assert lazy != [*words, "more"]
    assert lazy != 7


def test_words_differ_from_other_words_of_the_same_number():
    assert Words.from_list(["a", "b"]) != ["a", "c"]


def test_words_copy_their_list():
    mine = ["a", "b"]
    words = Words.from_list(mine)
    mine[0] = "changed"
    assert list(words) == ["a", "b"]


def test_another_number_of_loaded_words_is_refused():
    with pytest.raises(VocabularyError, match="returned 3 words; expected 2"):
        list(Words(2, loader_of(["a", "b", "c"])[0]))


def test_words_are_decoded_by_several_threads_at_once():
    expected = [f"word {number}" for number in range(2_000)]

    def load():
        # Gives the threads time to overlap.
        time.sleep(0.01)
        return pack_words(expected)

    words, found = Words(len(expected), load), []
    threads = [threading.Thread(target=lambda: found.append(words[1_999])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["word 1999"] * 4


def test_a_million_words_take_seconds():
    words = [f"wörd{number}" for number in range(1_000_000)]
    start = time.perf_counter()
    assert unpack_words(*pack_words(words)) == words
    # About 1.3 s on two idle cores.
    assert time.perf_counter() - start < 15


def test_the_first_of_duplicate_words_counts():
    assert list(first_indices(Words.from_list(["b", "a", "b"])).items()) == [("b", 0), ("a", 1)]
    assert first_indices(["b", "a", "b"], {"b", "c"}) == {"b": 0}
