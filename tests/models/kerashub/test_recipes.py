"""The code of docs/language_models.md for each kind of tokenizer: strings with new tokens are read and written."""

import io
import re
from pathlib import Path

import keras
import numpy as np
import pytest

import splitembed as se
from tests.helpers import hub_models as hub

PAGE = (Path(__file__).parents[3] / "docs" / "language_models.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NEW, KINDS, SPLIT = BLOCKS[0], dict(zip(("bytes", "words", "sentences"), BLOCKS[1:4], strict=True)), BLOCKS[4]

LETTERS = ["!", *"abcdefghijklmno", "Ġ", "Ġa", "Ġb", "Ġc", "<|endoftext|>"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "fox", "##es"]


def sentence_pieces() -> bytes:
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c", "b c a", "c a b a b"] * 20),
        model_writer=written,
        vocab_size=14,
        model_type="UNIGRAM",
        pad_id=0,
        bos_id=2,
        eos_id=1,
        unk_id=3,
        pad_piece="<pad>",
        bos_piece="<bos>",
        eos_piece="<eos>",
        unk_piece="<unk>",
        hard_vocab_limit=False,
        user_defined_symbols=["<start_of_turn>", "<end_of_turn>"],
    )
    return written.getvalue()


def make_writer(kind: str):
    if kind == "bytes":
        vocabulary = {token: number for number, token in enumerate(LETTERS)}
        tokenizer = hub.models.GPT2Tokenizer(vocabulary=vocabulary, merges=["Ġ a", "Ġ b", "Ġ c"])
        preprocessor = hub.models.GPT2CausalLMPreprocessor(tokenizer, sequence_length=hub.LENGTH)
        task = hub.models.GPT2CausalLM(hub.make_backbone("gpt2", vocabulary_size=len(LETTERS)), preprocessor)
    else:
        tokenizer = hub.models.GemmaTokenizer(proto=sentence_pieces())
        preprocessor = hub.models.GemmaCausalLMPreprocessor(tokenizer, sequence_length=hub.LENGTH)
        backbone = hub.make_backbone("gemma", vocabulary_size=tokenizer.vocabulary_size())
        task = hub.models.GemmaCausalLM(backbone, preprocessor)
    hub.compile_task(task, keras.optimizers.Adam(0.05))
    return task


def run(lm, kind: str, folder, monkeypatch):
    """Run the page's code for one kind of tokenizer."""
    monkeypatch.chdir(folder)
    names = {"lm": lm}
    for block in (NEW, KINDS[kind], SPLIT):
        exec(block, names)
    return names["tokenizer"]


@pytest.mark.filterwarnings("error::splitembed.errors.NewTokenWarning")
@pytest.mark.parametrize("kind", ["bytes", "sentences"])
def test_a_model_reads_and_writes_new_tokens(kind, tmp_path, monkeypatch):
    lm = make_writer(kind)
    size = lm.backbone.vocabulary_size
    tokenizer = run(lm, kind, tmp_path, monkeypatch)
    ids = np.asarray(tokenizer("a b<call> c<result>")).tolist()
    assert [each for each in ids if each >= size] == [size, size + 1]
    assert lm.backbone.token_embedding.to_split().trainable_ids.tolist() == [size, size + 1]
    lm.fit(["a b<call>"] * 200, batch_size=2, verbose=0)
    assert lm.generate("a b", max_length=hub.LENGTH).count("<call>") and (tmp_path / "tools.h5").stat().st_size < 2**16
    # onto the base model
    rows, base = lm.backbone.token_embedding.to_split().combine(), make_writer(kind)
    se.load_trainable(tmp_path / "tools.h5", base)
    np.testing.assert_array_equal(base.backbone.token_embedding.to_split().combine()[:size], rows[:size])


@pytest.mark.filterwarnings("error::splitembed.errors.NewTokenWarning")
def test_a_classifier_reads_new_tokens(tmp_path, monkeypatch):
    tokenizer = hub.models.BertTokenizer(vocabulary=WORDS)
    preprocessor = hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=hub.LENGTH)
    backbone = hub.make_backbone("bert classifier", vocabulary_size=len(WORDS))
    lm = hub.models.BertTextClassifier(backbone, 2, preprocessor, dropout=0.0)
    tokenizer = run(lm, "words", tmp_path, monkeypatch)
    assert np.asarray(tokenizer("the <call>foxes")).tolist() == [5, 9, 7, 8]
    lm.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", jit_compile=False)
    before = hub.tables_of(lm)[0]
    lm.fit(np.array(["the <call> fox", "foxes"]), np.array([0, 1]), verbose=0)
    assert np.flatnonzero((hub.tables_of(lm)[0] != before).any(axis=1)).tolist() == [9]
