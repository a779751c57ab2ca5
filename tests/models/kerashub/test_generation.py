"""Texts with new tokens: trained until they follow a prompt, and named by the task's own tokenizer."""

import keras
import numpy as np
import pytest

import splitembed as se
from splitembed.errors import NewTokenWarning, SplitError, TokenIdError, UnknownTokenError
from tests.helpers import hub_models as hub
from tests.helpers.bits import all_same_bits

PROMPT = 3


def learn_to_follow(task, token, num_steps=60) -> hub.Inputs:
    """Train the rows until a token follows each prompt, and return the prompts."""
    hub.compile_task(task, keras.optimizers.Adam(0.1))
    prompts = hub.prompts_for(task, PROMPT)
    key = next(key for key in prompts if key.endswith("token_ids") and not key.startswith("encoder"))
    inputs = {**prompts, key: prompts[key].copy()}
    inputs[key][:, PROMPT] = token
    inputs[key.replace("token_ids", "padding_mask")] = (np.arange(hub.LENGTH) <= PROMPT) * np.ones((3, 1), np.int32)
    targets = np.roll(inputs[key], -1, axis=1)
    counts = (np.arange(hub.LENGTH) == PROMPT - 1) * np.ones((3, 1), np.float32)
    for _ in range(num_steps):
        task.train_on_batch(inputs, targets, sample_weight=counts)
    return prompts


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma"])
def test_a_new_token_is_generated_where_it_was_learned(name):
    task = hub.make_task(name)
    hub.freeze(task)
    # compiles the function that generates
    before = hub.generated(task, hub.prompts_for(task, PROMPT))
    assert (before < hub.NUM_TOKENS).all()
    hub.split(task, name)
    others = hub.other_weights(task)
    prompts = learn_to_follow(task, hub.NEW[1])
    texts = hub.generated(task, prompts)
    np.testing.assert_array_equal(texts[:, PROMPT], hub.NEW[1])
    hub.same_weights(hub.other_weights(task), others)
    se.combine_embedding(task)
    np.testing.assert_array_equal(hub.generated(task, prompts), texts)


def test_generation_uses_the_present_rows_without_another_compile():
    task = hub.make_task("gpt2")
    prompts = hub.prompts_for(task)
    before = hub.generated(task, prompts)
    hub.split(task, "gpt2")
    np.testing.assert_array_equal(hub.generated(task, prompts), before)
    layer = task.backbone.token_embedding
    # the states that the first new token is predicted from
    last = task.backbone(prompts)[:, 2].numpy()
    layer.assign_rows(hub.NEW[:1], 100 * last.mean(axis=0, keepdims=True))
    assert (hub.generated(task, prompts)[:, 3] == hub.NEW[0]).any()


# Tokenizers

# padding does not end a text, as in GPT-2
LETTERS = ["!", *"abcdefghijklmno", "Ġ", "Ġa", "Ġb", "Ġc", "<|endoftext|>"]
SIZE = len(LETTERS)
MERGES = ["Ġ a", "Ġ b", "Ġ c"]


def make_tokenizer(*new):
    """Make a tokenizer of some letters' byte pairs and new tokens, whose vocabulary is not in the order of ids."""
    tokens = [*LETTERS, *new]
    vocabulary = {token: tokens.index(token) for token in reversed(tokens)}
    unsplittable = ["<|endoftext|>", *new]
    return hub.models.GPT2Tokenizer(vocabulary=vocabulary, merges=MERGES, unsplittable_tokens=unsplittable)


def make_writer(tokenizer, num_tokens=SIZE):
    preprocessor = hub.models.GPT2CausalLMPreprocessor(tokenizer, sequence_length=hub.LENGTH)
    backbone = hub.make_backbone("gpt2", vocabulary_size=num_tokens)
    task = hub.models.GPT2CausalLM(backbone, preprocessor)
    hub.compile_task(task, keras.optimizers.Adam(0.01))
    return task


def test_texts_with_a_named_token_are_generated():
    task = make_writer(make_tokenizer("<call>", "<result>"))
    before = task.generate("a b", max_length=5)
    assert isinstance(before, str) and before.startswith("a b")
    se.split_embedding(task, ["Ġb", "c"], ["<call>", "<result>"])
    layer = task.backbone.token_embedding
    assert layer.to_split().trainable_ids.tolist() == sorted([LETTERS.index("c"), LETTERS.index("Ġb"), 21, 22])
    assert task.generate("a b", max_length=5) == before
    task.fit(["a b<call>", "a b<call>"] * 100, batch_size=2, verbose=0)
    assert task.generate("a b", max_length=hub.LENGTH).startswith("a b<call>")
    assert "<call>" in se.combine_embedding(task).generate("a b", max_length=hub.LENGTH)


