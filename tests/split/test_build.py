"""build_split: the tokens that freeze, train or share a row, compared with the rules applied token by token."""

from collections import Counter

import numpy as np
import pytest

from splitembed import SplitTable, build_split, save_frozen
from splitembed.errors import NoMatchWarning, SplitError, TokenIdError, UnknownTokenError
from splitembed.tables import FrozenTable
from splitembed.vectors import WordVectors

VECTORS = {
    "the": [1.0, 1.5],
    "of": [2.0, 2.5],
    "cat": [3.0, 3.5],
    "unk": [8.0, 8.0],
    "<unk>": [9.0, 9.0],
    "": [7.0, 7.0],
}
VOCABULARY = ["", "[UNK]", "the", "zzz", "cat"]


def build(vocabulary=VOCABULARY, source=VECTORS, **options) -> SplitTable:
    return build_split(vocabulary, source, **{"oov_initializer": "zeros", "seed": 0, **options})


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {a} {b}\n" for word, (a, b) in VECTORS.items() if word))
    return path


@pytest.fixture(params=["dict", "frozen.h5"])
def source(request, tmp_path, text):
    """Return the same vectors in memory and as a shared table."""
    if request.param == "dict":
        return VECTORS
    save_frozen(tmp_path / "glove.h5", text)
    return tmp_path / "glove.h5"


def test_every_source_gives_the_same_rows(text, source):
    pair = list(VECTORS), np.array(list(VECTORS.values()), np.float32)
    expected = build().combine()
    for each in (text, pair, source):
        np.testing.assert_array_equal(build(source=each).combine(), expected)


def test_known_tokens_freeze_and_the_others_train(source):
    split = build(source=source)
    assert split.trainable_ids.tolist() == [1, 3]
    assert split.lookup([2, 4]).tolist() == [VECTORS["the"], VECTORS["cat"]]
    assert list(split.vocabulary) == VOCABULARY


def test_padding_is_zero_and_frozen_and_reserved_tokens_never_match(source):
    """C3: the file has rows for "" and for words like [UNK], which ids 0 and 1 do not get."""
    split = build(source=source)
    assert split.padding == 0 and split.lookup([0]).tolist() == [[0.0, 0.0]] and split.remap[0] >= 0
    assert split.lookup([1]).tolist() == [[0.0, 0.0]] and split.remap[1] < 0


def test_C1_a_word_index_starts_at_1():
    split = build({"red": 1, "sky": 2}, {"red": [1.0], "sky": [2.0]})
    assert split.num_tokens == 3 and split.lookup([[2, 1, 0]]).tolist() == [[[2.0], [1.0], [0.0]]]


def test_Y2_Y4_only_the_exact_token_matches():
    split = build(["The", "zzz", "unk", "[UNK]"])
    assert split.trainable_ids.tolist() == [0, 1, 3]
    # A token of the vocabulary matches as a word.
    assert split.lookup([2]).tolist() == [VECTORS["unk"]]
    assert split.coverage.num_matched == 1


def test_chosen_tokens_start_from_their_vector(source):
    for chosen in (["cat"], [4], [False] * 4 + [True]):
        split = build(source=source, trainable_tokens=chosen)
        assert split.trainable_ids.tolist() == [1, 3, 4]
        assert split.lookup([4]).tolist() == [VECTORS["cat"]]
    with pytest.raises(UnknownTokenError, match="'dog'"):
        build(trainable_tokens=["dog"])
    with pytest.raises(TokenIdError, match="5"):
        build(trainable_tokens=[5])
    with pytest.raises(SplitError, match="padding id 0"):
        build(trainable_tokens=[0])


def test_the_most_frequent_known_tokens_train(source):
    vocabulary = ["", "[UNK]", "of", "zzz", "the", "cat"]
    counts = Counter({"zzz": 99, "the": 5, "cat": 7, "of": 5, "[UNK]": 50})
    # Ties go to the smaller id.
    for k, chosen in enumerate([[], [5], [2, 5], [2, 4, 5], [2, 4, 5]]):
        split = build(vocabulary, source, train_most_frequent=k, counts=counts)
        assert split.trainable_ids.tolist() == sorted([1, 3, *chosen])
    with pytest.raises(SplitError, match="`train_most_frequent` needs `counts`"):
        build(train_most_frequent=1)
    with pytest.raises(SplitError, match="0 or more. Received: -1"):
        build(train_most_frequent=-1, counts=counts)


