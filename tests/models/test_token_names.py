"""Names of a model's tokens become ids, and new tokens get their names in the given order."""

from types import SimpleNamespace

import numpy as np
import pytest

from splitembed.errors import SplitError, TokenIdError, UnknownTokenError, VocabularyError
from splitembed.models.token_names import Names, TokenizerIndex, names_of

pytestmark = pytest.mark.every_backend

WORDS = ["<pad>", "<unk>", "the", "cat", "sat"]
NEW = ["<call>", "<result>"]


class Tokenizer:
    """The methods of a KerasHub tokenizer that are used; the result for an unknown token differs between tokenizers."""

    def __init__(self, words, unknown):
        self.words, self.unknown, self.num_lookups = list(words), unknown, 0

    def vocabulary_size(self):
        return len(self.words)

    def get_vocabulary(self):
        self.num_lookups += 1
        return list(self.words)

    def id_to_token(self, token_id):
        return self.words[token_id]

    def token_to_id(self, token):
        if token in self.words:
            return self.words.index(token)
        if isinstance(self.unknown, type):
            raise self.unknown(token)
        return self.unknown


UNKNOWN = [KeyError, ValueError, None, 1]


def plain(vocabulary=None, num_tokens=5):
    """Return the names of a model without a tokenizer, with as many tokens as words."""
    return names_of(SimpleNamespace(), vocabulary, num_tokens)


# Chosen tokens


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ([4, 2], [2, 4]),
        ([2, 2, 4], [2, 4]),
        (3, [3]),
        ("cat", [3]),
        (["cat", 0, "the"], [0, 2, 3]),
        ({"cat", "the"}, [2, 3]),
        ([True, False, False, True, False], [0, 3]),
        (np.array([False] * 4 + [True]), [4]),
        (np.array([4, 1], np.uint8), [1, 4]),
        ((), []),
        (range(5), [0, 1, 2, 3, 4]),
    ],
)
def test_tokens_ids_and_masks_become_ascending_ids(selection, ids):
    found = plain(WORDS).chosen(selection)
    assert found.tolist() == ids and found.dtype == np.int64


@pytest.mark.parametrize("wrong", [[5], [-1], [2**32 + 2], np.array([2**63], np.uint64)])
def test_an_id_out_of_range_is_refused(wrong):
    with pytest.raises(TokenIdError, match="there are 5 tokens, so ids run from 0 to 4"):
        plain(WORDS).chosen(wrong)


@pytest.mark.parametrize("wrong", [[True], [1.0], True, None, b"cat", [[1]], [None], np.zeros(4, bool)])
def test_an_invalid_selection_is_refused(wrong):
    with pytest.raises(SplitError, match="Rows must be selected by|A selection of rows must be"):
        plain(WORDS).chosen(wrong)


def test_an_unknown_token_is_refused():
    with pytest.raises(UnknownTokenError, match="'Cat' is not among the 5 tokens"):
        plain(WORDS).chosen(["cat", "Cat"])


def test_names_without_a_vocabulary_are_refused():
    with pytest.raises(UnknownTokenError, match="'cat' cannot be looked up, because the names .* Pass .*`vocabulary`"):
        plain().chosen(["cat"])


def test_a_name_beyond_the_table_is_refused():
    with pytest.raises(TokenIdError, match="'<call>' has the id 5 in the vocabulary.*Pass it in .new_tokens."):
        plain([*WORDS, *NEW]).chosen(["<call>"])


# New tokens


@pytest.mark.parametrize(("given", "count"), [(0, 0), (3, 3), (np.int64(2), 2), ("<call>", 1), (NEW, 2), ((), 0)])
def test_new_tokens_follow_the_table_or_the_known_tokens_of_a_padded_one(given, count):
    assert plain().new(given).ids == list(range(5, 5 + count))
    # a table of two reserved rows
    new = names_of(SimpleNamespace(), WORDS, 7).new(given)
    assert new.ids == list(range(5, 5 + count)) and new.reserved == new.ids[:2] and not new.keeps_names


@pytest.mark.parametrize(("given", "expected"), [(0, []), ("<call>", ["<call>"]), (NEW, NEW), (tuple(NEW), NEW)])
def test_new_tokens_keep_their_names_with_a_vocabulary(given, expected):
    new = plain(WORDS).new(given)
    assert new.names == expected and new.keeps_names and new.reserved == []


def test_a_number_takes_the_following_names_of_the_vocabulary():
    names = plain([*WORDS, *NEW, "more"])
    assert [names.new(given).names for given in (2, NEW, 0)] == [NEW, NEW, []]


def test_ids_of_new_tokens_are_given_by_a_dict():
    for vocabulary in (None, WORDS, [*WORDS, *NEW]):
        new = plain(vocabulary).new({"<result>": 6, "<call>": 5})
        assert (new.ids, new.names, new.reserved) == ([5, 6], NEW, [])
    new = names_of(SimpleNamespace(), WORDS, 8).new({"<call>": 7, "<result>": 8, "sat": 4})
    assert (new.ids, new.reserved) == ([4, 7, 8], [4, 7])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"<call>": 6}, "'<call>' has the id 6, but the model's table has 5 rows and the next new row has the id 5"),
        ({"<call>": 5, "<result>": 7}, "'<result>' has the id 7, .* 5 rows and the next new row has the id 6"),
        ({"<call>": 2}, "'<call>' would get the id 2, which the vocabulary of 5 tokens has for another one"),
        ({"cat": 5}, "'cat' has the id 3 in the vocabulary, and would get the id 5"),
        ({"a": 5, "b": 5}, "must be different names and ids"),
    ],
)
def test_ids_of_other_tokens_and_with_gaps_are_refused(given, message):
    with pytest.raises(SplitError, match=message):
        plain(WORDS).new(given)


