"""Growing a split: new tokens are matched, share rows or train, and Keras's lookup layers return their ids."""

import numpy as np
import pytest

from splitembed import SplitTable, read_vectors, read_vocabulary
from splitembed.errors import (
    NoMatchWarning,
    SplitError,
    TokenIdError,
    UnknownTokenError,
    VectorFileWarning,
    VectorFormatError,
    VocabularyError,
)
from splitembed.matching.match import find_candidates
from splitembed.split.grow import own_vectors, read_source, shares_rows
from splitembed.tables import open_frozen, write_frozen
from splitembed.vectors import WordVectors
from splitembed.vectors.source import VectorSource

NAMES = ["", "[UNK]", "the", "usr"]
DENSE = np.array([[0.0, 0.0], [5.0, 6.0], [1.0, 2.0], [7.0, 8.0]], np.float32)
SOURCE = {"of": [3.0, 4.0], "a": [0.5, 0.25], "The": [9.0, 9.0]}


@pytest.fixture
def split():
    return SplitTable.from_matrix(DENSE, [1, 3], vocabulary=NAMES, padding=0)


@pytest.fixture
def shared(tmp_path):
    """Return a split on a table with more words than tokens, two of which share a row."""
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


def test_tokens_of_a_tokenizer_match_by_their_spelling(split):
    pieces = read_vocabulary(["▁of", "a"], marks="metaspace")
    grown = split.grow(pieces, SOURCE)
    assert list(grown.vocabulary)[4:] == ["▁of", "a"]
    assert grown.trainable_ids.tolist() == [1, 3, 5] and grown.lookup([4]).tolist() == [[3.0, 4.0]]


def test_fallbacks_are_tried(split):
    assert split.grow(["OF"], {"of": [3.0, 4.0], "x": [1.0, 1.0]}, fallbacks=["lower"]).trainable_ids.tolist() == [1, 3]
    with pytest.warns(NoMatchWarning, match="None of the 1 new tokens has a vector in dict"):
        assert split.grow(["OF"], SOURCE).trainable_ids.tolist() == [1, 3, 4]


def test_without_a_source_new_spellings_of_old_tokens_share_their_row(split):
    grown = split.grow(["THE", "USR"], fallbacks=["lower"], oov_initializer="zeros")
    assert grown.frozen is split.frozen and grown.remap[4] == split.remap[2]
    # "usr" trains, so its row is not shared.
    assert grown.lookup([5]).tolist() == [[0.0, 0.0]]


def test_rows_of_a_shared_table_are_not_copied(shared, tmp_path):
    for source in (None, shared.table, tmp_path / "glove.h5"):
        grown = shared.grow(["of", "an", "a", "zzz"], source, oov_initializer="zeros")
        assert grown.frozen is shared.frozen and grown.table is shared.table
        assert grown.remap[3:].tolist() == [2, 3, 3, ~1]
    grown = shared.grow(["of", "zzz"], trainable_tokens=["of"], oov_initializer="zeros")
    assert grown.trainable.tolist() == [[5, 6], [3, 4], [0, 0]]


def test_rows_from_another_source_make_a_new_table(shared):
    grown = shared.grow(["to", "zzz"], {"to": [6.0, 6.0]}, oov_initializer="zeros")
    assert grown.table is None and grown.frozen.tolist() == [[0, 0], [1, 2], [6, 6]]
    training = shared.grow(["to", "zzz"], {"to": [6.0, 6.0]}, oov_initializer="zeros", trainable_tokens=["to"])
    assert training.table is shared.table and training.frozen is shared.frozen
    np.testing.assert_array_equal(grown.combine(), training.combine())


@pytest.mark.parametrize("trainable", [["of"], [5], [False] * 5 + [True]])
def test_named_known_tokens_train_from_their_vector(split, trainable):
    grown = split.grow(["a", "of"], SOURCE, trainable_tokens=trainable)
    assert grown.trainable_ids.tolist() == [1, 3, 5] and grown.trainable[2].tolist() == [3.0, 4.0]


