"""The words of a matrix: lists, arrays, files and vocabularies; word i has row i of the list."""

import bz2

import numpy as np
import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError, VocabularyError
from splitembed.vectors import read_vectors
from splitembed.vectors.pairs.word_lists import PackedWords, as_word_list, spell_integers
from splitembed.vocabulary import read_vocabulary
from tests.helpers.odd_words import ODD_WORDS
from tests.helpers.reference import table_of

MATRIX = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def write(tmp_path, content):
    (tmp_path / "words.txt").write_bytes(content)
    return tmp_path / "words.txt"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"the\nof\nand\n", ["the", "of", "and"]),
        (b"the\r\nof\r\nand", ["the", "of", "and"]),
        (b"\xef\xbb\xbf the\n\xe2\x80\xa8\na\rb\n", [" the", "\u2028", "a\rb"]),
        (b"a b\t\n\xff\n\x00\n", ["a b\t", "\udcff", "\0"]),
        (bz2.compress(b"the\nof\nand\n"), ["the", "of", "and"]),
    ],
)
@pytest.mark.filterwarnings("ignore::splitembed.errors.VectorFileWarning")
def test_a_file_of_one_word_a_line_and_nothing_stripped(tmp_path, content, words):
    path = write(tmp_path, content)
    assert read_vectors((path, MATRIX)).words == words
    assert read_vectors((str(path), MATRIX), [words[1]]).vectors.tolist() == [[3, 4]]


def test_words_are_those_of_the_same_vocabulary_file(tmp_path):
    # Vocabulary files refuse longer tokens.
    words = [word for word in ODD_WORDS if 0 < len(word) <= 10_000 and not {"\n", "\r"} & set(word)]
    path = write(tmp_path, "\n".join(words).encode("utf-8", "surrogateescape"))
    listed = as_word_list(path)
    assert listed.words[:] == list(read_vocabulary(path).tokens) == words
    assert listed.num_rows == len(words) == len(listed.words)


def test_a_blank_first_line_is_padding_whose_row_is_left_out(tmp_path):
    vectors = read_vectors((write(tmp_path, b"\nthe\nof\n"), MATRIX))
    assert table_of(vectors) == {"the": [3, 4], "of": [5, 6]} and vectors.row_of is None


def test_C5_blank_lines_are_refused_and_duplicates_give_a_warning(tmp_path):
    with pytest.raises(VectorFormatError, match=r"words\.txt, line 2: found a blank line"):
        read_vectors((write(tmp_path, b"a\n\nb\n"), MATRIX))
    with pytest.warns(VectorFileWarning, match=r"duplicate words.*: 1 \(first: row 2\)"):
        vectors = read_vectors((write(tmp_path, b"a\nb\na\n"), MATRIX))
    assert table_of(vectors) == {"a": [1, 2], "b": [3, 4]}


def test_no_row_is_shifted_where_counts_differ(tmp_path):
    with pytest.raises(VectorFormatError, match=r"found 2 words and rows of shape \(3, 2\)"):
        read_vectors((write(tmp_path, b"the\nof\n"), MATRIX))


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\x80\x04pickle", "found a pickle"), (b"\x89HDF\r\n\x1a\n", "HDF5"), (b"PAR1\x00\x00", "a Parquet file")],
)
def test_a_file_of_another_format_is_named(tmp_path, content, message):
    with pytest.raises(VectorFormatError, match=message):
        read_vectors((write(tmp_path, content), MATRIX))


def test_a_missing_file_is_named_with_its_purpose():
    with pytest.raises(FileNotFoundError, match="No such list of words.* a path of one word a line") as caught:
        read_vectors(("ab", MATRIX))
    assert caught.value.filename == "ab" and caught.value.errno == 2


@pytest.mark.parametrize("dtype", ["U3", "S3", "int64", "uint8"])
def test_a_npy_file_of_words(tmp_path, dtype):
    words = np.array(["1", "22", "3"]).astype(dtype)
    np.save(tmp_path / "words.npy", words)
    assert table_of(read_vectors((tmp_path / "words.npy", MATRIX))) == {"1": [1, 2], "22": [3, 4], "3": [5, 6]}


def test_a_npy_file_of_anything_else(tmp_path):
    np.save(tmp_path / "words.npy", MATRIX)
    with pytest.raises(VectorFormatError, match=r"found shape \(3, 2\) and dtype float32; expected words"):
        read_vectors((tmp_path / "words.npy", MATRIX))