def test_a_new_name_for_an_id_that_the_vocabulary_names_is_refused():
    with pytest.raises(
        SplitError, match="'<new>' would get the id 5, which the vocabulary of 7 tokens has for another"
    ):
        plain([*WORDS, *NEW]).new(["<new>"])


@pytest.mark.parametrize("number", [1, 3])
def test_a_number_beyond_the_names_of_the_vocabulary_is_refused(number):
    with pytest.raises(SplitError, match=f"`new_tokens` is {number}, but the vocabulary has {number - 1} names"):
        plain([*WORDS, *NEW[: number - 1]]).new(number)


@pytest.mark.parametrize(
    "wrong",
    [-1, 1.0, True, None, [1, 2], ["a", 3], [""], "", b"a", {"a"}, [["a"]], {"a": -1}, {"a": 1.0}, {1: 1}, {"a": True}],
)
def test_invalid_new_tokens_are_refused(wrong):
    for names in (plain(), plain(WORDS)):
        with pytest.raises(
            SplitError, match="`new_tokens` must be a number, a list of names, or a dict name -> id. Received"
        ):
            names.new(wrong)


def test_duplicate_new_tokens_are_refused():
    with pytest.raises(SplitError, match="must be different names and ids. Received: .'a', 'b', 'a'."):
        plain().new(["a", "b", "a"])


def test_a_known_token_is_refused_as_new():
    with pytest.raises(
        SplitError,
        match="'cat' is not new: it has the id 3. Pass it in `trainable_tokens` .* or as new_tokens={'cat': 3} to",
    ):
        plain(WORDS).new(["<call>", "cat"])


def test_new_tokens_in_another_order_than_in_the_vocabulary_are_refused():
    with pytest.raises(SplitError, match="'<result>' has the id 6 in the vocabulary, and would get the id 5"):
        plain([*WORDS, *NEW]).new(["<result>", "<call>"])
    with pytest.raises(SplitError, match="'<result>' has the id 6 in the vocabulary, and would get the id 5"):
        plain([*WORDS, *NEW]).new(["<result>"])


def test_a_new_token_of_a_padded_table_is_refused_if_known():
    with pytest.raises(SplitError, match="'cat' is not new: it has the id 3"):
        names_of(SimpleNamespace(), WORDS, 9).new(["cat"])


# Vocabularies and tokenizers


def test_every_readable_vocabulary_is_taken(tmp_path):
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    assert names_of(None, tmp_path / "words.txt", 5).chosen(["sat"]).tolist() == [4]
    assert names_of(None, {word: index for index, word in enumerate(WORDS)}, 5).chosen(["sat"]).tolist() == [4]


def test_a_vocabulary_without_strings_is_refused():
    with pytest.raises(VocabularyError, match="`vocabulary` must have strings"):
        plain(5)


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_tokens_of_a_tokenizer_are_looked_up_one_by_one(unknown):
    tokenizer = Tokenizer(WORDS, unknown)
    task = SimpleNamespace(preprocessor=SimpleNamespace(tokenizer=tokenizer))
    for names in (names_of(task, None, 5), names_of(SimpleNamespace(), tokenizer, 5)):
        assert names.chosen(["cat", "<unk>", 0]).tolist() == [0, 1, 3]
        assert names.new(["dog", "<call>"]).ids == [5, 6] and names.new(4).ids == [5, 6, 7, 8]
        with pytest.raises(UnknownTokenError, match="'dog' is not among the 5 tokens"):
            names.chosen(["dog"])
        with pytest.raises(SplitError, match="'cat' is not new: it has the id 3"):
            names.new(["cat"])
        with pytest.raises(SplitError, match="'<unk>' is not new: it has the id 1"):
            names.new(["<unk>"])
    assert not tokenizer.num_lookups


def test_a_given_vocabulary_takes_precedence_over_the_tokenizer():
    task = SimpleNamespace(preprocessor=SimpleNamespace(tokenizer=Tokenizer(WORDS[::-1], None)))
    assert names_of(task, WORDS, 5).chosen(["sat"]).tolist() == [4]
    assert names_of(task, None, 5).chosen(["sat"]).tolist() == [0]


@pytest.mark.parametrize("task", [None, SimpleNamespace(preprocessor=None), SimpleNamespace(preprocessor="no")])
def test_a_model_without_a_tokenizer_has_no_names(task):
    names = names_of(task, None, 5)
    assert names.index is None and names.tokens is None


def test_an_index_is_a_mapping():
    index = TokenizerIndex(Tokenizer(WORDS, None))
    assert dict(index) == {word: index for index, word in enumerate(WORDS)}
    assert len(index) == 5 and list(index) == WORDS and index.get("dog") is None


def test_names_are_kept_if_there_is_one_for_each_row():
    assert Names(None, None, 5).new(2).ids == [5, 6]
    assert list(plain(WORDS).tokens) == WORDS
    assert plain(WORDS, 6).tokens is None and list(plain([*WORDS, "x"], 5).tokens) == [*WORDS, "x"]