def test_rare_oov_tokens_share_the_row_of_unk(source):
    vocabulary = ["", "[UNK]", "rare", "often", "cat", "rarer"]
    counts = {"rare": 2, "often": 3, "cat": 1, "rarer": 0}
    split = build(vocabulary, source, counts=counts, min_count=3, oov_initializer="uniform")
    assert split.num_trainable == 2
    assert split.remap[2] == split.remap[5] == split.remap[1] < 0
    assert split.remap[3] < 0 and split.remap[3] != split.remap[1]
    assert split.lookup([4]).tolist() == [VECTORS["cat"]]
    own = build(vocabulary, source, counts=counts, min_count=3, trainable_tokens=["rarer"])
    # Named tokens have a trainable row each.
    assert own.remap[5] not in (own.remap[1], own.remap[2])
    with pytest.raises(SplitError, match="`min_count` needs `counts`"):
        build(min_count=2)
    with pytest.raises(SplitError, match="2 rare tokens share the row of \\[UNK\\], but the vocabulary has no"):
        build(["rare", "often", "rarer"], counts=counts, min_count=3)
    assert build(["rare", "often", "oov"], counts={"often": 9}, min_count=3, unknown="oov").num_trainable == 2


def test_counts_without_min_count_merge_no_rows():
    """Tokens without a count are rare only with `min_count`."""
    split = build(["[UNK]", "new", "the", "other"], counts={"the": 3}, train_most_frequent=1)
    assert split.num_trainable == 4 and len(set(split.remap.tolist())) == 4
    assert build({"new": 1, "the": 2}, counts={"the": 3}, train_most_frequent=1).num_trainable == 2