def test_old_tokens_in_trainable_tokens_are_refused(split):
    with pytest.raises(SplitError, match=r"must be new tokens. Received: token 'the' \(id 2\). Use `thaw`"):
        split.grow(["of"], SOURCE, trainable_tokens=["of", "the"])
    with pytest.raises(UnknownTokenError, match="'zzz'"):
        split.grow(["of"], SOURCE, trainable_tokens=["zzz"])
    with pytest.raises(TokenIdError, match="Token id 5 is out of range"):
        split.grow(["of"], SOURCE, trainable_tokens=[5])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_new_rows_are_stored_in_the_same_precision(split, dtype):
    low = split.with_frozen_dtype(dtype)
    grown = low.grow(["of", "a"], {"of": [3.0, 4.001], "a": [0.5, 0.25]})
    assert grown.frozen_dtype == dtype and grown.num_frozen == 4
    np.testing.assert_array_equal(grown.lookup(range(4)), low.combine())
    # Half a step of int8.
    np.testing.assert_allclose(grown.lookup([4, 5]), [[3.0, 4.001], [0.5, 0.25]], rtol=1e-2)


def test_words_that_share_a_row_share_it_in_the_split(split):
    source = read_vectors({"of": [3.0, 4.0], "a": [0.5, 0.25]})
    source.row_of, source.words = np.array([0, 1, 1]), ["of", "a", "an"]
    grown = split.grow(["an", "a", "of"], source)
    assert grown.num_frozen == 4 and grown.remap[4] == grown.remap[5]
    assert grown.lookup([4, 5, 6]).tolist() == [[0.5, 0.25], [0.5, 0.25], [3.0, 4.0]]


def test_initial_rows_follow_the_known_words(split):
    grown = split.grow(["zzz", "of"], SOURCE, oov_initializer="mean")
    # The mean of "the" and "of", without padding and trained rows.
    assert grown.lookup([4]).tolist() == [[2.0, 3.0]]
    without_padding = split.shrink([0], drop_reserved=True).grow(["zzz"], oov_initializer="mean")
    assert without_padding.lookup([3]).tolist() == [[1.0, 2.0]]
    drawn = [split.grow(["zzz"], oov_initializer="uniform", seed=seed).lookup([4]) for seed in (1, 1, 2)]
    assert drawn[0].tobytes() == drawn[1].tobytes() != drawn[2].tobytes() and (np.abs(drawn) <= 0.05).all()


def test_an_initializer_receives_the_tokens(split):
    class Lengths:
        def make_rows(self, tokens, known, generator):
            return np.array([[len(token), len(known.words)] for token in tokens], np.float32)

    grown = split.grow(["zzzz", "of", "qq"], SOURCE, oov_initializer=Lengths())
    assert grown.lookup([4, 6]).tolist() == [[4.0, 1.0], [2.0, 1.0]]


