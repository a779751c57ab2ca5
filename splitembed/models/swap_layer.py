"""A layer leaves and another comes, in its place everywhere: in graphs, in attributes, in lists, under wrappers.

The object stays the one that it was, with another class and another state, so that whatever refers to it finds the new
layer there. What the model knew of the old one's shape is worked out again; if that fails, all is as it was before.
"""

import gc
from collections.abc import Callable
from typing import Any

import keras
from keras.src.backend import compute_output_spec  # no public way traces a layer's own call for its shapes

from splitembed.errors import SplitError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.models.trainable_flags import Before
from splitembed.optimizers.optimizer_state import Carried, compile_again, make_again

Undo = list[Callable[[], None]]
_SIZES = ("vocabulary_size", "vocab_size")  # what owners call the number of tokens, to make their embedding again
_TRACED = ("train_function", "test_function", "predict_function", "generate_function")


def put_layer(model: Any, old: Any, new: Any, carried: Carried | None = None) -> Any:
    """Puts a layer in another one's place, in a model and in all that it holds.

    What holds a plain embedding is trainable once that is split, so that its rows are: all else keeps its own flag.

    Args:
        model: holds `old`, or is it.
        old: an embedding. As an object it stays, and is the new layer from then on.
        new: one of the same dim.
        carried: as `carry_optimizer` takes it, where the model may be compiled: it is then compiled again; None where
            it is made from a config, which compiles it later.

    Returns:
        The model.

    Raises:
        SplitError: a layer was built for the old number of tokens, or an optimizer cannot be made again; nothing has
            changed then.
    """
    owners, undo = owners_of(model, old), Undo()
    _refuse_other_scope(model)
    holders = [*owners, *_others_that_hold(owners, old)]
    compiled = [each for each in holders if carried is not None and getattr(each, "compiled", False)]
    optimizers = [make_again(owner.optimizer) for owner in compiled]
    was_split, num_tokens, num_new = isinstance(old, SplitEmbedding), old.input_dim, new.input_dim
    before = Before.of(old)
    try:
        _become(old, new, undo)
        for owner in owners if num_new != num_tokens else ():
            if _set_sizes(owner, num_tokens, num_new, undo):
                _refuse_other_weights(owner, old, num_tokens)
            _shape_again(owner, old, undo)
    except Exception as error:
        for step in reversed(undo):
            step()
        raise SplitError(f"{model.name!r} has {num_tokens} tokens and cannot have {num_new}: {error}") from error
    if not isinstance(old, SplitEmbedding):
        before.freeze_again(old)
    else:
        old.__dict__["_before"] = before if was_split else before.let_train(owners, old)
    for each in holders:
        _forget_traces(each)
    for owner, optimizer in zip(compiled, optimizers, strict=True):
        compile_again(owner, optimizer, carried or {})
    return model


def owners_of(model: Any, layer: Any) -> list[Any]:
    """The layers and models that hold a layer, each once; those that others hold come before them."""
    found = {id(each): each for each in model._flatten_layers() if each is not layer and is_in(layer, each)}
    return list(reversed(found.values()))


def _others_that_hold(owners: list[Any], layer: Any) -> list[Any]:
    """Models in use that hold a layer too, such as a task whose backbone was given: they know nothing of each other."""
    known = {id(each) for each in (*owners, layer)}
    models = [each for each in gc.get_objects() if issubclass(type(each), keras.Model) and id(each) not in known]
    return [each for each in models if hasattr(each, "_layers") and is_in(layer, each)]


def _refuse_other_scope(model: Any) -> None:
    """Refuses where new variables would not be on all of a model's replicas."""
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is not None and strategy.num_replicas_in_sync > 1:
        import tensorflow as tf

        if tf.distribute.get_strategy() is not strategy:
            raise SplitError(f"{model.name!r} is on several replicas: call this under its strategy's scope().")


def is_in(layer: Any, owner: Any) -> bool:
    """Whether a layer is another one, or inside it."""
    return isinstance(owner, keras.Layer) and any(each is layer for each in owner._flatten_layers())


