"""Small Keras models that hold an embedding in every way that Keras supports, and functions to read them."""

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import layers, ops

import splitembed as se
from tests.helpers.languages import language_model

BACKEND = keras.backend.backend()

NUM_TOKENS, DIM, LENGTH = 20, 4, 5
CHOSEN = [1, 4, 17]
NUM_NEW = 2
GROWN = NUM_TOKENS + NUM_NEW
TRAINED = [*CHOSEN, *range(NUM_TOKENS, GROWN)]
# not in the oldest Keras
REVERSIBLE = getattr(layers, "ReversibleEmbedding", None)
# the name of the layer that is split
TOKENS = "tokens"

register = keras.saving.register_keras_serializable("adapting")


def table(num_tokens: int = NUM_TOKENS, seed: int = 0) -> np.ndarray:
    """Rows without zeros; a longer table starts with the rows of a shorter one."""
    return np.random.default_rng(seed).normal(size=(num_tokens, DIM)).astype(np.float32)


def ids_of(num: int = 6, highest: int = NUM_TOKENS, seed: int = 1) -> np.ndarray:
    """`(num, LENGTH)` ids below `highest`, with duplicates, and with every token that trains."""
    ids = np.random.default_rng(seed).integers(0, highest, (num, LENGTH)).astype(np.int32)
    known = [token for token in TRAINED if token < highest]
    ids[0, : len(known)] = known
    ids[1, :2] = ids[1, 2]
    ids[2, 3:] = 0
    return ids


def targets_of(num: int = 6, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num, 1)).astype(np.float32)


def embedding(num_tokens: int = NUM_TOKENS, kind: Any = None, **options: Any) -> Any:
    return (kind or layers.Embedding)(num_tokens, DIM, **{"name": TOKENS, **options})


def head() -> list[Any]:
    return [layers.GlobalAveragePooling1D(), layers.Dense(1)]


def _through(parts: Iterable[Any], tensor: Any) -> Any:
    for part in parts:
        tensor = part(tensor)
    return tensor


# Models


def functional(layer: Any) -> Any:
    ids = keras.Input((LENGTH,), dtype="int32")
    return keras.Model(ids, _through([layer, *head()], ids))


def sequential(layer: Any) -> Any:
    return keras.Sequential([keras.Input((LENGTH,), dtype="int32"), layer, *head()])


def unbuilt_sequential(layer: Any) -> Any:
    return keras.Sequential([layer, *head()])


def nested(layer: Any) -> Any:
    """A functional model inside a functional one, inside a functional one."""
    inner, outer = (keras.Input((LENGTH,), dtype="int32") for _ in range(2))
    encoder = keras.Model(inner, layer(inner), name="encoder")
    return keras.Model(outer, _through([keras.Model(outer, encoder(outer), name="middle"), *head()], outer))


def shared(layer: Any) -> Any:
    """One embedding on two inputs."""
    ids = keras.Input((LENGTH,), dtype="int32")
    both = layers.Concatenate()([layer(ids[:, :2]), layer(ids[:, 2:4])])
    return keras.Model(ids, _through(head(), both))


def positions(layer: Any) -> Any:
    """A second embedding, of positions."""
    ids = keras.Input((LENGTH,), dtype="int32")
    rows = layers.Embedding(NUM_TOKENS, DIM, name="positions")(ids * 0 + ops.arange(LENGTH, dtype="int32"))
    return keras.Model(ids, _through(head(), layers.Add()([layer(ids), rows])))


def in_time_distributed(layer: Any) -> Any:
    ids = keras.Input((LENGTH, 1), dtype="int32")
    rows = layers.TimeDistributed(layer)(ids)
    return keras.Model(ids, _through(head(), layers.Reshape((LENGTH, DIM))(rows)))


def model_in_time_distributed(layer: Any) -> Any:
    ids, one = keras.Input((LENGTH, 1), dtype="int32"), keras.Input((1,), dtype="int32")
    rows = layers.TimeDistributed(keras.Model(one, layers.Flatten()(layer(one))))(ids)
    return keras.Model(ids, _through(head(), rows))


def masked(layer: Any) -> Any:
    ids = keras.Input((LENGTH,), dtype="int32")
    return keras.Model(ids, layers.Dense(1)(layers.LSTM(3)(layer(ids))))


class Holds(keras.Model):
    """A subclassed model whose config holds its embedding."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hold(layer)
        self.parts = head()

    def call(self, ids: Any) -> Any:
        return _through([self.held(), *self.parts], ids)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "layer": keras.saving.serialize_keras_object(self.held())}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(keras.saving.deserialize_keras_object(config.pop("layer")), **config)


@register
class InAttribute(Holds):
    def hold(self, layer: Any) -> None:
        self.layer = layer

    def held(self) -> Any:
        return self.layer


@register
class InList(Holds):
    def hold(self, layer: Any) -> None:
        self.layers_of_mine = [layer]

    def held(self) -> Any:
        return self.layers_of_mine[0]


@register
class InDict(Holds):
    def hold(self, layer: Any) -> None:
        self.by_name = {"embedding": layer}

    def held(self) -> Any:
        return self.by_name["embedding"]


@register
class MakesInBuild(layers.Layer):
    """A layer that makes its embedding in `build`, and whose config Keras makes of its arguments."""

    def __init__(self, vocabulary_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size

    def build(self, shape: Any) -> None:
        self.inside = embedding(self.vocabulary_size)
        self.inside.build(shape)
        self.built = True

    def call(self, ids: Any) -> Any:
        return self.inside(ids)


@register
class Automatic(keras.Model):
    """A model without arguments, whose config Keras makes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.embedding, self.parts = embedding(), head()

    def call(self, ids: Any) -> Any:
        return _through([self.embedding, *self.parts], ids)