def test_known_tokens_are_refused_or_skipped(split):
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
    "another dim": (dict(source={"of": [1.0]}), VectorFormatError, "dim 1; expected dim=2"),
    "no initializer": (dict(tokens=["zzz"], source=None, oov_initializer=3), SplitError, "The initializer must be"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_invalid_arguments_of_grow_are_refused(split, name):
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


def test_words_of_a_table_do_not_match_ids_without_strings(tmp_path):
    """The word "4" of GloVe is not the item 4."""
    write_frozen(tmp_path / "frozen.h5", DENSE, words=["4", "5", "6", "7"])
    table = open_frozen(tmp_path / "frozen.h5")
    split = SplitTable(table.vectors, [0, 1, 2, 3], np.empty((0, 2)), table=table)
    assert split.grow(1, oov_initializer="zeros").trainable_ids.tolist() == [4]
    assert split.grow(1, table).remap.tolist() == [0, 1, 2, 3, 0]


@pytest.mark.parametrize("kind", ["StringLookup", "TextVectorization"])
def test_a_lookup_layer_of_the_new_vocabulary_returns_the_same_ids(split, kind):
    layers = pytest.importorskip("keras").layers
    grown = split.grow(["of", "zzz"], SOURCE).shrink(["the"]).grow(["a"], SOURCE)
    words = ["usr", "of", "never seen", "a", "zzz"]
    if kind == "StringLookup":
        ids = np.asarray(layers.StringLookup(vocabulary=list(grown.vocabulary), mask_token="")(words))
    else:
        layer = layers.TextVectorization(vocabulary=list(grown.vocabulary), standardize=None, split=None)
        ids = np.asarray(layer(words)).reshape(-1)
    assert ids.tolist() == [2, 3, 1, 5, 4] == [grown.index.get(word, 1) for word in words]
    assert list(read_vocabulary(list(grown.vocabulary)).tokens) == list(grown.vocabulary)


OWN_ROWS = np.array([[1, 2], [3, 4], [0, 0]], np.float32)


def test_only_what_can_match_is_read():
    candidates = find_candidates(read_vocabulary(["usr", "The"]), ["lower"])
    vectors = read_source({"the": [1.0, 2.0], "of": [3.0, 4.0]}, candidates, 2)
    assert vectors.words == ["the"] and candidates.match_vectors(vectors).rows.tolist() == [-1, 0]
    source = VectorSource({"the": [1.0, np.inf]}, non_finite="zero", dim=2)
    with pytest.warns(VectorFileWarning):
        assert read_source(source, candidates, 2).vectors.tolist() == [[1.0, 0.0]]


def test_the_words_of_a_split_are_its_frozen_tokens():
    split = SplitTable.from_arrays(
        OWN_ROWS, [2, 1, ~0, 1], [[9.0, 9.0]], vocabulary=["", "of", "usr", "off"], padding=0
    )
    vectors = own_vectors(split)
    assert list(vectors.words) == ["of", "off"] and vectors.row_of.tolist() == [1, 1]
    assert vectors.table.vectors is split.frozen and shares_rows(split, vectors)
    np.testing.assert_array_equal(vectors.take([0, 1]), OWN_ROWS[[1, 1]])
    assert not len(own_vectors(split.with_parts(vocabulary=None)))


def test_the_words_of_a_split_on_a_table_are_those_of_the_table(tmp_path):
    write_frozen(
        tmp_path / "one.h5", OWN_ROWS, words=["the", "of", "", "an"], row_of=np.array([0, 1, 2, 0]), zero_row=2
    )
    write_frozen(tmp_path / "two.h5", OWN_ROWS + 1, words=["the", "of", "an"])
    table, other = open_frozen(tmp_path / "one.h5"), open_frozen(tmp_path / "two.h5")
    split = SplitTable(table.vectors, [0], np.empty((0, 2)), vocabulary=["the"], table=table)
    vectors = own_vectors(split)
    assert list(vectors.words) == ["the", "of", "", "an"] and vectors.row_of.tolist() == [0, 1, 2, 0]
    assert shares_rows(split, vectors)
    assert shares_rows(split, WordVectors(table.words, None, table=open_frozen(tmp_path / "one.h5")))
    assert not shares_rows(split, WordVectors(other.words, None, table=other))
    assert not shares_rows(split, WordVectors(["the"], OWN_ROWS[:1]))


def test_an_empty_word_of_a_table_matches_no_token(tmp_path):
    candidates = find_candidates(read_vocabulary(["of", ""], padding=None))
    vectors = WordVectors(["", "of", "of"], OWN_ROWS, row_of=np.array([2, 0, 1]))
    assert candidates.match_vectors(vectors).rows.tolist() == [1, 0]
    write_frozen(tmp_path / "t.h5", OWN_ROWS, words=["", "of", "of"])
    assert candidates.match_vectors(read_vectors(tmp_path / "t.h5")).rows.tolist() == [1, -1]


def test_rows_are_numbered_by_words():
    assert WordVectors(["", "of", "of"], OWN_ROWS, row_of=np.array([2, 0, 1])).rows([1, -1]).tolist() == [0, -1]
    assert WordVectors(["a", "b", "c"], OWN_ROWS).rows([2, -1]).tolist() == [2, -1]
