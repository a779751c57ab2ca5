"""Tokens that are added to a split: matched, shared or started, and sent to the same ids by Keras's lookup layers."""

import numpy as np
import pytest

from splitembed import SplitTable, read_vectors, read_vocabulary
from splitembed.errors import (
    NoMatchWarning,
    SplitError,
    TokenIdError,
    UnknownTokenError,
    VectorFormatError,
    VocabularyError,
)
from splitembed.split.grow import named
from splitembed.tables import open_frozen, write_frozen

NAMES = ["", "[UNK]", "the", "usr"]
DENSE = np.array([[0.0, 0.0], [5.0, 6.0], [1.0, 2.0], [7.0, 8.0]], np.float32)
SOURCE = {"of": [3.0, 4.0], "a": [0.5, 0.25], "The": [9.0, 9.0]}


@pytest.fixture
def split():
    return SplitTable.from_matrix(DENSE, [1, 3], vocabulary=NAMES, padding=0)


@pytest.fixture
def shared(tmp_path):
    """A split on a table with more words than it has tokens; two of them share a row."""
    rows = np.array([[0, 0], [1, 2], [3, 4], [0.5, 0.25]], np.float32)
    words = ["", "the", "of", "a", "an"]
    write_frozen(tmp_path / "glove.h5", rows, words=words, zero_row=0, row_of=np.array([0, 1, 2, 3, 3]))
    table = open_frozen(tmp_path / "glove.h5")
    return SplitTable(table.vectors, [0, ~0, 1], [[5.0, 6.0]], vocabulary=NAMES[:3], padding=0, table=table)


def test_new_tokens_come_after_the_old_ones(split):
    grown = split.grow(["zzz", "of", "qqq", "a"], SOURCE, oov_initializer="zeros")
    assert list(grown.vocabulary) == [*NAMES, "zzz", "of", "qqq", "a"] and grown.padding == 0
    assert grown.combine().tolist() == [*DENSE.tolist(), [0, 0], [3, 4], [0, 0], [0.5, 0.25]]
    assert grown.trainable_ids.tolist() == [1, 3, 4, 6]
    np.testing.assert_array_equal(grown.trainable[:2], split.trainable)
    assert grown.coverage is None and split.combine().tolist() == DENSE.tolist()


def test_one_token_a_vocabulary_or_none(split):
    assert list(split.grow("of", SOURCE).vocabulary) == [*NAMES, "of"]
    assert split.grow(read_vocabulary(["of"]), SOURCE).lookup([4]).tolist() == [[3.0, 4.0]]
    assert split.grow([]) is split and split.grow((), SOURCE) is split


def test_a_tokenizer_s_tokens_are_looked_for_as_they_are_spelled(split):
    pieces = read_vocabulary(["▁of", "a"], marks="metaspace")
    grown = split.grow(pieces, SOURCE)
    assert list(grown.vocabulary)[4:] == ["▁of", "a"]
    assert grown.trainable_ids.tolist() == [1, 3, 5] and grown.lookup([4]).tolist() == [[3.0, 4.0]]


def test_fallbacks_are_tried_where_asked(split):
    assert split.grow(["OF"], {"of": [3.0, 4.0], "x": [1.0, 1.0]}, fallbacks=["lower"]).trainable_ids.tolist() == [1, 3]
    with pytest.warns(NoMatchWarning, match="None of the 1 new tokens has a vector in dict"):
        assert split.grow(["OF"], SOURCE).trainable_ids.tolist() == [1, 3, 4]


def test_without_a_source_new_spellings_of_old_tokens_share_their_row(split):
    grown = split.grow(["THE", "USR"], fallbacks=["lower"], oov_initializer="zeros")
    assert grown.frozen is split.frozen and grown.remap[4] == split.remap[2]
    assert grown.lookup([5]).tolist() == [[0.0, 0.0]]  # "usr" trains: its row is not for others to share


def test_a_shared_table_lends_its_rows(shared, tmp_path):
    for source in (None, shared.table, tmp_path / "glove.h5"):
        grown = shared.grow(["of", "an", "a", "zzz"], source, oov_initializer="zeros")
        assert grown.frozen is shared.frozen and grown.table is shared.table
        assert grown.remap[3:].tolist() == [2, 3, 3, ~1]
    grown = shared.grow(["of", "zzz"], trainable_tokens=["of"], oov_initializer="zeros")
    assert grown.trainable.tolist() == [[5, 6], [3, 4], [0, 0]]


