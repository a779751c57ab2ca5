"""Files of trained tokens load onto the base model that they were trained on, and onto no other."""

import keras
import numpy as np
import pytest

from splitembed import SplitTable, save_trainable
from splitembed.errors import FingerprintError, SplitError, TableFormatError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.models.load_trainable import load_trainable
from splitembed.models.split_embedding import combine_embedding, split_embedding
from tests.helpers.bits import same_bits
from tests.helpers.fresh import run_fresh
from tests.helpers.languages import DIM, LAYER, NUM_TOKENS, language_model, rows

pytestmark = pytest.mark.every_backend

KINDS = ["plain", "tied", "untied"] if LAYER is not None else ["plain"]
WORDS = [f"w{number}" for number in range(NUM_TOKENS)]
IDS = np.array([[1, 2, 5, 8, 3], [0, 7, 7, 4, 6]])


def base(kind: str, *, dim: int = DIM, num_tokens: int = NUM_TOKENS, dtype: str = "float32", seed: int = 0):
    """Make a model with one kind of embedding, the same at each call and not trained."""
    options = {"dtype": keras.DTypePolicy(dtype), "name": "token_embedding"}
    if kind == "plain":
        layer = keras.layers.Embedding(num_tokens, dim, **options)
        model = keras.Sequential([keras.Input((None,), dtype="int32"), layer])
    else:
        layer = LAYER(num_tokens, dim, tie_weights=kind == "tied", **options)
        model = language_model(layer)
    shapes = [tuple(each.shape) for each in layer.weights]
    layer.set_weights([rows(*shape, seed=seed + index) for index, shape in enumerate(shapes)])
    return model


def embedding(model):
    return model.get_layer("token_embedding")


def trained(kind: str, seed: int, chosen=(3, 7), new_tokens=2, **options):
    """Make the base with chosen and new tokens, whose rows are as if they had been trained."""
    model = split_embedding(base(kind), chosen, new_tokens, **options)
    for index, layer in enumerate(layers_of(model)):
        layer.trainable_rows.assign(rows(*layer.trainable_rows.shape, seed=10 * seed + index))
    return model


def layers_of(model):
    """Return the split layer, and that of its logits if there is one."""
    found = [embedding(model), getattr(embedding(model), "reverse_embedding", None)]
    return [each for each in found if each is not None]


def outputs(model, num_tokens: int = NUM_TOKENS + 2) -> np.ndarray:
    ids = np.concatenate([IDS, np.arange(num_tokens - 5, num_tokens)[None]])
    return keras.ops.convert_to_numpy(keras.ops.cast(model(ids), "float32"))


@pytest.mark.parametrize("kind", KINDS)
def test_each_adapter_on_one_base_gives_its_own_outputs(kind, tmp_path):
    makers = {
        "first": lambda: trained(kind, 1),
        "second, of the same tokens": lambda: trained(kind, 2),
        "of others": lambda: trained(kind, 3, chosen=[8]),
        "of more": lambda: trained(kind, 4, chosen=[1], new_tokens=5),
    }
    expected = {}
    for name, make in makers.items():
        model = make()
        expected[name] = outputs(model, embedding(model).input_dim)
        save_trainable(tmp_path / name, model)
    model = base(kind)
    frozen = {}
    for name in [*makers, "first", "second, of the same tokens"]:
        assert load_trainable(tmp_path / name, model) is model
        same_bits(outputs(model, embedding(model).input_dim), expected[name])
        frozen[name] = embedding(model).to_split().frozen
    assert all(each is frozen["first"] or np.shares_memory(each, frozen["first"]) for each in frozen.values())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_same_tokens_are_assigned_to_the_present_weights(kind, tmp_path):
    save_trainable(tmp_path / "adapter.h5", trained(kind, 1))
    model = trained(kind, 2)
    variables = [layer.trainable_rows for layer in layers_of(model)]
    load_trainable(tmp_path / "adapter.h5", model)
    assert [id(layer.trainable_rows) for layer in layers_of(model)] == list(map(id, variables))
    same_bits(outputs(model), outputs(trained(kind, 1)))


FRESH = """
import sys
import numpy as np
from tests.models.test_load_trainable import base, outputs
from splitembed.models.load_trainable import load_trainable
for kind in sys.argv[2:]:
    np.save(f"{sys.argv[1]}/{kind}.npy", outputs(load_trainable(f"{sys.argv[1]}/{kind}.h5", base(kind))))
"""


@pytest.mark.slow
def test_the_base_of_a_fresh_process_gives_the_same_outputs(tmp_path):
    for kind in KINDS:
        save_trainable(tmp_path / f"{kind}.h5", trained(kind, 1))
    run_fresh(FRESH, tmp_path, *KINDS)
    for kind in KINDS:
        same_bits(np.load(tmp_path / f"{kind}.npy"), outputs(trained(kind, 1)))


