"""Hugging Face tokenizers: row i belongs to the token that the tokenizer maps to i, by its JSON and its object."""

import itertools
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import UnknownTokenError, VocabularyError
from splitembed.vocabulary import read_vocabulary

TEXTS = [
    "the sky is red, isn't it?",
    "the skies are blue...",
    "playing plays played player",
    "a café, (2024): 20 players!",
] * 3
WORDS = sorted({word for text in TEXTS for word in text.replace(",", " ").split() if word.isalpha()})
SPECIAL = ["[UNK]", "[PAD]", "[CLS]"]
PIECES = [("[UNK]", 0.0), ("▁", -3.0), ("ing", -3.0), ("s", -3.0), ("er", -3.0), ("i", -4.0), ("▁i", -4.0)]
PIECES += [(f"▁{word}", -5.0) for word in ("the", "sky", "play", "red", "is", "blue", "a", "20", "café", "are", "it?")]
PIECES += [(character, -9.0) for character in "abcdefghijklmnopqrstuv,.():'?024é" if character not in "si"]

GOLDEN = b"""{
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 7, "content": "splitembed", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "special": false}
  ],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {"[PAD]": 0, "[UNK]": 1, "play": 2, "##ing": 3, ",": 4, "##s": 5, "ing": 6}}
}"""  # noqa: E501


def write(folder, content):
    path = folder / "any_name"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def tokenizer_json(vocab, added=(), *, kind="WordLevel", padding=None, **model):
    tokens = [{"id": index, "content": content, "special": special} for index, content, special in added]
    return {"model": {"type": kind, "vocab": vocab, **model}, "added_tokens": tokens, "padding": padding}


def test_golden_file(tmp_path):
    path = write(tmp_path, GOLDEN)
    vocabulary = read_vocabulary(path)
    assert vocabulary.tokens == ("[PAD]", "[UNK]", "play", "##ing", ",", "##s", "ing", "splitembed")
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (0, 1, {0, 1})
    assert vocabulary.spellings == ("[PAD]", "[UNK]", "play", None, ",", None, "ing", "splitembed")
    assert vocabulary.marks == "wordpiece"
    assert vocabulary.ids(["##ing", "splitembed"]).tolist() == [3, 7]
    tokenizers = pytest.importorskip("tokenizers")
    ids = tokenizers.Tokenizer.from_file(str(path)).encode("Playing splitembed, zzz").ids
    assert [vocabulary.tokens[index] for index in ids] == ["play", "##ing", "splitembed", ",", "[UNK]"]