@register
class FunctionalFromSize(keras.Model):
    """A functional model whose constructor takes a size, like KerasHub's backbones."""

    def __init__(self, vocabulary_size: int, **kwargs: Any) -> None:
        ids = keras.Input((LENGTH,), dtype="int32")
        super().__init__(ids, _through([embedding(vocabulary_size), *head()], ids), **kwargs)
        self.vocabulary_size = vocabulary_size

    def get_config(self) -> dict[str, Any]:
        return {"vocabulary_size": self.vocabulary_size, "name": self.name, "trainable": self.trainable}


@register
class HoldsModel(keras.Model):
    """A subclassed model that makes a functional model, in which another rebuilt model is."""

    def __init__(self, vocab_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        ids = keras.Input((LENGTH,), dtype="int32")
        self.encoder = keras.Model(ids, FunctionalFromSize(vocab_size, name="own")(ids))
        self.last = layers.Dense(1)

    def call(self, ids: Any) -> Any:
        return self.last(self.encoder(ids))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "vocab_size": self.vocab_size}


def _with(make: Callable[[Any], Any], **options: Any) -> Callable[..., Any]:
    return lambda num_tokens, **others: make(embedding(num_tokens, **options, **others))


MODELS: dict[str, Callable[..., Any]] = {
    "functional": _with(functional),
    "sequential": _with(sequential),
    "unbuilt sequential": _with(unbuilt_sequential),
    "nested": _with(nested),
    "shared": _with(shared),
    "positions": _with(positions),
    "time distributed": _with(in_time_distributed),
    "model in time distributed": _with(model_in_time_distributed),
    "masked": _with(masked, mask_zero=True),
    "attribute": _with(InAttribute),
    "list": _with(InList),
    "dict": _with(InDict),
    "made in build": lambda num_tokens: sequential(MakesInBuild(num_tokens)),
    "automatic": lambda num_tokens: Automatic(),
    "functional from a size": FunctionalFromSize,
    "model in a model": HoldsModel,
}


def make_model(name: str, num_tokens: int = NUM_TOKENS, **options: Any) -> Any:
    """Make a built model without zero weights, the same at each call."""
    keras.utils.set_random_seed(0)
    model = MODELS[name](num_tokens, **options)
    model(inputs_for(model, ids_of()))
    return shake(model)


def shake(model: Any) -> Any:
    """Assign weights, the same at each call: to the embedding those of `table`."""
    generator = np.random.default_rng(3)
    tokens = embedding_of(model)
    for weight in model.weights:
        if "float" in weight.dtype and weight is not tokens.embeddings:
            weight.assign(generator.normal(size=weight.shape).astype(np.float32) / 2)
    tokens.embeddings.assign(table(tokens.input_dim))
    return model


def inputs_for(model: Any, ids: np.ndarray) -> np.ndarray:
    """Return ids, with another axis where the model takes sequences of one id."""
    return ids[..., None] if len(getattr(model, "input_shape", ()) or ()) == 3 else ids


def make_language_model(num_tokens: int = NUM_TOKENS, kind: Any = None, **options: Any) -> Any:
    """A model whose embedding computes the logits too, tied or not."""
    return shake(language_model(embedding(num_tokens, kind or REVERSIBLE, **options)))


# Read a model


def embedding_of(model: Any) -> Any:
    return next(each for each in model._flatten_layers() if each.name == TOKENS)


def split_of(model: Any, **options: Any) -> Any:
    """Split a model so that the chosen tokens and two new ones train."""
    return se.split_embedding(model, CHOSEN, NUM_NEW, **{"layer": TOKENS, **options})


def numpy(tensor: Any) -> np.ndarray:
    return np.array(ops.convert_to_numpy(tensor))


def outputs_of(model: Any, ids: np.ndarray | None = None) -> list[np.ndarray]:
    """Return the outputs of an eager call and of `predict`."""
    inputs = inputs_for(model, ids_of() if ids is None else ids)
    return [numpy(model(ops.convert_to_tensor(inputs))), model.predict(inputs, verbose=0)]


def compiled(model: Any, optimizer: Any = "sgd", **options: Any) -> Any:
    """Compile without XLA, which takes seconds."""
    model.compile(optimizer, **{"loss": "mse", "jit_compile": False, **options})
    return model


def rows_of(model: Any) -> np.ndarray:
    """Return the dense table, `(num_tokens, dim)` float32."""
    layer = embedding_of(model)
    return layer.to_split().combine() if hasattr(layer, "to_split") else numpy(ops.cast(layer.embeddings, "float32"))


def other_layers(model: Any) -> list[Any]:
    own = {id(each) for each in embedding_of(model)._flatten_layers()}
    return [each for each in model._flatten_layers() if id(each) not in own]


def other_weights(model: Any) -> list[Any]:
    """Return the weights except those of the embedding."""
    own = {id(each) for each in embedding_of(model).weights}
    return [each for each in model.weights if id(each) not in own]


def values_of(weights: Iterable[Any]) -> list[np.ndarray]:
    return [numpy(each) for each in weights]


def names_of_ours(model: Any) -> list[str]:
    """Return the classes of splitembed among the layers of a model."""
    return [
        each.__name__
        for layer in model._flatten_layers()
        for each in type(layer).__mro__
        if each.__module__.startswith("splitembed")
    ]