def test_rows_from_elsewhere_make_a_table_of_one_s_own(shared):
    grown = shared.grow(["to", "zzz"], {"to": [6.0, 6.0]}, oov_initializer="zeros")
    assert grown.table is None and grown.frozen.tolist() == [[0, 0], [1, 2], [6, 6]]
    training = shared.grow(["to", "zzz"], {"to": [6.0, 6.0]}, oov_initializer="zeros", trainable_tokens=["to"])
    assert training.table is shared.table and training.frozen is shared.frozen
    np.testing.assert_array_equal(grown.combine(), training.combine())


@pytest.mark.parametrize("trainable", [["of"], [5], [False] * 5 + [True]])
def test_known_tokens_train_from_their_vector_where_asked(split, trainable):
    grown = split.grow(["a", "of"], SOURCE, trainable_tokens=trainable)
    assert grown.trainable_ids.tolist() == [1, 3, 5] and grown.trainable[2].tolist() == [3.0, 4.0]


def test_what_is_not_new_is_not_chosen(split):
    with pytest.raises(SplitError, match=r"names token 'the' \(id 2\), which is not new. Use `thaw`"):
        split.grow(["of"], SOURCE, trainable_tokens=["of", "the"])
    with pytest.raises(UnknownTokenError, match="'zzz'"):
        split.grow(["of"], SOURCE, trainable_tokens=["zzz"])
    with pytest.raises(TokenIdError, match="Token id 5 is out of range"):
        split.grow(["of"], SOURCE, trainable_tokens=[5])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_new_rows_are_stored_as_the_others_are(split, dtype):
    low = split.with_frozen_dtype(dtype)
    grown = low.grow(["of", "a"], {"of": [3.0, 4.001], "a": [0.5, 0.25]})
    assert grown.frozen_dtype == dtype and grown.num_frozen == 4
    np.testing.assert_array_equal(grown.lookup(range(4)), low.combine())
    np.testing.assert_allclose(grown.lookup([4, 5]), [[3.0, 4.001], [0.5, 0.25]], rtol=1e-2)  # of int8, half a step


def test_words_that_share_a_row_share_it_here_too(split):
    source = read_vectors({"of": [3.0, 4.0], "a": [0.5, 0.25]})
    source.row_of, source.words = np.array([0, 1, 1]), ["of", "a", "an"]
    grown = split.grow(["an", "a", "of"], source)
    assert grown.num_frozen == 4 and grown.remap[4] == grown.remap[5]
    assert grown.lookup([4, 5, 6]).tolist() == [[0.5, 0.25], [0.5, 0.25], [3.0, 4.0]]


def test_the_start_of_rows_follows_the_words_that_are_known(split):
    grown = split.grow(["zzz", "of"], SOURCE, oov_initializer="mean")
    assert grown.lookup([4]).tolist() == [[2.0, 3.0]]  # of "the" and "of": neither padding nor trained rows
    without_padding = split.shrink([0], drop_reserved=True)[0].grow(["zzz"], oov_initializer="mean")
    assert without_padding.lookup([3]).tolist() == [[1.0, 2.0]]
    drawn = [split.grow(["zzz"], oov_initializer="uniform", seed=seed).lookup([4]) for seed in (1, 1, 2)]
    assert drawn[0].tobytes() == drawn[1].tobytes() != drawn[2].tobytes() and (np.abs(drawn) <= 0.05).all()


def test_an_initializer_that_looks_at_tokens_sees_them(split):
    class Lengths:
        def make_rows(self, tokens, known, generator):
            return np.array([[len(token), len(known.words)] for token in tokens], np.float32)

    grown = split.grow(["zzzz", "of", "qq"], SOURCE, oov_initializer=Lengths())
    assert grown.lookup([4, 6]).tolist() == [[4.0, 1.0], [2.0, 1.0]]


def test_tokens_that_are_there_already_are_refused_or_skipped(split):
    with pytest.raises(SplitError, match=r"'the' is in the vocabulary already. .* existing=\"skip\""):
        split.grow(["of", "the"], SOURCE)
    with pytest.raises(SplitError, match="'', 'the', 'usr' are in the vocabulary already"):
        split.grow(["", "the", "usr"], SOURCE)
    grown = split.grow(["the", "of", "usr"], SOURCE, existing="skip")
    assert list(grown.vocabulary) == [*NAMES, "of"] and grown.lookup([4]).tolist() == [[3.0, 4.0]]
    assert split.grow(NAMES, existing="skip") is split
    pieces = read_vocabulary(["the", "▁of"], marks="metaspace")
    assert split.grow(pieces, SOURCE, existing="skip").lookup([4]).tolist() == [[3.0, 4.0]]


