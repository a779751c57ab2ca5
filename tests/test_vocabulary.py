"""Sources of vocabularies, selections of rows and counts: what is read, what it means, and what is refused by name."""

import enum
import itertools
from collections import Counter, OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError, TokenIdError, UnknownTokenError, VocabularyError
from splitembed.vocabulary import Vocabulary, align_counts, out_of_range, read_vocabulary, resolve_ids
from splitembed.words import Words, decode_word, pack_words

TOKENS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=12, unique=True)


class Spelling(str, enum.Enum):
    RED = "red"


def write(folder, content):
    path = folder / "vocabulary.txt"
    path.write_bytes(content)
    return path


# Lists


@given(TOKENS)
def test_row_i_of_a_list_belongs_to_token_i(tokens):
    vocabulary = read_vocabulary(tokens)
    assert vocabulary.tokens == tuple(tokens)
    assert vocabulary.num_tokens == len(tokens)
    assert [vocabulary.index[token] for token in tokens] == list(range(len(tokens)))
    assert vocabulary.ids(tokens).tolist() == list(range(len(tokens)))


@pytest.mark.parametrize(
    "source",
    [
        ["red", "sky"],
        ("red", "sky"),
        np.array(["red", "sky"]),
        np.array(["red", "sky"], object),
        [np.str_("red"), "sky"],
        [Spelling.RED, "sky"],
        Words.from_arrays(*pack_words(["red", "sky"])),
    ],
)
def test_every_kind_of_list_gives_plain_strings(source):
    tokens = read_vocabulary(source).tokens
    assert tokens == ("red", "sky")
    assert {type(token) for token in tokens} == {str}


def test_C3_padding_and_unknown_are_reserved():
    vocabulary = read_vocabulary(["", "[UNK]", "b", "a"])
    assert vocabulary == Vocabulary(("", "[UNK]", "b", "a"), padding=0, reserved=frozenset([0, 1]), unknown=1)
    assert vocabulary.is_ordinary.tolist() == [False, False, True, True]


def test_Y4_lookalikes_of_unknown_are_ordinary_words():
    vocabulary = read_vocabulary(["unk", "<unk>", "UNK", "[unk]"])
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (None, None, frozenset())


def test_empty_string_is_padding_only_in_front():
    assert read_vocabulary(["a", ""]).padding is None


@pytest.mark.parametrize(
    ("options", "padding", "unknown", "reserved"),
    [
        ({}, 0, 2, {0, 2}),
        ({"padding": None}, None, 2, {2}),
        ({"unknown": None}, 0, None, {0}),
        ({"padding": None, "unknown": None}, None, None, set()),
        ({"padding": 1}, 1, 2, {1, 2}),
        ({"padding": "a"}, 1, 2, {1, 2}),
        ({"padding": np.int64(1), "unknown": np.uint8(0)}, 1, 0, {0, 1}),
        ({"unknown": "a"}, 0, 1, {0, 1}),
        ({"unknown": 1}, 0, 1, {0, 1}),
    ],
)
def test_explicit_padding_and_unknown(options, padding, unknown, reserved):
    vocabulary = read_vocabulary(["", "a", "[UNK]"], **options)
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (padding, unknown, frozenset(reserved))
    assert read_vocabulary(vocabulary) == vocabulary


def test_padding_makes_an_ordinary_word_at_id_0_reserved():
    vocabulary = read_vocabulary(["the", "of"], padding=0)
    assert (vocabulary.padding, vocabulary.reserved) == (0, frozenset([0]))


