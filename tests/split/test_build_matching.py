"""build_split without exact matches: fallbacks, ids without strings, marks of tokenizers, words that share rows."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed import build_split, read_vocabulary
from splitembed.errors import NoMatchWarning, SplitError, VectorFileWarning, VectorFormatError
from splitembed.tables import open_frozen, write_frozen
from splitembed.vectors import WordVectors, read_vectors

VECTORS = {"the": [1.0, 1.5], "cafe": [2.0, 2.5], "of": [3.0, 3.5], "USA": [4.0, 4.5]}
TOKENS = ["", "[UNK]", "the", "The", "Café", "usa", "zzz"]


def build(vocabulary=TOKENS, source=VECTORS, **options):
    return build_split(vocabulary, source, **{"oov_initializer": "zeros", "seed": 0, **options})


@pytest.fixture(params=["text", "frozen.h5"])
def source(request, tmp_path):
    """Return the same vectors as a stream and as a shared table."""
    text, table = tmp_path / "vectors.txt", tmp_path / "glove.h5"
    text.write_text("".join(f"{word} {a} {b}\n" for word, (a, b) in VECTORS.items()))
    write_frozen(table, np.array([*VECTORS.values(), [0, 0]], np.float32), words=[*VECTORS, ""], zero_row=4)
    return {"text": text, "frozen.h5": table}[request.param]


def test_fallbacks_are_tried_in_order_and_frozen(source):
    split = build(source=source, fallbacks=["lower", "upper", "lower+accents"])
    assert split.trainable_ids.tolist() == [1, 6]
    assert split.lookup([2, 3, 4, 5]).tolist() == [VECTORS[word] for word in ("the", "the", "cafe", "USA")]
    # One row, not a copy of it.
    assert split.remap[2] == split.remap[3]
    counted = {rule.name: rule.num_types for rule in split.coverage.rules}
    assert counted == {"exact": 1, "lower": 1, "upper": 1, "lower+accents": 1}


def test_fallbacks_can_train_from_the_vector_they_found(source):
    split = build(source=source, fallbacks=["lower"], train_fallbacks=True)
    assert split.trainable_ids.tolist() == [1, 3, 4, 5, 6]
    assert split.lookup([3]).tolist() == [VECTORS["the"]] and split.remap[2] >= 0
    exact = build(source=source, train_fallbacks=True)
    assert exact.trainable_ids.tolist() == [1, 3, 4, 5, 6] and not exact.lookup([3]).any()


def test_reserved_tokens_match_by_no_fallback(source):
    split = build(source=source, fallbacks=[lambda token: "the"])
    assert split.trainable_ids.tolist() == [1] and split.padding == 0
    assert not split.lookup([0, 1]).any()


@given(st.permutations(TOKENS[2:]).flatmap(lambda tokens: st.integers(1, len(tokens)).map(lambda k: tokens[:k])))
def test_the_row_of_a_token_does_not_depend_on_other_tokens(tokens):
    together = build(tokens, fallbacks=["lower", "upper"])
    for token_id, token in enumerate(tokens):
        alone = build([token], fallbacks=["lower", "upper"]) if token not in ("Café", "zzz") else None
        expected = np.zeros(2) if alone is None else alone.lookup([0])[0]
        assert together.lookup([token_id])[0].tolist() == expected.tolist()


def test_extending_appends_the_words_that_fallbacks_found_too(source):
    split = build(["The"], source=source, fallbacks=["lower"], extend_vocabulary=True)
    assert list(split.vocabulary) == ["The", *VECTORS]
    assert split.lookup(range(5)).tolist() == [VECTORS["the"], *VECTORS.values()]
    assert split.num_trainable == 0


def test_plain_ids_match_words_of_digits_and_store_no_strings(tmp_path):
    split = build(range(4), {1: [1.0], 3: [3.0]}, padding=0)
    assert split.vocabulary is None and split.trainable_ids.tolist() == [2]
    assert split.lookup([0, 1, 3]).tolist() == [[0.0], [1.0], [3.0]]
    (tmp_path / "items.txt").write_text("3 3.0\n1 1.0\n")
    assert np.array_equal(build(4, tmp_path / "items.txt", padding=0).combine(), split.combine())
    with pytest.raises(SplitError, match="`extend_vocabulary` appends words, and this vocabulary has no strings"):
        build(range(4), {1: [1.0], 3: [3.0]}, extend_vocabulary=True)


def test_subwords_match_by_their_spelling_in_files():
    vocabulary = read_vocabulary(["\u2581the", "of", "\u2581The"], marks="metaspace")
    split = build(vocabulary, fallbacks=["lower"])
    assert split.lookup([0, 2]).tolist() == [VECTORS["the"]] * 2
    # "of" continues a word here, so it does not match the word "of".
    assert split.trainable_ids.tolist() == [1]
    assert list(split.vocabulary) == list(vocabulary.tokens)
    assert {rule.name: rule.num_types for rule in split.coverage.rules} == {"exact": 0, "metaspace": 1, "lower": 1}


def test_words_that_share_a_row_share_it_in_the_split(tmp_path):
    rows = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    words, row_of = ["a", "b", "c", "d"], np.array([2, 0, 2, 1])
    shared = WordVectors(words, rows, "by hand", row_of=row_of)
    assert np.array_equal(shared.vectors, rows[row_of]) and np.array_equal(shared.take([3, 0]), rows[[1, 2]])
    split = build(["", "c", "x", "a", "b"], shared)
    # Rows 0 and 2, and the zero row.
    assert split.num_frozen == 3
    assert split.remap[1] == split.remap[3]
    assert split.lookup([1, 3, 4]).tolist() == [[5, 6], [5, 6], [1, 2]]
    write_frozen(
        tmp_path / "f.h5", np.vstack([rows, np.zeros((1, 2), np.float32)]), words=words, row_of=row_of, zero_row=3
    )
    on_table = build(["", "c", "x", "a", "b"], tmp_path / "f.h5")
    assert np.shares_memory(on_table.frozen, on_table.table.vectors) and on_table.remap.tolist() == [3, 2, ~0, 2, 0]
    assert np.array_equal(on_table.combine(), split.combine())
    extended = build(["c"], tmp_path / "f.h5", extend_vocabulary=True)
    assert list(extended.vocabulary) == ["c", "a", "b", "d"] and extended.remap.tolist() == [2, 2, 0, 1]
    on_table.save_frozen(tmp_path / "copy.h5")
    assert open_frozen(tmp_path / "copy.h5", verify=True).row_of.tolist() == row_of.tolist()
    assert list(read_vectors(tmp_path / "copy.h5").words) == words


def test_the_report_has_the_sizes_of_the_tables():
    sizes = build(fallbacks=["lower"]).coverage.sizes
    assert (sizes.num_tokens, sizes.dim, sizes.num_frozen, sizes.num_trainable) == (7, 2, 2, 4)
    assert (sizes.frozen_bytes, sizes.trainable_bytes, sizes.dense_bytes) == (16, 32, 56)
    narrow = build(frozen_dtype="int8").coverage.sizes
    assert narrow.frozen_bytes == 2 * (2 + 4)


def test_oov_rows_start_from_the_spelling_of_tokens():
    class Lengths:
        """Return rows that encode the token and the known words."""

        def make_rows(self, tokens, known, generator):
            self.tokens, self.words = list(tokens), list(known.words)
            return np.array([[len(token), 0] for token in tokens], np.float32)

    lengths = Lengths()
    split = build(["", "[UNK]", "the", "zzz", "of", "yy"], oov_initializer=lengths, trainable_tokens=["of"])
    assert (lengths.tokens, lengths.words) == (["zzz", "yy"], ["the", "of"])
    assert split.lookup([3, 4, 5]).tolist() == [[3, 0], VECTORS["of"], [2, 0]]
    # The spelling of "[UNK]" is not used.
    assert (np.abs(split.lookup([1])) <= 0.05).all()
    build(read_vocabulary(["\u2581the", "\u2581zzz", "s"], marks="metaspace"), oov_initializer=lengths)
    assert lengths.tokens == ["zzz", "s"]


def test_invalid_numbers_of_tokens_are_refused():
    for options in (
        {"train_most_frequent": 1.5},
        {"train_most_frequent": "2"},
        {"min_count": "2"},
        {"min_count": None},
    ):
        with pytest.raises(SplitError, match=r"must be an? (integer|number).* Received: "):
            build_split(["the"], {"the": [1.0]}, counts=[1], **options)


def test_options_of_reading_are_accepted(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 inf\n")
    with pytest.warns(VectorFileWarning, match="replaced by 0: 1 "):
        assert build(["the"], path, non_finite="zero").lookup([0]).tolist() == [[1.0, 0.0]]
    with pytest.raises(VectorFormatError, match="expected dim=3"):
        build(["the"], path, dim=3)
    with pytest.raises(
        TypeError, match="unexpected keyword argument 'fallback'; the options of a source are dim, format"
    ):
        build(["the"], path, fallback=["lower"])


def test_few_matches_give_a_warning():
    with pytest.warns(NoMatchWarning, match=r"Only 1 of the 1,000 tokens has a vector in dict.*the lines"):
        build(["the", *map(str, range(999))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(["the", *map(str, range(98))])
