"""A model and perhaps a name go in; the embedding that is to be split comes out, or the reason why none can be."""

from typing import Any

import keras

from splitembed.errors import SplitError
from splitembed.layers.embedding import SplitEmbedding

DTYPES = ("float32", "float16", "bfloat16")  # in which a split can store frozen rows
REVERSIBLE = getattr(keras.layers, "ReversibleEmbedding", None)  # not in the oldest Keras
_KNOWN = tuple(each for each in (keras.layers.Embedding, REVERSIBLE) if each is not None)


def find_embedding(model: Any, layer: Any = None) -> Any:
    """Finds the plain embedding of a model, one that can be split without any output changing.

    Args:
        model: a Keras model or layer; KerasHub's backbones and tasks name their own, `token_embedding`.
        layer: the embedding, or its name, where there are several.

    Returns:
        A built `keras.layers.Embedding` or `ReversibleEmbedding`.

    Raises:
        SplitError: none, several, or one that is quantized, has LoRA, or computes in a way of its own.
    """
    found = _found(model, layer)
    refusal = _refusal(found) or _refusal_of_sharing(model, found)
    if refusal:
        raise SplitError(f"The embedding {found.name!r} (a {type(found).__name__}) {refusal}")
    return found


def layers_in(owner: Any, kind: Any) -> list[Any]:
    """The layers of a kind in a model or layer, itself included; not those inside a `SplitEmbedding`."""
    layers = owner._flatten_layers() if isinstance(owner, keras.Layer) else []
    inside = {
        id(inner)
        for each in layers
        if isinstance(each, SplitEmbedding)
        for inner in each._flatten_layers(include_self=False)
    }
    return [each for each in layers if isinstance(each, kind) and id(each) not in inside]


def _found(model: Any, layer: Any) -> Any:
    candidates, split = layers_in(model, keras.layers.Embedding), layers_in(model, SplitEmbedding)
    if layer is not None:
        named, named_split = (
            [each for each in layers if each is layer or each.name == layer] for layers in (candidates, split)
        )
        if len(named) == 1:
            return named[0]
        if named_split and not named:
            raise _is_split(named_split[0])
        problem = f"`layer` names {'several' if named else 'none'} of them. Received: {layer!r}{_kind(model, layer)}."
    elif split:
        raise _is_split(split[0])
    else:
        own = _token_embedding(model)
        if any(each is own for each in candidates):
            return own
        if len(candidates) == 1:
            return candidates[0]
        problem = "Say by `layer` which one: the layer itself, or its name." if candidates else _without(model)
    names = ", ".join(f"{each.name!r} ({each.input_dim} tokens)" for each in candidates) or "none"
    raise SplitError(f"The embeddings of {getattr(model, 'name', model)!r} are: {names}. {problem}")


def _kind(model: Any, layer: Any) -> str:
    """What a layer is that is no embedding, in brackets, or ""."""
    others = [each for each in layers_in(model, keras.Layer) if each is layer or each.name == layer]
    return f" (a {type(others[0]).__name__}, which is no keras.layers.Embedding)" if others else ""


def _token_embedding(model: Any) -> Any:
    """What a KerasHub backbone, or a task's, calls so."""
    for owner in (model, getattr(model, "backbone", None)):
        own = getattr(owner, "token_embedding", None)
        if own is not None:
            return own
    return None


def _is_split(layer: Any) -> SplitError:
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
    """Why a layer cannot be split, or ""."""
    if getattr(layer, "quantization_mode", None) is not None:
        return f"is quantized ({layer.quantization_mode}). Split the model first, then quantize its other layers."
    if getattr(layer, "lora_enabled", False) or getattr(layer, "lora_rank", None):
        return (
            "has LoRA. Enable LoRA on other layers; or save the weights, which merges it, and load them into the model "
            "made anew, without LoRA."
        )
    if any(getattr(type(layer), name) not in known for name, known in _METHODS.items()):
        return (
            "computes in a way of its own, which a split layer would not. A keras.layers.Embedding or "
            "ReversibleEmbedding can be split; update Keras and KerasHub if it is one of theirs."
        )
    if not layer.built:
        return "has no weights yet. Call the model once, or build it."
    if layer.embeddings.dtype not in DTYPES:
        return f"is stored as {layer.embeddings.dtype}; {', '.join(DTYPES)} can be split."
    return ""


def _refusal_of_sharing(model: Any, layer: Any) -> str:
    """Why a layer cannot be split whose weight another one holds too, and would go on with, or ""."""
    weights = {id(each) for each in layer.variables}
    for each in model._flatten_layers():
        if each is not layer and any(id(own) in weights for own in _own_variables(each)):
            kind = type(each).__name__
            return (
                f"has a weight that {each.name!r} (a {kind}) holds as its own: it would go on with the plain rows. Let "
                "it hold the embedding, a ReversibleEmbedding, and call that with reverse=True."
            )
    return ""


def _own_variables(layer: Any) -> list[Any]:
    return [*layer._trainable_variables, *layer._non_trainable_variables]


# what makes an output of ids; a class may have its own of anything else
_METHODS = {
    name: {getattr(each, name) for each in _KNOWN} for name in ("__call__", "call", "compute_mask", "embeddings")
}