def test_ten_new_tokens_on_256_000_are_a_small_file(tmp_path):
    """The file has 14 kB, and the table of the base 66 MB."""
    matrix = rows(256_000, 64)

    def untouched():
        layer = keras.layers.Embedding(256_000, 64)
        model = keras.Sequential([keras.Input((None,), dtype="int32"), layer])
        layer.set_weights([matrix])
        return model

    model = split_embedding(untouched(), new_tokens=[f"<tool {number}>" for number in range(10)])
    model.layers[0].trainable_rows.assign(rows(10, 64, seed=1))
    save_trainable(tmp_path / "adapter.h5", model)
    assert (tmp_path / "adapter.h5").stat().st_size < 16_000
    loaded = load_trainable(tmp_path / "adapter.h5", untouched())
    split = loaded.layers[0].to_split()
    assert (split.num_tokens, split.num_trainable) == (256_010, 10)
    same_bits(split.lookup(np.arange(256_000, 256_010)), rows(10, 64, seed=1))
    same_bits(split.frozen, matrix)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS[-1:])
def test_a_base_in_16_bits_has_its_own_fingerprint(kind, dtype, tmp_path):
    model = split_embedding(base(kind, dtype=dtype), [3], 2)
    save_trainable(tmp_path / "adapter.h5", model)
    loaded = load_trainable(tmp_path / "adapter.h5", base(kind, dtype=dtype))
    assert embedding(loaded).frozen_dtype == dtype
    same_bits(outputs(loaded), outputs(model))
    with pytest.raises(FingerprintError, match=rf"\({NUM_TOKENS} x {DIM}, float32\).*in the same dtype"):
        load_trainable(tmp_path / "adapter.h5", base(kind))


def test_names_of_tokens_are_loaded_from_the_file(tmp_path):
    model = trained("plain", 1, chosen=["w3"], new_tokens=["<a>", "<b>"], vocabulary=WORDS)
    save_trainable(tmp_path / "adapter.h5", model)
    loaded = load_trainable(tmp_path / "adapter.h5", base("plain"))
    assert list(embedding(loaded).to_split().vocabulary) == [*WORDS, "<a>", "<b>"]
    other = trained("plain", 2, chosen=["w3"], new_tokens=["<a>", "<c>"], vocabulary=WORDS)
    save_trainable(tmp_path / "other.h5", other)
    # the same rows train, for other tokens
    load_trainable(tmp_path / "other.h5", loaded)
    assert embedding(loaded).to_split().vocabulary[-1] == "<c>"
    same_bits(outputs(loaded), outputs(other))


@pytest.mark.parametrize("chosen", [(3, 7), (8,)], ids=["the same tokens", "others"])
def test_a_compiled_model_keeps_training(chosen, tmp_path):
    save_trainable(tmp_path / "adapter.h5", trained("plain", 1, chosen))
    model = trained("plain", 2)
    model.add(keras.layers.Dense(1))
    model.compile("adam", "mse")
    model.fit(IDS, np.ones((2, 5, 1)), epochs=2, verbose=0)
    load_trainable(tmp_path / "adapter.h5", model)
    same_bits(embedding(model).trainable_rows, rows(len(chosen) + 2, DIM, seed=10))
    assert int(model.optimizer.iterations) == 2
    model.fit(IDS, np.ones((2, 5, 1)), verbose=0)
    assert int(model.optimizer.iterations) == 3
    frozen = embedding(model).to_split().frozen
    same_bits(frozen, rows(NUM_TOKENS, DIM))


def test_a_combined_model_is_refused_as_a_base(tmp_path):
    save_trainable(tmp_path / "adapter.h5", trained("plain", 1))
    model = combine_embedding(load_trainable(tmp_path / "adapter.h5", base("plain")))
    with pytest.raises(FingerprintError, match=r"before any of that base's own rows"):
        load_trainable(tmp_path / "adapter.h5", model)


def test_a_frozen_base_is_frozen_again_after_combine(tmp_path):
    for seed, chosen in ((1, [3]), (2, [4])):
        save_trainable(tmp_path / f"{seed}.h5", trained("plain", seed, chosen))
    model = base("plain")
    model.trainable = False
    for seed in (1, 2):
        load_trainable(tmp_path / f"{seed}.h5", model)
        assert [id(each) for each in model.trainable_variables] == [id(embedding(model).trainable_rows)]
    combine_embedding(model)
    assert model.trainable_variables == []


def state_of(model):
    return [type(each) for each in model._flatten_layers()], model.get_config(), model.get_weights()


