"""Small KerasHub tasks with random weights, inputs and targets for them, and functions to read them.

KerasHub has its own environment. Where it is not installed, the tests that import this are skipped.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

keras_hub = pytest.importorskip("keras_hub", reason="KerasHub is not installed: `make test-keras-hub` runs this")

import keras  # noqa: E402
import numpy as np  # noqa: E402

import splitembed as se  # noqa: E402

NUM_TOKENS, DIM, LENGTH = 60, 16, 8
CHOSEN = [3, 7, NUM_TOKENS - 1]
NUM_NEW = 3
NEW = list(range(NUM_TOKENS, NUM_TOKENS + NUM_NEW))
TRAINED = [*CHOSEN, *NEW]
# positions in a text that a masked language model fills
MASKED = 2
NUM_CLASSES = 3

models = keras_hub.models
SIZES = {"hidden_dim": DIM, "num_layers": 2, "intermediate_dim": 32}
HEADS = {"num_heads": 2, "max_sequence_length": LENGTH, "dropout": 0.0, **SIZES}
GROUPED = {"num_query_heads": 2, "num_key_value_heads": 1, **SIZES}
GEMMA = {"head_dim": 8, "final_logit_soft_cap": 3.0, "attention_logit_soft_cap": 5.0, **GROUPED}


@dataclass(frozen=True)
class Family:
    """A backbone with its sizes, the task on it, and the task's sizes."""

    backbone: Any
    options: dict[str, Any]
    task: Any
    task_options: dict[str, Any] = field(default_factory=dict)

    @property
    def generates(self) -> bool:
        return issubclass(self.task, models.CausalLM)


FAMILIES = {
    "bert classifier": Family(
        models.BertBackbone, HEADS, models.BertTextClassifier, {"num_classes": NUM_CLASSES, "dropout": 0.0}
    ),
    "bert masked": Family(models.BertBackbone, HEADS, models.BertMaskedLM),
    "distilbert masked": Family(models.DistilBertBackbone, HEADS, models.DistilBertMaskedLM),
    "gpt2": Family(models.GPT2Backbone, HEADS, models.GPT2CausalLM),
    "llama": Family(models.LlamaBackbone, GROUPED, models.LlamaCausalLM),
    "llama tied": Family(models.LlamaBackbone, {**GROUPED, "tie_word_embeddings": True}, models.LlamaCausalLM),
    "gemma": Family(models.GemmaBackbone, GEMMA, models.GemmaCausalLM),
    "bart": Family(models.BartBackbone, HEADS, models.BartSeq2SeqLM),
}
MASKED_MODELS = ["bert masked", "distilbert masked"]
# one family of each kind: a head with a bias for each token, tied and untied weights, an encoder with a decoder
KINDS = ["bert masked", "gpt2", "llama", "bart"]

Inputs = dict[str, np.ndarray]


def make_backbone(name: str, seed: int = 0, **options: Any) -> Any:
    """Make a backbone without zero weights, the same at each call with one seed."""
    family = FAMILIES[name]
    keras.utils.set_random_seed(seed)
    backbone = family.backbone(**{"vocabulary_size": NUM_TOKENS, **family.options, **options})
    _shake(backbone, seed)
    # with XLA, Keras's default, two programs round differently
    backbone.jit_compile = False
    return backbone


def make_task(name: str, seed: int = 0, *, optimizer: Any = None, jit_compile: bool = False, **options: Any) -> Any:
    """Make a compiled task, by default without XLA."""
    family = FAMILIES[name]
    task = family.task(make_backbone(name, seed, **options), **family.task_options)
    _shake(task, seed)
    compile_task(task, optimizer or keras.optimizers.SGD(0.1), jit_compile)
    return task