def _become(old: Any, new: Any, undo: Undo) -> None:
    """Gives an object the class and the state of another one; its place in graphs stays its own."""
    kind, state = type(old), old.__dict__
    for name in ("_inbound_nodes", "_outbound_nodes"):  # in its own lists: those of Keras hold on to what made them
        new.__dict__[name].extend(state[name])
    undo.append(lambda: _set_state(old, kind, state))
    _set_state(old, type(new), new.__dict__)


def _set_state(layer: Any, kind: type, state: dict[str, Any]) -> None:
    object.__setattr__(layer, "__class__", kind)  # Keras's own __setattr__ would track what it sees
    object.__setattr__(layer, "__dict__", state)


def _set_sizes(owner: Any, old: int, new: int, undo: Undo) -> bool:
    """In attributes, and in the config that Keras makes of a constructor's arguments; whether there is any."""
    num_before = len(undo)
    config = getattr(getattr(owner, "_auto_config", None), "config", {})
    for name in _SIZES:
        if vars(owner).get(name) == old:
            undo.append(lambda name=name: setattr(owner, name, old))  # type: ignore[misc]
            setattr(owner, name, new)
        if config.get(name) == old:
            undo.append(lambda name=name: config.update({name: old}))  # type: ignore[misc]
            config[name] = new
    return len(undo) > num_before


def _refuse_other_weights(owner: Any, layer: Any, num_tokens: int) -> None:
    """An owner that is made for a number of tokens makes all its layers for that: one that does not grow would not fit.

    Raises:
        SplitError: such a layer, by name.
    """
    for each in owner._flatten_layers(include_self=False):
        if not is_in(layer, each) and not is_in(each, layer):
            for weight in (*each._trainable_variables, *each._non_trainable_variables):
                if num_tokens in weight.shape:
                    raise SplitError(
                        f"{owner.name!r} is made for that number, and its {each.name!r} (a {type(each).__name__}) has "
                        f"a weight of shape {tuple(weight.shape)}, which stays. Train tokens that the model has."
                    )


def _shape_again(owner: Any, layer: Any, undo: Undo) -> None:
    """Works out the shapes of symbolic tensors that follow from a layer's, in the graph of a functional model."""
    graph = owner if hasattr(owner, "_nodes_by_depth") else getattr(owner, "_functional", None)
    if graph is None:
        return
    changed: set[int] = set()
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        for node in graph._nodes_by_depth[depth]:
            follows = any(id(each) in changed for each in node.input_tensors)
            if not node.is_input and (follows or is_in(layer, node.operation)):
                outputs = keras.tree.flatten(_spec_of(node, layer))
                for tensor, output in zip(node.outputs, outputs, strict=True):
                    if tensor.shape != output.shape:
                        changed.add(id(tensor))
                        _set_shape(tensor, output.shape, undo)


def _spec_of(node: Any, layer: Any) -> Any:
    """The symbolic output of a node; layers are traced, as what they say of their shape may be what they were given."""
    operation, arguments = node.operation, node.arguments
    try:
        if isinstance(operation, keras.Layer) and operation is not layer and not hasattr(operation, "_nodes_by_depth"):
            if arguments.args:
                operation._assert_input_compatibility(arguments.args[0])
            return compute_output_spec(operation.call, *arguments.args, **arguments.kwargs)
        return operation.compute_output_spec(*arguments.args, **arguments.kwargs)
    except Exception as error:
        kind = type(operation).__name__
        raise SplitError(
            f"its {operation.name!r} (a {kind}) was built for the old number. Train tokens that the model has, or "
            f"split the part before that layer. ({error})"
        ) from error


def _set_shape(tensor: Any, shape: Any, undo: Undo) -> None:
    name, old = ("_shape" if hasattr(tensor, "_shape") else "shape"), tensor.shape
    undo.append(lambda: setattr(tensor, name, old))
    setattr(tensor, name, shape)


def _forget_traces(owner: Any) -> None:
    for name in _TRACED:
        if vars(owner).get(name) is not None:
            setattr(owner, name, None)
