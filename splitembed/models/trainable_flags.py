"""The `trainable` flags around a split layer, so that its rows train and nothing else starts to.

Nothing in a layer trains whose flag is False. So a frozen container of a split layer gets a true flag, and everything
else in it that has a true flag is frozen one by one. `combine_embedding` undoes both.

The changes are:

- on the split layer, `flags_before`: a `FlagsBefore`;
- on each container that was frozen: its own flag is 1 in functional and sequential models, so that a later
  `model.trainable = True` unfreezes the contents (see `set_own_flag`), else True, as other constructors take no 1;
- on layers and variables in these containers: their own flag is False.
"""

from dataclasses import dataclass, field
from typing import Any

import keras

from splitembed.keras_compat import all_layers, graph_nodes, set_own_flag
from splitembed.layers.embedding import SplitEmbedding


@dataclass
class FlagsBefore:
    """The flags before a split, as far as the split has changed them.

    A dataclass and not a list, in which Keras would look for layers to save.

    Args:
        trainable: the flag of the plain layer.
        containers: the layers and models that were frozen, and have a true flag because of the split layer.
        frozen: the layers and variables in them that are frozen one by one instead.
    """

    trainable: bool
    containers: list[Any] = field(default_factory=list)
    frozen: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, layer: Any) -> "FlagsBefore":
        """Return what a split layer keeps; for a plain layer, its flag; for one that was never plain, True."""
        known: FlagsBefore | None = getattr(layer, "flags_before", None)
        return known or cls(layer.trainable or isinstance(layer, SplitEmbedding))

    def let_rows_train(self, containers: list[Any], layer: Any) -> None:
        """Give frozen containers of a split layer a true flag, and freeze everything else in them one by one."""
        kept = {id(each) for each in (*containers, *all_layers(layer), *layer.variables)}
        for container in [each for each in containers if not each.trainable]:
            for each in (*all_layers(container), *container.variables):
                if each.trainable and id(each) not in kept:
                    _set_flag(each, False)
                    self.frozen.append(each)
            set_own_flag(container, 1 if graph_nodes(container) else True)
            self.containers.append(container)

    def restore(self, layer: Any) -> None:
        """Give containers and their contents their old flags back, unless something was unfrozen since the split."""
        is_unfrozen = self._is_unfrozen(layer)
        for container in self.containers:
            _set_flag(container, is_unfrozen)
        for each in self.frozen if not is_unfrozen else ():
            _set_flag(each, True)

    def of_plain_layer(self, layer: Any) -> bool:
        """Return the flag for the combined layer: the old one, or True if its containers were unfrozen as wholes."""
        layers = (each for container in self.containers for each in all_layers(container))
        return self.trainable or (self._is_unfrozen(layer) and all(each.trainable for each in layers))

    def _is_unfrozen(self, layer: Any) -> bool:
        """Return whether anything in the containers trains apart from split layers."""
        held = [each for container in self.containers for each in all_layers(container)]
        splits = [layer, *(each for each in held if isinstance(each, SplitEmbedding))]
        own = {id(variable) for each in splits for variable in each.variables}
        variables = (each for container in self.containers for each in container.variables)
        return any(each.trainable for each in variables if id(each) not in own)


def _set_flag(layer_or_variable: Any, value: bool) -> None:
    """Set one flag alone: that of a layer would be passed on by its public setter."""
    if isinstance(layer_or_variable, keras.Layer):
        set_own_flag(layer_or_variable, value)
    else:
        layer_or_variable.trainable = value