BAD_CALLS = {
    "twice": (dict(tokens=["of", "of"]), VocabularyError, "found the token 'of'"),
    "no text": (dict(tokens=[b"of"]), VocabularyError, "Tokens must be str"),
    "a number": (dict(tokens=3), SplitError, "`tokens` must be new tokens. Received: 3 "),
    "another rule": (dict(existing="keep"), SplitError, '`existing` must be "error" or "skip". Received: \'keep\''),
    "another dim": (dict(source={"of": [1.0]}), VectorFormatError, "dim 1; dim=2 was asked for"),
    "no initializer": (dict(tokens=["zzz"], source=None, oov_initializer=3), SplitError, "The initializer must be"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_what_cannot_grow_is_refused(split, name):
    options, error, message = BAD_CALLS[name]
    with pytest.raises(error, match=message):
        split.grow(**{"tokens": ["of"], "source": SOURCE, **options})


def test_reserved_names_match_nothing(split):
    nameless = SplitTable.from_matrix(DENSE[2:], [1], vocabulary=["the", "usr"])
    grown = nameless.grow(["[UNK]", "", "of"], {"[UNK]": [1.0, 1.0], **SOURCE}, oov_initializer="zeros")
    assert grown.trainable_ids.tolist() == [1, 2, 3] and grown.padding is None


def test_ids_without_strings_grow_by_their_number():
    split = SplitTable.from_matrix(DENSE, [1])
    grown = split.grow(2, oov_initializer="zeros")
    assert grown.vocabulary is None and grown.combine().tolist() == [*DENSE.tolist(), [0, 0], [0, 0]]
    matched = split.grow(2, {"5": [9.0, 9.0], "1": [8.0, 8.0]}, oov_initializer="zeros")
    assert matched.lookup([4, 5]).tolist() == [[0.0, 0.0], [9.0, 9.0]] and matched.trainable_ids.tolist() == [1, 4]
    assert split.grow(2, {"5": [9.0, 9.0]}, trainable_tokens=[5]).trainable_ids.tolist() == [1, 4, 5]
    assert split.grow(0) is split
    for tokens in (["of"], -1, True, 1.5):
        with pytest.raises(SplitError, match="must be the number of new ids, as this split has no strings"):
            split.grow(tokens)
    with pytest.raises(UnknownTokenError, match="there is no vocabulary"):
        split.grow(2, trainable_tokens=["5"])


def test_the_words_of_a_table_name_no_id(tmp_path):
    """A word "4" of GloVe is not the item 4."""
    write_frozen(tmp_path / "frozen.h5", DENSE, words=["4", "5", "6", "7"])
    table = open_frozen(tmp_path / "frozen.h5")
    split = SplitTable(table.vectors, [0, 1, 2, 3], np.empty((0, 2)), table=table)
    assert split.grow(1, oov_initializer="zeros").trainable_ids.tolist() == [4]
    assert split.grow(1, table).remap.tolist() == [0, 1, 2, 3, 0]


def test_a_few_tokens_are_named():
    assert named(["a", "b", "c"]) == "'a', 'b', 'c'" and named(list("abcde")) == "'a', 'b', 'c' and 2 more"


@pytest.mark.parametrize("kind", ["StringLookup", "TextVectorization"])
def test_the_matching_lookup_layer_is_made_of_the_new_vocabulary(split, kind):
    layers = pytest.importorskip("keras").layers
    grown = split.grow(["of", "zzz"], SOURCE).shrink(["the"])[0].grow(["a"], SOURCE)
    words = ["usr", "of", "never seen", "a", "zzz"]
    if kind == "StringLookup":
        ids = np.asarray(layers.StringLookup(vocabulary=list(grown.vocabulary), mask_token="")(words))
    else:
        layer = layers.TextVectorization(vocabulary=list(grown.vocabulary), standardize=None, split=None)
        ids = np.asarray(layer(words)).reshape(-1)
    assert ids.tolist() == [2, 3, 1, 5, 4] == [grown.index.get(word, 1) for word in words]
    assert list(read_vocabulary(list(grown.vocabulary)).tokens) == list(grown.vocabulary)