def test_extend_vocabulary_appends_every_other_word(source):
    split = build(source=source, extend_vocabulary=True)
    added = [word for word in VECTORS if word and word not in VOCABULARY]
    if "" in VECTORS and len(split.vocabulary) > len(VOCABULARY) + len(added):
        # In memory, "" is a word of the source; the vocabulary already has it as padding.
        added.append("")
    assert list(split.vocabulary) == VOCABULARY + added
    assert split.lookup(split.ids(added)).tolist() == [VECTORS[word] for word in added]
    assert split.num_trainable == build(source=source).num_trainable
    assert split.lookup([0]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("name", ["zeros", "uniform", "normal", "mean"])
def test_oov_rows_start_from_the_initializer_and_its_seed(name, source):
    rows = [build(source=source, oov_initializer=name, seed=seed).trainable for seed in (1, 1, 2)]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert np.isfinite(rows[0]).all()
    if name in ("uniform", "normal"):
        assert (rows[0] != rows[2]).any()
    if name == "mean":
        # Of "the" and "cat", the known tokens.
        np.testing.assert_allclose(rows[0], [[2.0, 2.5]] * 2)


def test_three_splits_share_one_frozen_file(tmp_path):
    """No row is copied, `save` writes the trainable table alone, and `open` maps the frozen one."""
    save_frozen(tmp_path / "glove.h5", {word: row for word, row in VECTORS.items() if word})
    vocabularies = [["", "[UNK]", "the"], ["of", "zzz"], {"cat": 1, "the": 2, "new": 3}]
    for number, vocabulary in enumerate(vocabularies):
        split = build(vocabulary, tmp_path / "glove.h5")
        assert split.table.mapped and np.shares_memory(split.frozen, split.table.vectors)
        folder = tmp_path / str(number)
        split.save(folder)
        assert [path.name for path in folder.iterdir()] == ["trainable.h5"]
        opened = SplitTable.open(folder)
        assert opened.table.mapped and opened.table.path == tmp_path / "glove.h5"
        np.testing.assert_array_equal(opened.combine(), split.combine())
        np.testing.assert_array_equal(split.combine(), build(vocabulary, VECTORS).combine())


def test_padding_is_refused_on_a_shared_table_without_a_zero_row(tmp_path):
    build(["the", "cat"]).save(tmp_path)
    with pytest.raises(SplitError, match="no zero row for the padding id.*save_frozen"):
        build(["", "the"], tmp_path / "frozen.h5")
    assert build(["", "the"], tmp_path / "frozen.h5", padding=None).num_trainable == 1


def test_a_saved_split_is_a_source(tmp_path):
    build().save(tmp_path)
    split = build(["cat", "", "zzz"], tmp_path / "frozen.h5", padding=1)
    assert split.lookup([0, 1]).tolist() == [VECTORS["cat"], [0.0, 0.0]]


def test_all_known_and_none_known():
    assert build(["the", "of"]).num_trainable == 0
    with pytest.warns(NoMatchWarning, match="None of the 2 tokens has a vector in .*case and spelling"):
        split = build(["x", "y"])
    assert split.num_frozen == 0 and split.dim == 2 and split.lookup([1]).shape == (1, 2)


def test_coverage_reports_what_was_matched():
    coverage = build(counts={"the": 6, "zzz": 3, "cat": 1}).coverage
    assert (coverage.num_matched, coverage.num_tokens) == (2, 3)
    assert coverage.running_share == 0.7
    assert coverage.oov[0] == ("zzz", 3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_a_shared_table_of_low_precision_stays_shared(dtype, tmp_path):
    save_frozen(tmp_path / "glove.h5", {word: row for word, row in VECTORS.items() if word}, dtype=dtype)
    split = build(source=tmp_path / "glove.h5", trainable_tokens=["cat"])
    assert split.frozen_dtype == dtype and np.shares_memory(split.frozen, split.table.vectors)
    expected = build(trainable_tokens=["cat"]).with_frozen_dtype(dtype).combine()
    # "cat" trains from its rounded vector.
    np.testing.assert_allclose(split.combine(), expected, rtol=2**-7)
    split.save(tmp_path / "model")
    np.testing.assert_array_equal(SplitTable.open(tmp_path / "model").combine(), split.combine())
    assert build(frozen_dtype=dtype).frozen_dtype == dtype


def test_rows_without_a_word_match_no_token(tmp_path):
    """A saved table may hold unused rows, whose word is empty and matches nothing."""
    SplitTable.from_arrays([[9.0, 9.0], [1.0, 1.0]], [1], np.empty((0, 2)), vocabulary=["a"]).save_frozen(
        tmp_path / "u.h5"
    )
    split = build(["[UNK]", "a"], tmp_path / "u.h5", extend_vocabulary=True)
    assert list(split.vocabulary) == ["[UNK]", "a"]
    assert build(["a", ""], tmp_path / "u.h5", padding=None).trainable_ids.tolist() == [1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_a_shared_table_of_low_precision_is_not_widened_as_a_whole(tmp_path, monkeypatch, dtype):
    source = {f"w{number}": [number / 8, 1.0] for number in range(1000)}
    table = save_frozen(tmp_path / "glove.h5", source, dtype=dtype)
    taken = []
    take = FrozenTable.take
    monkeypatch.setattr(FrozenTable, "take", lambda self, rows: taken.append(len(rows)) or take(self, rows))
    # Reading it would widen every row.
    monkeypatch.setattr(WordVectors, "vectors", None)
    split = build(["", "w7", "w300", "new", "w2"], table, trainable_tokens=["w300"])
    assert np.shares_memory(split.frozen, table.vectors) and sum(taken) <= 2 * 3
    assert split.trainable.tolist() == [*take(table, [300]).tolist(), [0.0, 0.0]]


@pytest.mark.parametrize("padding", [None, 0])
def test_every_used_row_is_stored_once(padding):
    words = ["<pad>", "b", "c", "a", "oov"]
    rows = np.arange(6, dtype=np.float32).reshape(3, 2) + 1
    split = build(words, (["a", "b", "c"], rows), padding=padding)
    assert split.frozen.tolist() == rows.tolist() + ([] if padding is None else [[0.0, 0.0]])
    assert split.lookup([1, 2, 3]).tolist() == rows[[1, 2, 0]].tolist()
    assert not np.shares_memory(split.frozen, rows)


def test_integers_are_tokens():
    split = build_split([1001, 1002], {1001: [1.0, 2.0]}, oov_initializer="zeros")
    assert list(split.vocabulary) == ["1001", "1002"] and split.trainable_ids.tolist() == [1]
    assert split.lookup(split.ids(["1001"])).tolist() == [[1.0, 2.0]]
    # An integer in a selection is an id.
    with pytest.raises(TokenIdError, match="Token id 1002 is out of range"):
        split.thaw([1002])
    assert list(split.grow([1003, np.int64(1004)]).vocabulary) == ["1001", "1002", "1003", "1004"]
    by_matrix = SplitTable.from_matrix([[1.0], [2.0]], ["1002"], vocabulary=[1001, 1002])
    assert by_matrix.index == {"1001": 0, "1002": 1} and by_matrix.trainable.tolist() == [[2.0]]


def test_unset_seeds_follow_keras():
    keras = pytest.importorskip("keras")

    def rows_after(seed):
        keras.utils.set_random_seed(seed)
        split = build_split(["a", "b"], {"a": [1.0, 2.0]}, seed=None).grow(["c"]).grow(["d"], oov_initializer="normal")
        return split.trainable.tolist()

    assert rows_after(7) == rows_after(7) != rows_after(8)
    # Each draw is another one.
    assert len({row[0] for row in rows_after(7)}) == 3
