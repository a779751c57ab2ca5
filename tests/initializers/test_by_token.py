"""Initializers that compute rows from the spelling of tokens: their recognition, and what they are given."""

import numpy as np
import pytest

from splitembed.errors import SplitError
from splitembed.initializers import NgramRidge
from splitembed.initializers.by_token import make_token_rows, needs_tokens
from splitembed.vectors import WordVectors

GENERATOR = np.random.default_rng(0)
KNOWN = WordVectors([f"w{number}" for number in range(20)], np.arange(40, dtype=np.float32).reshape(20, 2))


class Recorder:
    """An initializer that records its arguments."""

    def make_rows(self, tokens, known, generator):
        self.arguments = tokens, known, generator
        return "unchecked"


@pytest.mark.parametrize("initializer", ["subwords", "ngrams", NgramRidge(), Recorder()])
def test_names_and_objects_that_need_tokens(initializer):
    assert needs_tokens(initializer)


@pytest.mark.parametrize("initializer", ["uniform", "glorot_uniform", Recorder, np.zeros, None])
def test_names_classes_and_callables_that_do_not_need_tokens(initializer):
    assert not needs_tokens(initializer)


@pytest.mark.parametrize("known", [None, KNOWN])
def test_an_object_is_given_a_list_of_tokens_the_known_words_and_the_generator(known):
    recorder = Recorder()
    assert make_token_rows(recorder, ("a", "the"), known, GENERATOR) == "unchecked"
    tokens, *others = recorder.arguments
    assert tokens == ["a", "the"] and type(tokens) is list
    assert others[0] is known and others[1] is GENERATOR


def test_ngrams_are_those_of_the_default_regression():
    pytest.importorskip("sklearn")
    rows = make_token_rows("ngrams", ["w3", "x"], KNOWN, GENERATOR)
    np.testing.assert_array_equal(rows, NgramRidge().make_rows(["w3", "x"], KNOWN))


def test_subwords_are_those_of_the_known_words():
    known = WordVectors(["a"], np.ones((1, 2), np.float32))
    known.subwords = Recorder()
    assert make_token_rows("subwords", ["b"], known, GENERATOR) == "unchecked"
    assert known.subwords.arguments == (["b"], known, GENERATOR)


def test_subwords_of_vectors_without_a_model_are_refused():
    with pytest.raises(SplitError, match=r'"subwords" needs vectors of a fastText .bin model. .*SubwordVectors\('):
        make_token_rows("subwords", ["a"], KNOWN, GENERATOR)


@pytest.mark.parametrize("initializer", ["subwords", Recorder()])
def test_a_number_of_tokens_is_refused(initializer):
    with pytest.raises(SplitError, match="`tokens` must be a sequence of tokens .* Received: their number, 2"):
        make_token_rows(initializer, 2, KNOWN, GENERATOR)


@pytest.mark.parametrize("name", ["subwords", "ngrams"])
def test_missing_known_words_are_refused(name):
    with pytest.raises(SplitError, match=f'"{name}" needs `known` words. Received: None'):
        make_token_rows(name, ["a"], None, GENERATOR)