def assert_refused(path, model, error, message, **options):
    kinds, config, weights = state_of(model)
    with pytest.raises(error, match=message):
        load_trainable(path, model, **options)
    now = state_of(model)
    assert now[:2] == (kinds, config)
    assert all((one == other).all() for one, other in zip(now[2], weights, strict=True))


def test_another_base_is_refused_with_both_fingerprints(tmp_path):
    kind = KINDS[-1]
    save_trainable(tmp_path / "adapter.h5", trained(kind, 1))
    other, model = (SplitTable.from_matrix(rows(NUM_TOKENS, DIM, seed=seed), []).fingerprint for seed in (1, 0))
    message = f"adapter.h5 was made for the frozen table {model}; the table of 'token_embedding' of .* is {other}"
    assert_refused(tmp_path / "adapter.h5", base(kind, seed=1), FingerprintError, message)
    split = split_embedding(base(kind, seed=1), [3])
    assert_refused(tmp_path / "adapter.h5", split, FingerprintError, message)


@pytest.mark.skipif(LAYER is None, reason="this Keras has no ReversibleEmbedding")
def test_a_different_table_of_logits_is_refused(tmp_path):
    save_trainable(tmp_path / "adapter.h5", trained("untied", 1))
    model = base("untied")
    first, second = embedding(model).get_weights()
    embedding(model).set_weights([first, second + 1])
    assert_refused(tmp_path / "adapter.h5", model, FingerprintError, "that of its logits, is sha256")


@pytest.mark.skipif(LAYER is None, reason="this Keras has no ReversibleEmbedding")
def test_another_number_of_tables_is_refused(tmp_path):
    for kind, other, message in (
        ("tied", "untied", "holds one table; .* has two tables, as its weights are not tied"),
        ("untied", "tied", "holds two tables, as its weights are not tied; .* has one table"),
    ):
        save_trainable(tmp_path / kind, trained(kind, 1))
        assert_refused(tmp_path / kind, base(other), SplitError, message)
        assert_refused(tmp_path / kind, trained(other, 1), SplitError, message)


def test_other_sizes_are_refused(tmp_path):
    save_trainable(tmp_path / "adapter.h5", trained("plain", 1))
    message = "holds rows of dim 4, for a base of 9 rows or more; the table of 'token_embedding' of .* has dim "
    assert_refused(tmp_path / "adapter.h5", base("plain", dim=5), SplitError, message + "5 and 9 rows")
    assert_refused(tmp_path / "adapter.h5", base("plain", num_tokens=8), SplitError, message + "4 and 8 rows")
    assert_refused(tmp_path / "adapter.h5", base("plain", num_tokens=10), FingerprintError, r"\(10 x 4, float32\)")


@pytest.mark.skipif(LAYER is None, reason="this Keras has no ReversibleEmbedding")
def test_a_model_that_cannot_grow_stays_unchanged(tmp_path):
    save_trainable(tmp_path / "adapter.h5", trained("tied", 1))
    logits = base("tied")
    model = keras.Sequential([keras.Input((None,), dtype="int32"), logits, keras.layers.Dense(2)])
    before = keras.ops.convert_to_numpy(model(IDS))
    assert_refused(
        tmp_path / "adapter.h5", model, SplitError, "has 9 tokens and cannot have 11", layer=embedding(logits)
    )
    same_bits(keras.ops.convert_to_numpy(model(IDS)), before)


def test_foreign_files_and_unknown_layers_are_refused(tmp_path):
    (tmp_path / "foreign.h5").write_bytes(b"the 0.1 0.2\n")
    assert_refused(tmp_path / "foreign.h5", base("plain"), TableFormatError, "is a file without the head")
    save_trainable(tmp_path / "adapter.h5", trained("plain", 1))
    assert_refused(tmp_path / "adapter.h5", base("plain"), SplitError, "`layer` names none of them", layer="other")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    assert_refused(tmp_path / "adapter.h5", model, SplitError, "The embeddings of .* are: none")


def test_of_several_split_layers_one_must_be_named(tmp_path):
    save_trainable(tmp_path / "adapter.h5", trained("plain", 1))
    ids = keras.Input((None,), dtype="int32")
    splits = [SplitTable.from_arrays(rows(NUM_TOKENS, DIM), range(NUM_TOKENS), []) for _ in range(2)]
    layers = [SplitEmbedding(split, name=name) for split, name in zip(splits, ("one", "two"), strict=True)]
    model = keras.Model(ids, [layer(ids) for layer in layers])
    assert_refused(tmp_path / "adapter.h5", model, SplitError, "are: 'one', 'two'. Expected exactly one")
    load_trainable(tmp_path / "adapter.h5", model, layer="two")
    assert [layer.num_trainable for layer in layers] == [0, 4]
    load_trainable(tmp_path / "adapter.h5", model, layer=layers[0])
    same_bits(*map(keras.ops.convert_to_numpy, model(IDS)))