def test_integers_stand_for_their_digits():
    for words in ([7, 12, -1], (7, 12, -1), np.array([7, 12, -1]), np.array([7, 12, -1], np.int8), range(7, 10)):
        vectors = read_vectors((words, MATRIX), ["7", "12", "7.0"])
        assert vectors.words[0] == "7" and vectors.vectors[0].tolist() == [1, 2]
    assert table_of(read_vectors({3: [1, 2], 10**20: [3, 4]})) == {"3": [1, 2], "1" + "0" * 20: [3, 4]}
    assert spell_integers([np.int32(5), 6]) == ["5", "6"]


@pytest.mark.parametrize("words", [[7, "a", 8], [True, False, True], [1.0, 2.0, 3.0], [None, 7, 8]])
def test_mixed_and_other_types_are_refused(words):
    with pytest.raises(VectorFormatError, match=r"row \d: found .* expected a str"):
        read_vectors((words, MATRIX))


@pytest.mark.parametrize("words", [b"abc", 7, None])
def test_anything_but_words_is_refused(words):
    with pytest.raises(VectorFormatError, match=r"The words of \(words, matrix\) must be"):
        read_vectors((words, MATRIX))


def test_C1_a_word_index_names_its_rows():
    assert table_of(read_vectors(({"red": 1, "sky": 2}, MATRIX))) == {"red": [3, 4], "sky": [5, 6]}
    assert table_of(read_vectors(({"b": 1, "a": 0, "c": 2}, MATRIX))) == {"a": [1, 2], "b": [3, 4], "c": [5, 6]}
    with pytest.raises(VectorFormatError, match=r"found 3 words and rows of shape \(2, 2\)"):
        read_vectors(({"red": 1, "sky": 2}, MATRIX[:2]))
    with pytest.raises(VocabularyError, match="no token with id 2"):
        read_vectors(({"red": 1, "sky": 3}, MATRIX))


def test_C3_reserved_ids_of_a_vocabulary_are_no_words():
    vocabulary = read_vocabulary(["", "[UNK]", "b"])
    assert table_of(read_vectors((vocabulary, MATRIX))) == {"b": [5, 6]}
    assert table_of(read_vectors((vocabulary, MATRIX), ["[UNK]", "b"])) == {"b": [5, 6]}


def test_a_list_has_no_reserved_ids_for_files_of_vectors_hold_such_words():
    assert read_vectors((["", "[UNK]", "b"], MATRIX)).words == ["", "[UNK]", "b"]


def test_words_of_one_piece_of_bytes():
    words = PackedWords(b"a\nbc\n\n", np.array([0, 2, 5]), np.array([1, 4, 5]))
    assert len(words) == 3 and words[:] == ["a", "bc", ""] and words[1:2] == ["bc"] and words[5:] == []


def test_tokenizers_and_dictionaries_of_other_libraries(tmp_path):
    tokenizers, corpora = pytest.importorskip("tokenizers"), pytest.importorskip("gensim.corpora")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "the": 1, "##ing": 2}, unk_token="[UNK]"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for words in (tokenizer, tmp_path / "tokenizer.json"):
        vectors = read_vectors((words, MATRIX))
        assert table_of(vectors) == {"the": [3, 4]} and vectors.row_of is None
    dictionary = corpora.Dictionary([["the", "of", "and"]])
    expected = {token: MATRIX[token_id].tolist() for token, token_id in dictionary.token2id.items()}
    assert table_of(read_vectors((dictionary, MATRIX))) == expected
    (tmp_path / "word_index.json").write_text('{"red": 1, "sky": 2}')
    assert table_of(read_vectors((tmp_path / "word_index.json", MATRIX))) == {"red": [3, 4], "sky": [5, 6]}


def test_words_may_begin_with_a_brace(tmp_path):
    assert read_vectors((write(tmp_path, b'{\n{a}\n"\n'), MATRIX)).words == ["{", "{a}", '"']


@pytest.mark.parametrize("kind", [set, frozenset])
def test_words_without_an_order_are_refused(kind):
    with pytest.raises(VectorFormatError, match="must be strings in the order of the rows"):
        read_vectors((kind(["the", "of", "and"]), MATRIX))