def test_reading_a_vocabulary_again_can_change_what_is_reserved():
    vocabulary = read_vocabulary(["the", "[UNK]", "of"], padding=0)
    assert read_vocabulary(vocabulary, padding=None).reserved == {1}
    assert read_vocabulary(vocabulary, padding=2, unknown=None).reserved == {2}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"padding": 2}, TokenIdError, "Token id 2 is out of range: there are 2 tokens, so ids run from 0 to 1."),
        ({"unknown": -1}, TokenIdError, "Token id -1 is out of range"),
        ({"unknown": "<unk>"}, UnknownTokenError, "Token '<unk>' is not among the 2 tokens"),
        ({"padding": False}, VocabularyError, '`padding` must be "auto", None, an id or a token. Received: False.'),
        ({"unknown": 1.0}, VocabularyError, "`unknown` must be .* Received: 1.0."),
        ({"padding": 1, "unknown": 1}, VocabularyError, "Id 1 cannot be both padding and unknown"),
        ({"padding": "[UNK]"}, VocabularyError, "Id 1 cannot be both padding and unknown"),
        ({"keep_lines": True}, VocabularyError, "`keep_lines` is for text files. Received: a source of type list."),
    ],
)
def test_refused_options(options, error, message):
    with pytest.raises(error, match=message):
        read_vocabulary(["the", "[UNK]"], **options)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "The vocabulary is empty"),
        ((), "The vocabulary is empty"),
        ({}, "The vocabulary is empty"),
        (["a", "b", "a"], "id 2: the token 'a' again, first at 0"),
        (["", "a", ""], "id 2: the token '' again, first at 0"),
        (["a", b"b"], "Tokens must be str. Received: b'b' of type bytes at place 1; decode it."),
        (["a", 7], "Received: 7 of type int at place 1"),
        (np.array([3, 4]), "Received: 3 of type int at place 0"),
        (["a", None], "Received: None of type NoneType at place 1"),
        (["a", "\ud800"], "lone surrogate"),
        ({"\ud800": 0}, "lone surrogate"),
        ({"a", "b"}, "Received: set"),
        (Counter("aab"), "Received: Counter"),
        (b"vocabulary.txt", "Received: bytes"),
        (np.array([["a"]]), "Received: ndarray"),
        (7, "Received: int"),
        (SimpleNamespace(word_index={"a": 1}), "Received: SimpleNamespace. Pass its `word_index`."),
    ],
)
def test_refused_sources(source, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(source)


def test_errors_and_representation_of_a_long_vocabulary_are_short():
    tokens = [f"token{place}" for place in range(5000)]
    assert len(repr(read_vocabulary(tokens))) < 100
    for call in (
        lambda: read_vocabulary([*tokens, "token7"]),
        lambda: read_vocabulary({token: 2 * place for place, token in enumerate(tokens)}),
        lambda: read_vocabulary(tokens, padding=5000),
        lambda: read_vocabulary(tokens).ids([*tokens, "other"]),
        lambda: align_counts(np.ones(4999), read_vocabulary(tokens)),
    ):
        with pytest.raises((VocabularyError, TokenIdError, UnknownTokenError)) as caught:
            call()
        assert len(str(caught.value)) < 300


# Files


@pytest.mark.parametrize("content", [b"a\nb\n", b"a\nb", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\r\nb"])
def test_C5_line_ends_and_byte_order_mark(tmp_path, content):
    assert read_vocabulary(write(tmp_path, content)).tokens == ("a", "b")
    assert read_vocabulary(str(write(tmp_path, content)), keep_lines=True).tokens == ("a", "b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\n\nb\n", "vocabulary.txt, line 2: a blank line"),
        (b"\na\n\nb\n", "vocabulary.txt, line 3: a blank line"),
        (b"a\r\n\r\nb\r\n", "vocabulary.txt, line 2: a blank line"),
        (b"a\nb\n\n", "vocabulary.txt, line 3: a blank line"),
        (b"a\nb\na\n", "vocabulary.txt, line 3: the token 'a' again, first at 1"),
        (b"", "The vocabulary is empty"),
        (b"\x1f\x8b\x08\x00", "gzip data, where a UTF-8 text file"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        ("a\nb\n".encode("utf-16"), "UTF-16 text"),
    ],
)
def test_C5_refused_files(tmp_path, content, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(write(tmp_path, content))


def test_C5_ids_equal_line_numbers_where_asked(tmp_path):
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
def test_any_bytes_of_a_file_are_the_words_of_a_vector_file(tmp_path_factory, lines, end):
    lines = [b"start", *(line for line in lines if line != b"start")]
    path = write(tmp_path_factory.mktemp("lines"), end.join(lines) + end)
    assert read_vocabulary(path).tokens == tuple(decode_word(line) for line in lines)


def test_missing_file_is_the_system_s_own_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        read_vocabulary(tmp_path / "nowhere.txt")


# Dicts of ids


def test_C1_word_index_from_1():
    vocabulary = read_vocabulary({"red": 1, "sky": 2})
    assert vocabulary == Vocabulary(("", "red", "sky"), padding=0, reserved=frozenset([0]), unknown=None)


def test_word_index_from_1_without_padding_has_a_row_0_that_matches_nothing():
    vocabulary = read_vocabulary({"": 1, "red": 2}, padding=None)
    assert (vocabulary.tokens, vocabulary.padding, vocabulary.reserved) == (("", "", "red"), None, {0})
    assert vocabulary.ids("").tolist() == [1]


def test_word_index_from_0_has_no_padding():
    vocabulary = read_vocabulary({"sky": 1, "red": 0})
    assert (vocabulary.tokens, vocabulary.padding) == (("red", "sky"), None)
    assert read_vocabulary({"": 0, "red": 1}).padding == 0


def test_word_index_names_its_unknown_token():
    assert read_vocabulary({"<OOV>": 1, "red": 2}, unknown="<OOV>").reserved == {0, 1}
    assert read_vocabulary({"[UNK]": 1, "red": 2}).unknown == 1


@given(TOKENS, st.sampled_from([0, 1]), st.sampled_from([int, np.int32, np.uint64]), st.randoms())
def test_row_i_of_a_word_index_belongs_to_the_token_with_id_i(tokens, start, kind, random):
    pairs = [(token, kind(place)) for place, token in enumerate(tokens, start)]
    random.shuffle(pairs)
    vocabulary = read_vocabulary(OrderedDict(pairs))
    assert vocabulary.num_tokens == start + len(tokens)
    assert all(vocabulary.tokens[int(token_id)] == token for token, token_id in pairs)


@pytest.mark.parametrize(
    ("word_index", "message"),
    [
        ({"a": 1, "b": 3}, "No token has the id 2; the next one, 'b', has 3"),
        ({"a": 0, "b": 2}, "No token has the id 1; the next one, 'b', has 2"),
        ({"a": 2, "b": 3}, "No token has the id 1; the next one, 'a', has 2"),
        ({"a": 1, "b": 2, "c": 1}, "Tokens 'a' and 'c' have the same id 1"),
        ({"a": 0, "b": 0}, "Tokens 'a' and 'b' have the same id 0"),
        ({"a": 0, "b": -1}, "The id of token 'b' must be an integer, 0 or more. Received: -1 of type int"),
        ({"a": True}, "The id of token 'a' must be an integer, 0 or more. Received: True of type bool"),
        ({"a": np.True_}, "The id of token 'a' .* of type bool"),
        ({"a": 1, "b": 2.0}, "The id of token 'b' .* Received: 2.0 of type float"),
        ({"a": "1"}, "The id of token 'a' .* Received: '1' of type str"),
        ({"a": 0, "b": 2**70}, "The id of token 'b' .* Received: 1180591620717411303424"),
        ({1: "a"}, "Tokens must be str. Received: 1 of type int at place 0"),
    ],
)
def test_refused_word_indices(word_index, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(word_index)


# Keras layers, by their attributes and for real


def lookup_layer(tokens, **attributes):
    defaults = {"num_oov_indices": 1, "mask_token": None, "oov_token": "[UNK]", "output_mode": "int", "invert": False}
    return SimpleNamespace(**{**defaults, **attributes}, get_vocabulary=lambda: tokens)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lookup_layer(["a"], invert=True), "has invert=True"),
        (lookup_layer(["[UNK]", "a"], output_mode="multi_hot"), 'must have output_mode="int". Received: .*multi_hot'),
        (lookup_layer(["[UNK]"]), "has no tokens yet: call its adapt"),
        (lookup_layer([], num_oov_indices=0), "has no tokens yet"),
        (lookup_layer([-1, 3]), "Tokens must be str. Received: -1 of type int"),
        (SimpleNamespace(get_vocabulary=lambda: ["a"]), "no Keras lookup layer. Pass the list"),
    ],
)
def test_refused_layers(layer, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(layer)


def test_layer_without_a_name_for_unknown_tokens():
    vocabulary = read_vocabulary(lookup_layer([None, None, "a"], num_oov_indices=2, oov_token=None))
    assert (vocabulary.tokens, vocabulary.unknown, vocabulary.reserved) == (("[UNK]", "[UNK]", "a"), 0, {0, 1})


def looked_up(layer, tokens):
    return np.asarray(layer(np.array(tokens))).reshape(-1).tolist()


@pytest.mark.parametrize(
    ("num_oov_indices", "mask_token", "oov_token"),
    list(itertools.product([0, 1, 2, 5], [None, "", "<pad>"], ["[UNK]", "<oov>"])),
)
def test_row_i_belongs_to_what_string_lookup_sends_to_i(num_oov_indices, mask_token, oov_token):
    import keras

    words = ["the", "[UNK]", "é", "a b", "<unk>"]  # "[UNK]" among the words is an ordinary token to Keras
    layer = keras.layers.StringLookup(
        num_oov_indices=num_oov_indices, mask_token=mask_token, oov_token=oov_token, vocabulary=words
    )
    vocabulary = read_vocabulary(layer)
    assert vocabulary.num_tokens == layer.vocabulary_size()
    assert [vocabulary.tokens[place] for place in looked_up(layer, words)] == words
    assert vocabulary.ids(words).tolist() == looked_up(layer, words)
    assert vocabulary.padding == (None if mask_token is None else looked_up(layer, [mask_token])[0])
    if num_oov_indices:
        strangers = [f"stranger{place}" for place in range(40)]
        slots = set(looked_up(layer, strangers))
        assert len(slots) == num_oov_indices
        assert vocabulary.unknown == min(slots)
        assert vocabulary.reserved == slots | ({0} if mask_token is not None else set())
    else:
        assert vocabulary.unknown == vocabulary.index["[UNK]"]


def test_row_i_belongs_to_what_text_vectorization_sends_to_i():
    import keras

    layer = keras.layers.TextVectorization()
    layer.adapt(["the sky is red", "the sky", "le ciel été"])
    vocabulary = read_vocabulary(layer)
    assert (vocabulary.tokens[:2], vocabulary.padding, vocabulary.unknown) == (("", "[UNK]"), 0, 1)
    words = ["the", "sky", "is", "red", "été"]
    assert [vocabulary.tokens[place] for place in looked_up(layer, words)] == words
    assert looked_up(layer, ["stranger"]) == [vocabulary.unknown]
    assert looked_up(layer, ["the stranger", "sky"])[-1] == vocabulary.padding
    assert read_vocabulary(layer.get_vocabulary()) == vocabulary
    assert {type(token) for token in vocabulary.tokens} == {str}


def test_lookup_layer_whose_vocabulary_is_a_file(tmp_path):
    import keras

    path = write(tmp_path, b"the\nsky\n")
    layer = keras.layers.StringLookup(mask_token="", vocabulary=str(path))
    assert read_vocabulary(layer).tokens == ("", "[UNK]", "the", "sky")


def test_refused_keras_layers():
    import keras

    layers = keras.layers
    for layer, message in [
        (layers.StringLookup(vocabulary=["a"], invert=True), "StringLookup has invert=True"),
        (layers.StringLookup(vocabulary=["a"], output_mode="one_hot"), 'StringLookup must have output_mode="int"'),
        (
            layers.TextVectorization(vocabulary=["a"], output_mode="count"),
            'TextVectorization must have output_mode="int"',
        ),
        (layers.StringLookup(), "StringLookup has no tokens yet"),
        (layers.StringLookup(num_oov_indices=0, mask_token=""), "StringLookup has no tokens yet"),
        (layers.TextVectorization(), "TextVectorization has no tokens yet"),
        (layers.IntegerLookup(vocabulary=[5, 6]), "Tokens must be str"),
    ]:
        with pytest.raises(VocabularyError, match=message):
            read_vocabulary(layer)


def test_explicit_choices_for_a_layer():
    layer = lookup_layer(["<pad>", "[UNK]", "[UNK]", "a"], num_oov_indices=2, mask_token="<pad>")
    vocabulary = read_vocabulary(layer, padding=None, unknown=2)
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (None, 2, {0, 1, 2})


# Selections


INTEGERS = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]


@given(st.lists(st.integers(0, 9)), st.sampled_from([list, tuple, iter, *INTEGERS]))
def test_ids_of_any_kind(ids, kind):
    selection = np.array(ids, kind) if kind in INTEGERS else kind(ids)
    result = resolve_ids(selection, 10)
    assert result.dtype == np.int64
    assert result.tolist() == ids


@given(st.lists(st.integers(0, 9)))
def test_tokens_ids_and_masks_name_the_same_rows(ids):
    index = {str(token_id): token_id for token_id in range(10)}
    mixed = [str(token_id) if place % 2 else token_id for place, token_id in enumerate(ids)]
    mask = np.isin(np.arange(10), ids)
    assert resolve_ids(mixed, 10, index).tolist() == ids
    assert resolve_ids([str(token_id) for token_id in ids], 10, index).tolist() == ids
    assert resolve_ids(np.array([str(token_id) for token_id in ids], object), 10, index).tolist() == ids
    assert resolve_ids(mask, 10).tolist() == resolve_ids(mask.tolist(), 10).tolist() == sorted(set(ids))
    assert resolve_ids(set(mixed), 10, index).tolist() == sorted(resolve_ids(list(set(mixed)), 10, index))


@pytest.mark.parametrize("selection", ["usr", ["usr"], 3, np.int32(3), [np.int64(3)], {"usr"}, np.array(["usr"])])
def test_one_row(selection):
    assert resolve_ids(selection, 4, {"usr": 3}).tolist() == [3]


@pytest.mark.parametrize("selection", [[], (), set(), np.array([]), np.array([], np.int32), np.zeros(4, bool)])
def test_no_rows(selection):
    result = resolve_ids(selection, 4)
    assert (result.shape, result.dtype) == ((0,), np.int64)


def test_index_is_not_made_for_ids():
    def index():
        raise AssertionError("asked for the index")

    assert resolve_ids([0, 1], 2, index).tolist() == [0, 1]
    with pytest.raises(AssertionError, match="asked for the index"):
        resolve_ids([0, "a"], 2, index)


@pytest.mark.parametrize(
    "selection",
    [4, [0, 4], np.array([1, 4]), np.array([4], np.uint8), ["a", 4], {0, 4}],
)
def test_I1_the_error_names_the_id_and_the_number_of_tokens(selection):
    with pytest.raises(
        TokenIdError, match=r"^Token id 4 is out of range: there are 4 tokens, so ids run from 0 to 3\.$"
    ):
        resolve_ids(selection, 4, {"a": 0})
    assert issubclass(TokenIdError, IndexError)


@pytest.mark.parametrize("token_id", [-1, 2**32 + 5, 2**63, 2**64 - 1, 2**70])
def test_ids_are_compared_before_they_are_narrowed(token_id):
    arrays = [np.array([token_id], np.uint64)] if 0 <= token_id < 2**64 else []
    for selection in ([0, token_id], *arrays):
        with pytest.raises(TokenIdError, match=out_of_range(token_id, 10)):
            resolve_ids(selection, 10)


def test_narrow_ids_of_a_larger_vocabulary():
    assert resolve_ids(np.array([0, 255], np.uint8), 300).tolist() == [0, 255]
    assert resolve_ids(np.array([127], np.int8), 2**40).tolist() == [127]


@pytest.mark.parametrize(
    ("selection", "error", "message"),
    [
        (["a", "zzz"], UnknownTokenError, "Token 'zzz' is not among the 3 tokens of the vocabulary"),
        ([1, "zzz"], UnknownTokenError, "Token 'zzz' is not"),
        ([True, False], SplitError, "a mask has one value for each of the 3 tokens. Received: shape .2,., bool"),
        (np.ones(4, bool), SplitError, "Received: shape .4,., bool"),
        (np.ones((3, 1), bool), SplitError, "one-dimensional"),
        (np.array([[0]]), SplitError, "one-dimensional"),
        (np.array([["a"]]), SplitError, "one-dimensional"),
        ([0, True], SplitError, "Received: True .bool."),
        (True, SplitError, "Received: True .bool."),
        ([1.0], SplitError, "Received: 1.0 .float."),
        (np.array([1.5]), SplitError, "1.5"),
        (2.0, SplitError, "Received: 2.0 .float."),
        (None, SplitError, "Received: None .NoneType."),
        (b"a", SplitError, "Received: b'a' .bytes."),
        ([b"a"], SplitError, "Received: b'a' .bytes."),
    ],
)
def test_refused_selections(selection, error, message):
    with pytest.raises(error, match=message):
        resolve_ids(selection, 3, {"a": 0, "b": 1, "c": 2})


def test_tokens_without_a_vocabulary_are_refused():
    with pytest.raises(UnknownTokenError, match="Token 'a' cannot be looked up, as there is no vocabulary"):
        resolve_ids([0, "a"], 3)


# Counts


VOCABULARY = read_vocabulary(["", "[UNK]", "the", "sky"])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"sky": 2, "stranger": 9}, [0, 0, 0, 2]),
        (Counter(["the", "sky", "the"]), [0, 0, 2, 1]),
        ({"sky": np.int32(2), "the": np.uint8(3)}, [0, 0, 3, 2]),
        ({}, [0, 0, 0, 0]),
        ([0, 1, 2, 3], [0, 1, 2, 3]),
        (np.array([0, 1, 2, 3], np.uint64), [0, 1, 2, 3]),
        (SimpleNamespace(to_dict=lambda: {"sky": 2}), [0, 0, 0, 2]),
    ],
)
def test_whole_counts_come_in_id_order(counts, expected):
    result = align_counts(counts, VOCABULARY)
    assert result.dtype == np.int64
    assert result.tolist() == expected


