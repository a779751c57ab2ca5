"""Files of tokens: lines as they are, JSON by its content, and other files are refused by name."""

import errno
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import NoMatchWarning, VocabularyError
from splitembed.vocabulary import read_vocabulary
from splitembed.words import decode_word


def write(folder, content):
    path = folder / "vocabulary.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("content", [b"a\nb\n", b"a\nb", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\r\nb"])
def test_C5_line_ends_and_byte_order_mark(tmp_path, content):
    assert read_vocabulary(write(tmp_path, content)).tokens == ("a", "b")
    assert read_vocabulary(str(write(tmp_path, content)), keep_lines=True).tokens == ("a", "b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\n\nb\n", "vocabulary.txt, line 2: found a blank line"),
        (b"\na\n\nb\n", "vocabulary.txt, line 3: found a blank line"),
        (b"a\r\n\r\nb\r\n", "vocabulary.txt, line 2: found a blank line"),
        (b"a\nb\n\n", "vocabulary.txt, line 3: found a blank line"),
        (b"a\nb\na\n", "vocabulary.txt, line 3: found the token 'a' of line 1 again"),
        (b"", "vocabulary.txt: found an empty file; expected at least one token"),
        (b"\x1f\x8b\x08\x00", "found gzip data; expected a UTF-8 text file"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        ("a\nb\n".encode("utf-16"), "UTF-16 text"),
    ],
)
def test_C5_refused_files(tmp_path, content, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(write(tmp_path, content))


def test_C5_keep_lines_makes_ids_line_numbers(tmp_path):
    vocabulary = read_vocabulary(write(tmp_path, b"a\n\nb\na\n"), keep_lines=True)
    assert vocabulary.tokens == ("a", "", "b", "a")
    assert vocabulary.is_ordinary.tolist() == [True, False, True, True]
    assert vocabulary.padding is None
    assert vocabulary.ids(["a", "b", 3]).tolist() == [0, 2, 3]


def test_blank_first_line_is_padding(tmp_path):
    path = write(tmp_path, b"\n[UNK]\nthe\n")
    assert read_vocabulary(path) == read_vocabulary(["", "[UNK]", "the"])
    assert read_vocabulary(path, keep_lines=True) == read_vocabulary(["", "[UNK]", "the"])
    assert read_vocabulary(path, padding=None).reserved == {1}


def test_nothing_is_stripped_from_a_line(tmp_path):
    content = b" a\na \n\xc2\xa0\n\xe2\x80\xa8\nb\rc\n\xef\xbb\xbfd\n\x0c\n\x85\n"
    tokens = read_vocabulary(write(tmp_path, content)).tokens
    assert tokens == (" a", "a ", "\xa0", "\u2028", "b\rc", "\ufeffd", "\x0c", "\udc85")


LINES = st.binary(min_size=1, max_size=6).filter(lambda raw: b"\n" not in raw and not raw.endswith(b"\r"))


@given(st.lists(LINES, unique=True, max_size=10), st.sampled_from([b"\n", b"\r\n"]))
def test_any_bytes_are_read_as_in_a_vector_file(tmp_path_factory, lines, end):
    lines = [b"start", *(line for line in lines if line != b"start")]
    path = write(tmp_path_factory.mktemp("lines"), end.join(lines) + end)
    assert read_vocabulary(path).tokens == tuple(decode_word(line) for line in lines)


def test_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        read_vocabulary(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("name", ["the", "", "no such words", "the sky\nis red", "x" * 5000, "The sky. It is red. And"])
def test_the_error_for_an_invalid_path_says_which_sources_are_accepted(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        OSError, match="pass one token as a list, the number of ids without strings as an int"
    ) as caught:
        read_vocabulary(name)
    assert len(str(caught.value)) < 250
    assert caught.value.filename == name[:60]


def test_missing_file_named_without_a_folder_is_an_error_of_the_system(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="No such file or directory .*'vocabulary'") as caught:
        read_vocabulary("vocabulary")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, "vocabulary")
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: 'tokens\.txt'"):
        read_vocabulary("tokens.txt")
    with pytest.raises(VocabularyError, match="is not a path: a str must be"):
        read_vocabulary("a\0b")


@pytest.mark.parametrize(
    "content",
    [
        b"the\t3\nsky\t2\n",
        b"the 3\r\nsky 2\r\n",
        b"the 0.1 0.2\nsky -0.3 4e-05\n",
        b"2 2\nthe 0.1 0.2\nsky 0.3 0.4\n",
        b"\xef\xbb\xbfthe\t0\nsky\t1\n",
    ],
)
def test_files_of_vectors_counts_and_ids_are_refused(tmp_path, content):
    with pytest.raises(VocabularyError, match="vocabulary.txt, line 1: found a token and numbers, '(the|2)\\W"):
        read_vocabulary(write(tmp_path, content))
    whole = read_vocabulary(write(tmp_path, content), keep_lines=True)
    assert whole.num_tokens == content.count(b"\n")


@pytest.mark.parametrize(
    "content", [b"area 51\n", b"page 1\npage 2\n", b"the\t3\nsky\n", b"1\n2\n", b"the 3 cats\nsky 2\n", b"a b 3\nc 4\n"]
)
def test_tokens_that_end_in_numbers_are_tokens(tmp_path, content):
    assert read_vocabulary(write(tmp_path, content)).tokens == tuple(content.decode().splitlines())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xfd7zXZ\0", "xz data"),
        (b"\x28\xb5\x2f\xfd\0", "zstd data"),
        (b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x0c\n\x03<s>\x15\0\0\0\0\x18\x03", "a SentencePiece model"),
        (pickle.dumps({"the": 0}), "a Python pickle"),
        (pickle.dumps({"the": 0}, 2), "a Python pickle"),
    ],
)
def test_refused_kinds_of_files(tmp_path, content, message):
    with pytest.raises(VocabularyError, match=f"vocabulary.txt: found {message}.*; expected a UTF-8 text file"):
        read_vocabulary(write(tmp_path, content))