def _shake(model: Any, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        if "float" in weight.dtype:
            weight.assign(np.asarray(weight.numpy(), np.float32) + generator.normal(0, 0.1, weight.shape))


def compile_task(task: Any, optimizer: Any, jit_compile: bool = False) -> None:
    sampler = {"sampler": "greedy"} if isinstance(task, models.CausalLM) else {}
    task.compile(optimizer=optimizer, jit_compile=jit_compile, **sampler)


def freeze(task: Any) -> None:
    """Freeze everything but the task itself, as for training new tokens alone."""
    task.backbone.trainable = False
    for layer in task.layers:
        layer.trainable = False


def inputs_for(task: Any, highest: int = NUM_TOKENS, seed: int = 1) -> Inputs:
    """Make ids below `highest`, with duplicates, and with every token that the tests train."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(1, highest, (3, LENGTH)).astype(np.int32)
    known = [token for token in TRAINED if token < highest]
    ids[0, : len(known)] = known
    ids[1, :2] = ids[1, 2]
    padding = np.ones(ids.shape, np.int32)
    padding[2, LENGTH - 3 :] = 0
    of_kind = {
        "token_ids": ids,
        "padding_mask": padding,
        "segment_ids": ids % 2,
        "mask_positions": generator.integers(0, LENGTH - 3, (3, MASKED)).astype(np.int32),
    }
    return {key: of_kind[key.removeprefix("encoder_").removeprefix("decoder_")] for key in task.input}


def targets_for(task: Any, highest: int = NUM_TOKENS, seed: int = 2) -> np.ndarray:
    shape = (3, *task.output_shape[1:-1])
    sizes = tuple(size or (MASKED if isinstance(task, models.MaskedLM) else LENGTH) for size in shape)
    highest = NUM_CLASSES if isinstance(task, models.TextClassifier) else highest
    return np.random.default_rng(seed).integers(0, highest, sizes)


def prompts_for(task: Any, known: int = 3) -> Inputs:
    """Make texts of which only the first ids are given."""
    inputs = inputs_for(task)
    given = (np.arange(LENGTH) < known).astype(np.int32) * np.ones((3, 1), np.int32)
    prefix = "decoder_" if "decoder_token_ids" in inputs else ""
    return {**inputs, f"{prefix}token_ids": inputs[f"{prefix}token_ids"] * given, f"{prefix}padding_mask": given}


def generated(task: Any, prompts: Inputs) -> np.ndarray:
    """Return the ids of prompts and of the generated texts."""
    texts = task.generate(dict(prompts), stop_token_ids=None)
    return next(value for key, value in texts.items() if key.endswith("token_ids"))


def outputs_of(model: Any, inputs: Inputs) -> list[np.ndarray]:
    """Return the outputs of an eager call and of `predict`, whose programs differ."""
    # a backbone that is not compiled keeps its function
    model.predict_function = None
    return flat(model(inputs)) + flat(model.predict(inputs, verbose=0))


def flat(outputs: Any) -> list[np.ndarray]:
    return [keras.ops.convert_to_numpy(each) for each in keras.tree.flatten(outputs)]


def backbone_of(model: Any) -> Any:
    return model if isinstance(model, models.Backbone) else model.backbone


def embedding_of(model: Any) -> Any:
    return backbone_of(model).token_embedding


def is_split(layer: Any) -> bool:
    return hasattr(layer, "to_split")


def tables_of(model: Any) -> list[np.ndarray]:
    """Return the dense table `(num_tokens, dim)`, and that of untied logits."""
    layer = embedding_of(model)
    if is_split(layer):
        reverse = layer.reverse_embedding
        return [each.to_split().combine() for each in ([layer] if reverse is None else [layer, reverse])]
    first, *others = (np.asarray(value, np.float32) for value in layer.get_weights())
    return [first, *(each.T for each in others)]


def set_tables(model: Any, tables: Iterable[np.ndarray]) -> None:
    """Assign the tables of a dense model."""
    first, *others = tables
    embedding_of(model).set_weights([first, *(each.T for each in others)])


def frozen_bytes(model: Any) -> list[bytes]:
    """Return the bytes of a split model's frozen tables."""
    layer = embedding_of(model)
    reverse = layer.reverse_embedding
    return [each.to_split().frozen.tobytes() for each in ([layer] if reverse is None else [layer, reverse])]


def own_variables(model: Any) -> list[Any]:
    return list(embedding_of(model).weights)


def other_weights(model: Any) -> dict[str, np.ndarray]:
    """Return the weights except those of the embedding, by path."""
    own = {id(each) for each in own_variables(model)}
    others = {each.path: each.numpy() for each in model.weights if id(each) not in own}
    assert len(others) == len(model.weights) - len(own)
    return others


def other_flags(model: Any) -> dict[int, bool]:
    """Return the flag of each layer except the embedding and its parts."""
    own = {id(each) for each in embedding_of(model)._flatten_layers()}
    return {id(each): each.trainable for each in model._flatten_layers() if id(each) not in own}


def same_weights(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Assert equal weights to the bit; of an output bias that has grown, compare the old part."""
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        now = found[path][: len(value)] if path.endswith("output_bias") else found[path]
        assert now.dtype == value.dtype and now.tobytes() == value.tobytes(), path


def old_columns(logits: Iterable[np.ndarray]) -> list[np.ndarray]:
    return [np.ascontiguousarray(each[..., :NUM_TOKENS]) for each in logits]


def classes_of_ours(model: Any) -> list[str]:
    """Return the classes of splitembed in a model and in its config."""
    here = [type(each).__name__ for each in model._flatten_layers() if type(each).__module__.startswith("splitembed")]
    config = json.dumps(keras.saving.serialize_keras_object(model), default=str)
    return here + (["its config"] if "splitembed" in config else [])


def num_new(name: str) -> int:
    """Return how many tokens a family can grow by; the head of a masked language model has a bias for each."""
    return 0 if name in MASKED_MODELS else NUM_NEW


def split(model: Any, name: str) -> Any:
    """Split a model so that the chosen tokens train, and new ones where the family can grow."""
    return se.split_embedding(model, CHOSEN, num_new(name))


MAKE: dict[str, Callable[..., Any]] = {"backbone": make_backbone, "task": make_task}