@pytest.mark.parametrize("counts", [{"the": 0.5}, [0.0, 0.0, 0.5, 0.0], np.array([0, 0, 0.5, 0], np.float16)])
def test_weights_stay_fractions(counts):
    result = align_counts(counts, VOCABULARY)
    assert result.dtype == np.float64
    assert result.tolist() == [0, 0, 0.5, 0]


def test_counts_of_duplicate_lines_go_to_each(tmp_path):
    vocabulary = read_vocabulary(write(tmp_path, b"a\nb\na\n"), keep_lines=True)
    assert align_counts({"a": 3}, vocabulary).tolist() == [3, 0, 3]


def test_counting_adds_nothing_to_a_default_dict():
    counts = Counter(the=1)
    align_counts(counts, VOCABULARY)
    assert counts == {"the": 1}
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2, 3], "one count for each of the 4 tokens. Received: shape .3,."),
        (np.ones((4, 1)), "Received: shape .4, 1."),
        (7, "Received: shape .."),
        ({"sky": -1}, "The count of token 'sky' .id 3. must be 0 or more. Received: -1"),
        ([0, 0, np.nan, 0], "The count of token 'the' .id 2. must be 0 or more. Received: nan"),
        ({"the": np.inf}, "The count of token 'the' .id 2. must be 0 or more. Received: inf"),
        ({3: 2}, "`counts` must be by token .str.. Received: keys of type int. Counts by id go in an array"),
        ({b"sky": 2}, "keys of type bytes"),
        ({"sky": "2"}, "`counts` must be numbers"),
        ([True, False, True, True], "`counts` must be numbers that int64 or float64 hold. Received: dtype bool"),
        (np.full(4, 2**63, np.uint64), "`counts` must be numbers that int64 or float64 hold. Received: dtype uint64"),
        ({"sky": None}, "`counts` must be numbers"),
    ],
)
def test_refused_counts(counts, message):
    with pytest.raises(VocabularyError, match=message):
        align_counts(counts, VOCABULARY)