# JSON, recognized by its content


def test_json_of_ids_is_a_dict(tmp_path):
    word_index = {"the": 1, "é": 2, "sky": 3}
    path = write(tmp_path, json.dumps(word_index, indent=1).encode())
    assert read_vocabulary(path) == read_vocabulary(word_index)
    assert read_vocabulary(path, num_words=3).tokens == ("", "the", "é")
    assert read_vocabulary(write(tmp_path, b"\xef\xbb\xbf" + json.dumps(word_index).encode())).num_tokens == 4


def test_tokens_that_look_a_little_like_json(tmp_path):
    for content in (b"{\n}\n", b"{}\n", b"{a\n", b'"a"\n', b'["a"]\n', b"[PAD]\nthe\n"):
        assert read_vocabulary(write(tmp_path, content)).tokens == tuple(content.decode().splitlines())
    assert read_vocabulary(write(tmp_path, b'{"a\nb\n'), keep_lines=True).tokens == ('{"a', "b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"model": {"type": "BPE", "vocab": {"a": 0, ', "found an invalid JSON object"),
        (b'{"a": 0} {"b": 1}', "found an invalid JSON object .Extra data"),
        (b'{"a": ' + b"[" * 100_000, "found an invalid JSON object"),
        (b'{"a": "\xff"}', "found an invalid JSON object"),
        (b'{"words": ["a", "b"]}', r"vocabulary.txt: found JSON with the keys \['words'\]; expected"),
        (b'{"0": "a", "1": "b"}', r"JSON with the keys \['0', '1'\]; expected"),
        (b'{"model": {"type": "BPE"}}', r"JSON with the keys \['model'\]; expected"),
        (b'{"a": 0, "b": 2}', "no token with id 1"),
        (b'{"a": 0, "b": true}', "The id of token 'b' must be an integer"),
        (b'{"a": 0, "b": null}', "The id of token 'b' must be an integer"),
    ],
)
def test_refused_json(tmp_path, content, message):
    with pytest.raises(VocabularyError, match=message) as caught:
        read_vocabulary(write(tmp_path, content))
    assert len(str(caught.value)) < 400


def test_num_words_is_refused_for_other_files_than_json_of_ids(tmp_path):
    tokenizer = {"class_name": "Tokenizer", "config": {"word_index": '{"a": 1}', "num_words": None, "oov_token": None}}
    for content in (b"a\nb\n", b'{"model": {"vocab": {"a": 0}}}', json.dumps(tokenizer).encode()):
        with pytest.raises(VocabularyError, match="`num_words` is only for a dict .* Received: .*vocabulary.txt"):
            read_vocabulary(write(tmp_path, content), num_words=2)


@pytest.mark.parametrize("content", [b'["a", "b"]', b'[\n  "a",\n  "b"\n]\n', b'\xef\xbb\xbf["a", "b"]\r\n'])
def test_a_json_list_is_refused(tmp_path, content):
    path = write(tmp_path, content)
    with pytest.raises(VocabularyError, match=r"found a JSON list; expected .* Pass json.load\(file\)"):
        read_vocabulary(path)
    assert len(read_vocabulary(path, keep_lines=True).tokens) == len(content.splitlines())


def test_tokens_that_start_like_json_or_bzip2(tmp_path):
    assert read_vocabulary(write(tmp_path, b'["\na"]\n')).tokens == ('["', 'a"]')
    assert read_vocabulary(write(tmp_path, b"BZhang\nb\n")).tokens == ("BZhang", "b")


@pytest.mark.parametrize(
    "config",
    [
        {"word_index": {"a": 1}},
        {"word_index": '{"a":'},
        {"word_index": '["a"]'},
        {"word_index": None},
        {"num_words": "5"},
        {"oov_token": []},
    ],
)
def test_a_damaged_keras_tokenizer(tmp_path, config):
    config = {"word_index": '{"a": 1}', "num_words": None, "oov_token": None, **config}
    path = write(tmp_path, json.dumps({"class_name": "Tokenizer", "config": config}).encode())
    with pytest.raises(
        VocabularyError, match=r"vocabulary.txt: found JSON of a Keras Tokenizer with .*Write the file with to_json"
    ):
        read_vocabulary(path)


TEXT = "the cat sat on the mat\nit was a warm day\n"


@pytest.mark.parametrize("more", ["\nthe end\n", "it was a warm day\n"])
def test_running_text_is_refused_with_a_hint(tmp_path, more):
    path = write(tmp_path, (TEXT + more).encode())
    with pytest.raises(VocabularyError, match="found lines of several words, like running text; expected one token a"):
        read_vocabulary(path)
    assert read_vocabulary(path, keep_lines=True).tokens[0] == "the cat sat on the mat"


def test_distinct_lines_of_several_words_are_read_with_a_warning(tmp_path):
    with pytest.warns(NoMatchWarning, match="like running text"):
        assert read_vocabulary(write(tmp_path, TEXT.encode())).num_tokens == 2


@pytest.mark.parametrize("content", [b"the\nnew york\nnew york city\n", b"a b c d\ne\nf\n"])
def test_a_few_tokens_of_several_words_are_tokens(tmp_path, content, recwarn):
    read_vocabulary(write(tmp_path, content))
    assert not recwarn
