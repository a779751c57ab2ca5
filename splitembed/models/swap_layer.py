"""Replace a layer of a built model in place: in graphs, attributes, lists and wrappers.

The object becomes the new layer, so that every reference finds that. Shapes that depend on the number of tokens are
computed again; if that fails, the model is unchanged.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import keras

from splitembed.errors import SplitError
from splitembed.keras_compat import all_layers, become, config_of_arguments, graph_nodes, set_shape
from splitembed.layers.embedding import SplitEmbedding
from splitembed.models.find_embedding import holds
from splitembed.models.rebuilt_models import allow_saving, config_holds, refuse_saving
from splitembed.models.trainable_flags import FlagsBefore
from splitembed.optimizers.optimizer_state import RowSources, copy_without_state, recompile

Undo = list[Callable[[], None]]
# attributes and arguments in which models keep the number of tokens
_SIZES = ("vocabulary_size", "vocab_size")
_TRACED = ("train_function", "test_function", "predict_function", "generate_function")


def swap_layer(model: Any, old: Any, new: Any, sources: RowSources, also: Sequence[Any] = ()) -> Any:
    """Replace a layer in a model, and in models around it.

    Args:
        model: the model or layer that holds `old`, or `old` itself.
        old: an embedding. The object stays, and is the new layer from then on.
        new: a built layer of the same dim.
        sources: where the rows of the new variables were, for the optimizers of compiled models.
        also: models around `model`.

    Returns:
        The model.

    Raises:
        SplitError: a model in `also` does not hold `old`, a layer was built for the old number of tokens, or an
            optimizer cannot be made again. Nothing has changed then.
    """
    containers = _containers_in_all(model, old, also)
    for each in (model, *also):
        _refuse_other_scope(each)
    compiled = [each for each in containers if getattr(each, "compiled", False)]
    optimizers = [copy_without_state(each.optimizer) for each in compiled]
    is_split = isinstance(new, SplitEmbedding)
    rebuilt = [each for each in containers if is_split and not config_holds(each, old)]
    was_split, flags = isinstance(old, SplitEmbedding), FlagsBefore.of(old)
    _become(model, old, new, containers)
    if is_split:
        if not was_split:
            flags.let_rows_train(containers, old)
        old.flags_before = flags
        refuse_saving(rebuilt, old)
    else:
        flags.restore(old)
        allow_saving(containers)
    for each in containers:
        _forget_traces(each)
    for each, optimizer in zip(compiled, optimizers, strict=True):
        recompile(each, optimizer, sources)
    return model


def build_like(new: Any, old: Any) -> None:
    """Build a layer in the name scopes of another one, so that its variables get the same paths."""
    with ExitStack() as scopes:
        for name in (getattr(old, "path", None) or "").split("/")[:-1]:
            scopes.enter_context(keras.name_scope(name))
        new.build()


def containers_of(model: Any, layer: Any) -> list[Any]:
    """Return the layers and models in a model that hold a layer, each once, after those that they hold."""
    layers = all_layers(model) if isinstance(model, keras.Layer) else []
    found = {id(each): each for each in layers if each is not layer and holds(each, layer)}
    return list(reversed(found.values()))


def _containers_in_all(model: Any, layer: Any, also: Sequence[Any]) -> list[Any]:
    found = {id(each): each for each in containers_of(model, layer)}
    for other in also:
        containers = containers_of(other, layer)
        if not containers:
            raise SplitError(
                f"`also` must be models that hold {layer.name!r} too. Received: {getattr(other, 'name', other)!r} (of "
                f"type {type(other).__name__}), which does not."
            )
        found |= {id(each): each for each in containers if id(each) not in found}
    return list(found.values())


def _refuse_other_scope(model: Any) -> None:
    """Refuse where new variables would not be on all replicas of a model."""
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is not None and strategy.num_replicas_in_sync > 1:
        import tensorflow as tf

        if tf.distribute.get_strategy() is not strategy:
            raise SplitError(f"{model.name!r} is on several replicas: call this under its strategy's scope().")


def _become(model: Any, old: Any, new: Any, containers: list[Any]) -> None:
    """Make one layer the other and update sizes and shapes to the number of tokens, or change nothing."""
    num_tokens, num_new = old.input_dim, new.input_dim
    undo = Undo()
    try:
        undo.append(become(old, new))
        for container in containers if num_new != num_tokens else ():
            if _set_sizes(container, num_tokens, num_new, undo):
                _refuse_other_weights(container, old, num_tokens)
            _update_shapes(container, old, undo)
    except Exception as error:
        for step in reversed(undo):
            step()
        raise SplitError(f"{model.name!r} has {num_tokens} tokens and cannot have {num_new}: {error}") from error


def _set_sizes(container: Any, old: int, new: int, undo: Undo) -> bool:
    """Change the number of tokens in attributes and in the config of arguments; return whether it was in any."""
    num_before = len(undo)
    config = config_of_arguments(container)
    for name in _SIZES:
        if vars(container).get(name) == old:
            undo.append(lambda name=name: setattr(container, name, old))  # type: ignore[misc]
            setattr(container, name, new)
        if config.get(name) == old:
            undo.append(lambda name=name: config.update({name: old}))  # type: ignore[misc]
            config[name] = new
    return len(undo) > num_before


def _refuse_other_weights(container: Any, layer: Any, num_tokens: int) -> None:
    """Refuse where another layer in a container that has a number of tokens was made for that number too.

    Raises:
        SplitError: there is such a layer.
    """
    for each in reversed(all_layers(container)):
        if not holds(each, layer) and not holds(layer, each):
            for weight in each.weights:
                if num_tokens in weight.shape:
                    raise SplitError(
                        f"{container.name!r} is made for that number, and its {each.name!r} (a {type(each).__name__}) "
                        f"has a weight of shape {tuple(weight.shape)}, which stays. Train tokens that the model has."
                    )


def _update_shapes(container: Any, layer: Any, undo: Undo) -> None:
    """Compute the shapes of symbolic tensors that follow from a layer, in the graph of a functional model."""
    changed: set[int] = set()
    for node in graph_nodes(container):
        follows = any(id(each) in changed for each in node.input_tensors)
        if not node.is_input and (follows or holds(node.operation, layer)):
            outputs = keras.tree.flatten(_symbolic_output(node, layer))
            for tensor, output in zip(node.outputs, outputs, strict=True):
                if tensor.shape != output.shape:
                    changed.add(id(tensor))
                    undo.append(lambda tensor=tensor, shape=tensor.shape: set_shape(tensor, shape))  # type: ignore[misc]
                    set_shape(tensor, output.shape)


def _symbolic_output(node: Any, layer: Any) -> Any:
    """Return the symbolic output of a call; the call of a layer is traced, as it may promise the shape of its input."""
    operation, arguments = node.operation, node.arguments
    try:
        if isinstance(operation, keras.Layer) and operation is not layer and not graph_nodes(operation):
            _check_axes(operation, arguments.args)
            return keras.Operation.compute_output_spec(operation, *arguments.args, **arguments.kwargs)
        return operation.compute_output_spec(*arguments.args, **arguments.kwargs)
    except Exception as error:
        kind = type(operation).__name__
        raise SplitError(
            f"its {operation.name!r} (a {kind}) was built for the old number. Train tokens that the model has, or "
            f"split the part before that layer. ({error})"
        ) from error


def _check_axes(layer: Any, arguments: tuple[Any, ...]) -> None:
    """Compare an input with the sizes that a layer was built for, which a trace with unknown sizes may not notice."""
    axes = getattr(layer.input_spec, "axes", None) or {}
    for axis, size in axes.items() if arguments else ():
        found = arguments[0].shape[int(axis)]
        if None not in (size, found) and size != found:
            raise ValueError(f"expected {size} for axis {axis} of its input, found {found}")


def _forget_traces(container: Any) -> None:
    for name in _TRACED:
        if vars(container).get(name) is not None:
            setattr(container, name, None)