def test_a_new_token_starts_like_a_text():
    task = make_writer(make_tokenizer("<call>"))
    se.split_embedding(task, new_tokens=["<call>"], like={"<call>": "a b b"})
    rows = task.backbone.token_embedding.to_split().combine()
    spelled = [LETTERS.index(token) for token in ("a", "Ġb", "Ġb")]
    np.testing.assert_allclose(rows[SIZE], rows[spelled].mean(axis=0), rtol=1e-6)


def test_new_tokens_unknown_to_the_tokenizer_are_added():
    task = make_writer(make_tokenizer())
    with pytest.warns(NewTokenWarning, match="does not know the new tokens '<call>'"):
        se.split_embedding(task, ["a"], ["<call>"])
    assert task.backbone.vocabulary_size == SIZE + 1
    assert task.backbone.token_embedding.to_split().trainable_ids.tolist() == [1, SIZE]
    writer = hub.models.GPT2CausalLM(task.backbone, make_writer(make_tokenizer("<call>")).preprocessor)
    assert writer.generate("a<call>", max_length=6).startswith("a<call>")


@pytest.mark.parametrize(
    ("names", "new", "message"),
    [
        ((), ["a"], "'a' is not new: it has the id 1"),
        ((), ["<result>", "<call>"], "'<result>' has the id 22 in the vocabulary, and would get the id 21"),
        ((), ["<call>", "<call>"], "different names"),
        ((), ["<call>", ""], "a list of names"),
        (["zzz"], (), "zzz"),
        (["<call>"], (), "<call>"),
    ],
)
def test_invalid_names_are_refused(names, new, message):
    task = make_writer(make_tokenizer("<call>", "<result>"))
    with pytest.raises((SplitError, TokenIdError, UnknownTokenError), match=message):
        se.split_embedding(task, names, new)
    assert not hub.classes_of_ours(task) and task.backbone.vocabulary_size == SIZE


def test_a_table_longer_than_its_tokenizer_is_split():
    # padded to a round number: a tokenizer that grows uses the reserved rows first
    task = make_writer(make_tokenizer(), num_tokens=22)
    with pytest.warns(NewTokenWarning, match=r"GPT2Tokenizer does not know .*'<call>' \(id 21\), '<result>' \(id 22\)"):
        se.split_embedding(task, ["a"], ["<call>", "<result>"])
    split = task.backbone.token_embedding.to_split()
    assert split.trainable_ids.tolist() == [1, 21, 22] and task.backbone.vocabulary_size == 23
    # both start as the mean
    np.testing.assert_array_equal(*split.lookup([21, 22]))
    task = make_writer(make_tokenizer("<call>"), num_tokens=24)
    with pytest.raises(SplitError, match="'<call>' is not new: it has the id 21.* as new_tokens={'<call>': 21}"):
        se.split_embedding(task, (), ["<call>"])
    se.split_embedding(task, (), {"<call>": 21})
    assert (
        task.backbone.token_embedding.to_split().trainable_ids.tolist() == [21] and task.backbone.vocabulary_size == 24
    )


def test_a_classifier_takes_strings():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "brown", "fox", "##es", "[call]"]
    tokenizer = hub.models.BertTokenizer(vocabulary=words, special_tokens_in_strings=True)
    preprocessor = hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=hub.LENGTH)
    backbone = hub.make_backbone("bert classifier", vocabulary_size=10)
    task = hub.models.BertTextClassifier(backbone, 2, preprocessor, dropout=0.0)
    task.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", jit_compile=False)
    task.output_dense.activation = keras.activations.softmax
    task.backbone.trainable = task.output_dense.trainable = False
    texts = np.array(["the quick fox", "brown foxes"])
    before = task.predict(texts, verbose=0)
    se.split_embedding(task, ["quick", "##es"], 1)
    assert task.backbone.token_embedding.to_split().trainable_ids.tolist() == [6, 9, 10]
    all_same_bits([task.predict(texts, verbose=0)], [before])
    tables = hub.tables_of(task)[0]
    task.fit(np.array(["the quick fox", "brown foxes [UNK]"]), np.array([0, 1]), epochs=2, verbose=0)
    assert np.flatnonzero((hub.tables_of(task)[0] != tables).any(axis=1)).tolist() == [6, 9]
