"""Find the embedding of a model that can be split, or a layer that is split already."""

from typing import Any

import keras

from splitembed.errors import SplitError
from splitembed.keras_compat import all_layers
from splitembed.layers.embedding import SplitEmbedding
from splitembed.tables.storage import STORAGES

# of weights that a split can store as they are
DTYPES = tuple(each.name for each in STORAGES.values() if not each.has_scale)
# not in the oldest supported Keras
REVERSIBLE = getattr(keras.layers, "ReversibleEmbedding", None)
_KNOWN = tuple(each for each in (keras.layers.Embedding, REVERSIBLE) if each is not None)


def find_embedding(model: Any, layer: Any = None) -> Any:
    """Return the plain embedding of a model, after checking that a split does not change any output.

    Args:
        model: a Keras model or layer; KerasHub's backbones and tasks name theirs, `token_embedding`.
        layer: the embedding, or its name, where there are several.

    Returns:
        A built `keras.layers.Embedding` or `ReversibleEmbedding`.

    Raises:
        SplitError: the model has no embedding, or several; or it is quantized, has LoRA, or is of a class that computes
            differently.
    """
    found = _found(model, layer)
    refusal = _refusal(found) or _refusal_of_sharing(model, found)
    if refusal:
        raise SplitError(f"The embedding {found.name!r} (a {type(found).__name__}) {refusal}")
    return found


def find_split(model: Any, layer: Any = None) -> SplitEmbedding:
    """Return the one split layer of a model.

    Args:
        model: a Keras model or layer.
        layer: the layer, or its name, where there are several.

    Raises:
        SplitError: the model has no split layer, or several.
    """
    found = splits_in(model, layer)
    if len(found) == 1:
        return found[0]
    names = ", ".join(repr(each.name) for each in found or splits_in(model)) or "none"
    expected = "exactly one" if layer is None else f"one that is or is named {layer!r}"
    raise SplitError(
        f"The SplitEmbedding layers of the model {getattr(model, 'name', model)!r} are: {names}. Expected {expected}. "
        "Choose one of them as the layer."
    )


def splits_in(model: Any, layer: Any = None) -> list[SplitEmbedding]:
    """Return the split layers of a model, or only the one that is `layer` or has that name."""
    return [each for each in layers_in(model, SplitEmbedding) if layer is None or each is layer or each.name == layer]


def layers_in(model: Any, kind: Any) -> list[Any]:
    """Return the layers of a kind in a model or layer, itself included; not those inside a `SplitEmbedding`."""
    layers = all_layers(model) if isinstance(model, keras.Layer) else []
    inside = {id(inner) for each in layers if isinstance(each, SplitEmbedding) for inner in all_layers(each)[1:]}
    return [each for each in layers if isinstance(each, kind) and id(each) not in inside]


def holds(container: Any, layer: Any) -> bool:
    """Return whether a layer or model holds a layer, or is that layer."""
    return isinstance(container, keras.Layer) and any(each is layer for each in all_layers(container))


def _found(model: Any, layer: Any) -> Any:
    candidates, split = layers_in(model, keras.layers.Embedding), splits_in(model, layer)
    if layer is not None:
        named = [each for each in candidates if each is layer or each.name == layer]
        if len(named) == 1:
            return named[0]
        if split and not named:
            raise _split_already(split[0])
        problem = f"`layer` names {'several' if named else 'none'} of them. Received: {layer!r}{_kind(model, layer)}."
    elif split:
        raise _split_already(split[0])
    else:
        own = _token_embedding(model)
        if any(each is own for each in candidates):
            return own
        if len(candidates) == 1:
            return candidates[0]
        problem = "Choose one by `layer`: the layer itself, or its name." if candidates else _without(model)
    names = ", ".join(f"{each.name!r} ({each.input_dim} tokens)" for each in candidates) or "none"
    raise SplitError(f"The embeddings of {getattr(model, 'name', model)!r} are: {names}. {problem}")


def _kind(model: Any, layer: Any) -> str:
    """Return the class of a layer that is not an embedding, in brackets, or ""."""
    others = [each for each in layers_in(model, keras.Layer) if each is layer or each.name == layer]
    return f" (a {type(others[0]).__name__}, not a keras.layers.Embedding)" if others else ""


def _token_embedding(model: Any) -> Any:
    """Return the `token_embedding` of a KerasHub backbone or of the backbone of a task, or None."""
    for container in (model, getattr(model, "backbone", None)):
        own = getattr(container, "token_embedding", None)
        if own is not None:
            return own
    return None


def _split_already(layer: Any) -> SplitError:
    return SplitError(
        f"{layer.name!r} is split already: change which tokens train by replace_split, with "
        "layer.to_split().thaw(...), freeze or grow; or call combine_embedding first. Another embedding must be named "
        "by `layer`."
    )


def _without(model: Any) -> str:
    if not isinstance(model, keras.Layer):
        return f"Pass a Keras model. Received: {model!r} (of type {type(model).__name__})."
    return "A model whose layers Keras cannot find, because it does not hold them in attributes, cannot be split."


def _refusal(layer: Any) -> str:
    """Return why a layer cannot be split, or ""."""
    if getattr(layer, "quantization_mode", None) is not None:
        return f"is quantized ({layer.quantization_mode}). Split the model first, then quantize its other layers."
    if getattr(layer, "lora_enabled", False) or getattr(layer, "lora_rank", None):
        return (
            "has LoRA. Enable LoRA on other layers; or save the weights, which merges it, and load them into a new "
            "model without LoRA."
        )
    if any(getattr(type(layer), name) not in known for name, known in _METHODS.items()):
        return (
            "overrides how an embedding computes, which a split layer would not do. A keras.layers.Embedding or "
            "ReversibleEmbedding can be split; update Keras and KerasHub if it is one of theirs."
        )
    if not layer.built:
        return "has no weights yet. Call the model once, or build it."
    if layer.embeddings.dtype not in DTYPES:
        return f"is stored as {layer.embeddings.dtype}; {', '.join(DTYPES)} can be split."
    return ""


def _refusal_of_sharing(model: Any, layer: Any) -> str:
    """Return which other layer has a weight of this one in an attribute, so that it cannot be split, or ""."""
    weights = {id(each) for each in layer.variables}
    for each in all_layers(model):
        if each is not layer and any(id(value) in weights for value in _values(each)):
            kind = type(each).__name__
            return (
                f"has a weight that {each.name!r} (a {kind}) has too, and would continue to use. Make that layer call "
                "the embedding, a ReversibleEmbedding, with reverse=True."
            )
    return ""


def _values(layer: Any) -> list[Any]:
    """Return the attributes of a layer, and the elements of those that are lists, such as its weights."""
    values = list(vars(layer).values())
    return [*values, *(item for each in values if isinstance(each, list | tuple) for item in each)]


# the methods that compute an output from ids; a class that can be split may override others
_METHODS = {
    name: {getattr(each, name) for each in _KNOWN} for name in ("__call__", "call", "compute_mask", "embeddings")
}