def trained_tokenizers():
    """One tokenizer of each model, with each way of marking, trained on the texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    def train(model, trainer, pre_tokenizer, normalizer=None):
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizer
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.train_from_iterator(TEXTS, trainer)
        return tokenizer

    # The training of Unigram is not reproducible.
    unigram = Tokenizer(models.Unigram(PIECES, unk_id=0, byte_fallback=False))
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.add_special_tokens(SPECIAL)
    bert, spaces = pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Metaspace()
    options = {"vocab_size": 90, "special_tokens": SPECIAL, "show_progress": False}
    return {
        "wordpiece": train(
            models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(**options), bert, normalizers.Lowercase()
        ),
        "byte-level": train(
            models.BPE(),
            trainers.BpeTrainer(**{**options, "vocab_size": 320}, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
            pre_tokenizers.ByteLevel(add_prefix_space=True),
        ),
        "word-end": train(
            models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
            trainers.BpeTrainer(**options, end_of_word_suffix="</w>"),
            bert,
        ),
        "bpe-prefix": train(
            models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"),
            trainers.BpeTrainer(**options, continuing_subword_prefix="##"),
            bert,
        ),
        "bpe-metaspace": train(models.BPE(unk_token="[UNK]"), trainers.BpeTrainer(**options), spaces),
        "unigram": unigram,
        "word-level": train(
            models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(**options), pre_tokenizers.Whitespace()
        ),
    }


KINDS = {
    "wordpiece": "wordpiece",
    "byte-level": "byte-level",
    "word-end": "word-end",
    "bpe-prefix": "wordpiece",
    "bpe-metaspace": "metaspace",
    "unigram": "metaspace",
    "word-level": None,
}


@pytest.fixture(scope="module")
def trained():
    pytest.importorskip("tokenizers")
    return trained_tokenizers()


@pytest.mark.parametrize("kind", KINDS)
def test_row_i_belongs_to_the_token_that_a_trained_tokenizer_maps_to_i(trained, kind, tmp_path):
    tokenizer = trained[kind]
    vocabulary = read_vocabulary(tokenizer)
    assert vocabulary.marks == KINDS[kind]
    assert vocabulary.num_tokens == tokenizer.get_vocab_size()
    assert list(vocabulary.tokens) == [tokenizer.id_to_token(index) for index in range(vocabulary.num_tokens)]
    for text in [*TEXTS, "never seen ☃ [CLS] the"]:
        encoding = tokenizer.encode(text)
        # Unigram keeps the text of unknown tokens.
        known = [index != vocabulary.unknown for index in encoding.ids]
        tokens = [vocabulary.tokens[index] for index in encoding.ids]
        assert list(itertools.compress(tokens, known)) == list(itertools.compress(encoding.tokens, known))
    assert vocabulary.reserved == {tokenizer.token_to_id(token) for token in SPECIAL}
    assert vocabulary.padding == tokenizer.token_to_id("[PAD]")
    assert vocabulary.unknown == (None if kind == "byte-level" else tokenizer.token_to_id("[UNK]"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert read_vocabulary(tmp_path / "tokenizer.json") == vocabulary
    assert read_vocabulary(str(tmp_path / "tokenizer.json"), marks=None).spellings is None


@pytest.mark.parametrize("kind", [kind for kind, marks in KINDS.items() if marks])
def test_a_whole_word_is_spelled_as_it_is_and_its_pieces_have_no_spelling(trained, kind):
    tokenizer, vocabulary = trained[kind], read_vocabulary(trained[kind])
    whole = 0
    for word in WORDS:
        ids = tokenizer.encode(word).ids
        if len(ids) == 1:
            assert vocabulary.spellings[ids[0]] == word
            whole += 1
        continuing = ids[:-1] if kind == "word-end" else ids[1:]
        assert {vocabulary.spellings[index] for index in continuing} <= {None}
    assert whole >= 3


@pytest.mark.parametrize("kind", [kind for kind, marks in KINDS.items() if marks])
def test_a_spelling_is_tokenized_to_its_row(trained, kind):
    """Every spelling, alone in a text, becomes the token it belongs to; a sign may stand behind a letter instead."""
    tokenizer, vocabulary = trained[kind], read_vocabulary(trained[kind])
    ordinary = [index for index in range(vocabulary.num_tokens) if vocabulary.is_ordinary[index]]
    spelled = [index for index in ordinary if vocabulary.spellings[index] is not None]
    assert len(spelled) >= 10
    assert any(vocabulary.spellings[index] is None for index in ordinary)
    for index in spelled:
        word = vocabulary.spellings[index]
        behind = tokenizer.encode("a" + word).ids[-1:] if len(word) == 1 and not word.isalnum() else []
        assert tokenizer.encode(word).ids == [index] or behind == [index], word


def test_marks_can_be_overridden(trained):
    automatic = read_vocabulary(trained["unigram"])
    assert read_vocabulary(trained["unigram"], marks="wordpiece").spellings == automatic.tokens
    assert read_vocabulary(trained["unigram"], marks="metaspace") == automatic
    assert read_vocabulary(trained["word-level"], marks="metaspace").marks == "metaspace"


# Added tokens, gaps and what the library numbers


def load(content):
    """The tokenizer that the library makes of the JSON."""
    import tokenizers

    whole = {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, **content}
    defaults = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    whole["added_tokens"] = [{**defaults, **token} for token in content["added_tokens"]]
    whole["model"] = {"unk_token": "[UNK]", **content["model"]}
    return tokenizers.Tokenizer.from_str(json.dumps(whole))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9), min_size=1),
    st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from("abijk"), st.booleans()),
        max_size=4,
        unique_by=lambda each: each[1],
    ),
    st.booleans(),
)
def test_row_i_belongs_to_the_token_that_the_library_maps_to_i_or_the_file_is_refused(
    tmp_path_factory, vocab, added, is_right
):
    pytest.importorskip("tokenizers")
    # With the ids of the library and without gaps in the model, every file is read.
    if is_right:
        vocab = {token: index for index, token in enumerate(vocab)}
        ids = load(tokenizer_json(vocab, added)).get_vocab()
        added = [(ids[token], token, special) for _, token, special in added]
    content = tokenizer_json(vocab, added)
    tokenizer = load(content)
    try:
        vocabulary = read_vocabulary(write(tmp_path_factory.mktemp("json"), content))
    except VocabularyError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert ("the tokenizers library gives it" in refusal or "with the same id" in refusal) and not is_right
        return
    sent = {token: tokenizer.encode(token).ids for token in {*vocab, *(token for _, token, _ in added)}}
    assert {token: vocabulary.ids(token).tolist() for token in sent} == sent
    unsent = set(range(vocabulary.num_tokens)) - set(itertools.chain(*sent.values()))
    assert vocabulary.reserved == unsent | {index for index, _, special in added if special}


def test_gaps_are_reserved_and_shift_no_ids(tmp_path):
    content = tokenizer_json({"a": 0, "b": 3}, [(4, "X", False)], kind="WordLevel")
    vocabulary = read_vocabulary(SimpleNamespace(to_str=lambda: json.dumps(content)))
    assert vocabulary.tokens == ("a", "[no token 1]", "[no token 2]", "b", "X")
    assert vocabulary.reserved == {1, 2}
    assert vocabulary.ids(["b", "X"]).tolist() == [3, 4]


def test_special_added_tokens_are_reserved_and_others_are_words(tmp_path):
    content = tokenizer_json({"a": 0, "▁b": 1}, [(2, "[CLS]", True), (3, "new", False), (1, "▁b", False)])
    content["decoder"] = {"type": "Metaspace", "replacement": "▁"}
    vocabulary = read_vocabulary(write(tmp_path, content))
    assert vocabulary.reserved == {2}
    assert vocabulary.spellings == (None, "▁b", "[CLS]", "new")
    without = read_vocabulary(write(tmp_path, {**content, "added_tokens": content["added_tokens"][:2]}))
    assert without.spellings == (None, "b", "[CLS]", "new")


def test_a_token_that_unigram_lists_twice_has_its_last_id(tmp_path):
    vocab = [["<unk>", 0.0], ["a", -1.0], ["b", -2.0], ["a", -3.0]]
    vocabulary = read_vocabulary(write(tmp_path, tokenizer_json(vocab, kind="Unigram", unk_id=0)))
    assert vocabulary.tokens == ("<unk>", "[no token 1]", "b", "a")
    assert (vocabulary.unknown, vocabulary.reserved) == (0, {0, 1})
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.Unigram([tuple(each) for each in vocab], unk_id=0, byte_fallback=False)
    assert tokenizers.Tokenizer(model).encode("abq").ids == [3, 2, 0]


# Padding and unknown


@pytest.mark.parametrize(
    ("content", "padding", "unknown"),
    [
        (tokenizer_json({"a": 0, "[UNK]": 1}, unk_token="[UNK]"), None, 1),
        (tokenizer_json({"a": 0, "[UNK]": 1}, unk_token="<unk>"), None, None),
        (tokenizer_json({"a": 0, "[UNK]": 1}, kind="BPE", unk_token=None), None, None),
        (tokenizer_json([["a", 0.0], ["b", 0.0]], kind="Unigram", unk_id=1), None, 1),
        (tokenizer_json([["a", 0.0], ["b", 0.0]], kind="Unigram", unk_id=None), None, None),
        (tokenizer_json({"a": 0, "[PAD]": 1}), None, None),
        (tokenizer_json({"a": 0, "[PAD]": 1}, [(1, "[PAD]", False)]), None, None),
        (tokenizer_json({"a": 0, "[PAD]": 1}, [(1, "[PAD]", True)]), 1, None),
        (tokenizer_json({"a": 0}, [(1, "<pad>", True)]), 1, None),
        (tokenizer_json({"a": 0, "z": 1}, padding={"pad_id": 1, "pad_token": "z"}), 1, None),
        (tokenizer_json({"z": 0}, [(1, "<pad>", True)], padding={"pad_id": 0, "pad_token": "z"}), 0, None),
        (tokenizer_json({"": 0, "a": 1}), None, None),
    ],
)  # fmt: skip
def test_padding_and_unknown(tmp_path, content, padding, unknown):
    vocabulary = read_vocabulary(write(tmp_path, content))
    assert (vocabulary.padding, vocabulary.unknown) == (padding, unknown)
    assert {index for index in (padding, unknown) if index is not None} <= vocabulary.reserved


@pytest.mark.parametrize(
    ("pad_id", "pad_token", "held"), [(0, "[PAD]", "'a'"), (9, "[PAD]", "None"), (-1, "a", "None"), ("0", "a", "None")]
)
def test_contradictory_padding_is_refused_unless_the_user_sets_it(tmp_path, pad_id, pad_token, held):
    path = write(tmp_path, tokenizer_json({"a": 0, "b": 1}, padding={"pad_id": pad_id, "pad_token": pad_token}))
    with pytest.raises(VocabularyError, match=f"found padding with id .* is {held}; expected one token. Pass the id"):
        read_vocabulary(path)
    assert read_vocabulary(path, padding=None).padding is None
    assert read_vocabulary(path, padding="b").padding == 1


def test_padding_that_the_library_adds_with_another_token_is_refused():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding()
    assert [each.ids for each in tokenizer.encode_batch(["a", "a a"])] == [[0, 0], [0, 0]]
    with pytest.raises(VocabularyError, match=r"Tokenizer: found padding with id 0 and token '\[PAD\]', but"):
        read_vocabulary(tokenizer)
    assert read_vocabulary(tokenizer, padding=None).tokens == ("a", "[UNK]")


def test_explicit_padding_and_unknown(tmp_path):
    path = write(tmp_path, GOLDEN)
    assert read_vocabulary(path, padding=None, unknown="play").reserved == {0, 1, 2}
    with pytest.raises(UnknownTokenError, match="Token '<pad>' is not among the 8 tokens"):
        read_vocabulary(path, padding="<pad>")


# Objects


def test_fast_tokenizers_of_transformers_by_their_attributes():
    backend = SimpleNamespace(to_str=GOLDEN.decode)
    assert read_vocabulary(SimpleNamespace(backend_tokenizer=backend)) == read_vocabulary(backend)
    assert read_vocabulary(SimpleNamespace(backend_tokenizer=backend, pad_token_id=None)).padding == 0
    assert read_vocabulary(SimpleNamespace(backend_tokenizer=backend, pad_token_id=4)).padding == 4
    assert read_vocabulary(SimpleNamespace(backend_tokenizer=backend, pad_token_id=99)).padding == 0


def test_fast_tokenizers_of_transformers(trained):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained["wordpiece"], unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]"
    )
    tokenizer.add_tokens(["zebra"])
    vocabulary = read_vocabulary(tokenizer)
    assert vocabulary.num_tokens == len(tokenizer)
    ids = tokenizer("the zebra plays ☃")["input_ids"]
    assert [vocabulary.tokens[index] for index in ids] == tokenizer.convert_ids_to_tokens(ids)
    assert (vocabulary.padding, vocabulary.unknown) == (tokenizer.pad_token_id, tokenizer.unk_token_id)
    assert vocabulary.reserved == set(tokenizer.all_special_ids)


def test_ids_of_an_object_are_kept_where_loading_its_file_would_change_them(tmp_path):
    content = tokenizer_json({"a": 0, "b": 1}, [(5, "X", True)])
    vocabulary = read_vocabulary(SimpleNamespace(to_str=lambda: json.dumps(content)))
    assert (vocabulary.tokens[5], vocabulary.reserved) == ("X", {2, 3, 4, 5})
    with pytest.raises(VocabularyError, match="any_name: found the added token 'X' with id 5; expected id 2, which"):
        read_vocabulary(write(tmp_path, content))


def test_an_object_that_cannot_be_written():
    tokenizers = pytest.importorskip("tokenizers")

    class Split:
        def pre_tokenize(self, text):
            raise AssertionError("not used")

    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Split())
    with pytest.raises(VocabularyError, match="Tokenizer cannot be written as JSON, .* Pass a list of its tokens"):
        read_vocabulary(tokenizer)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tokenizer_json({}), "any_name: the tokenizer has no tokens. Train it first"),
        (tokenizer_json([], kind="Unigram"), "any_name: the tokenizer has no tokens"),
        (tokenizer_json({"a": 0, "b": 0}), "tokens 'a' and 'b' with the same id 0"),
        (tokenizer_json({"a": 0, "b": 1}, [(1, "X", True)]), "'X' with id 1; expected id 2, which the"),
        (tokenizer_json({"a": 0}, [(1, "a", True)]), "'a' with id 1; expected id 0, which the"),
        (tokenizer_json({"a": -1}), "The id of token 'a' must be an integer, 0 or more. Received: -1"),
        (tokenizer_json({"a": 0.5}), "The id of token 'a' must be an integer"),
        (tokenizer_json({"a": 0, "b": 2**40}), "any_name: found 'b' with id 1099511627776, but only 2 tokens"),
        (tokenizer_json({"\ud800": 0}), "lone surrogate"),
        (tokenizer_json(["a", "b"], kind="Unigram"), "`model.vocab` must be token -> id, or a list"),
        (tokenizer_json([["a", 0.0, 1]], kind="Unigram"), "`model.vocab` must be"),
        (tokenizer_json([[None, 0.0]], kind="Unigram"), r"`model.vocab` must be .* \[\[None, 0.0\]\]"),
        (tokenizer_json("ab"), "`model.vocab` must be .* Received: str"),
        (tokenizer_json([["a", 0.0]], kind="Unigram", unk_id=1), "`model.unk_id` must be an id .* Received: 1"),
        (tokenizer_json([["a", 0.0]], kind="Unigram", unk_id="a"), "`model.unk_id` must be"),
        ({**tokenizer_json({"a": 0}), "added_tokens": {"X": 1}}, "`added_tokens` must be a list of objects"),
        ({**tokenizer_json({"a": 0}), "added_tokens": ["X"]}, "`added_tokens` must be .* Received: 'X'"),
        ({**tokenizer_json({"a": 0}), "added_tokens": [{"content": "X"}]}, "`added_tokens` must be"),
        ({**tokenizer_json({"a": 0}), "added_tokens": [{"id": True, "content": "X"}]}, "`added_tokens` must be"),
    ],
)  # fmt: skip
def test_refused_json(tmp_path, content, message):
    with pytest.raises(VocabularyError, match=message) as caught:
        read_vocabulary(write(tmp_path, content))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "parts",
    [
        {"model": {"vocab": {"a": 0}, "end_of_word_suffix": 5}},
        {"model": {"vocab": {"a": 0}, "continuing_subword_prefix": 5}},
        {"model": {"vocab": {"a": 0}}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": 5}},
        {"model": {"vocab": {"a": 0}}, "pre_tokenizer": {"type": "Metaspace", "replacement": 5}},
    ],
)
def test_invalid_marks_are_refused(tmp_path, parts):
    with pytest.raises(VocabularyError, match="any_name: found JSON of a tokenizer with invalid marks"):
        read_vocabulary(write(tmp_path, parts))


@pytest.mark.parametrize("token_id", [[0], {}, None, "0", 0.0, True])
def test_ids_that_are_not_integers_are_refused(tmp_path, token_id):
    added = [{"id": 0, "content": "a", "special": True}]
    with pytest.raises(VocabularyError, match="The id of token 'a' must be an integer.* in .*any_name"):
        read_vocabulary(write(tmp_path, {"model": {"vocab": {"a": token_id}}, "added_tokens": added}))
