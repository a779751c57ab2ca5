"""What trains around a split layer: owners and the layer go in; its rows train then, and nothing else that did not."""

from dataclasses import dataclass, field
from typing import Any

import keras

from splitembed.layers.embedding import SplitEmbedding


@dataclass
class Before:
    """What a split layer knows of the plain one that it was; no list, or Keras would look for layers to save in it.

    Args:
        trainable: the plain layer's flag.
        lent_by: owners that were frozen, and are trainable for this layer's sake.
        frozen: layers and variables in them that only seemed trainable, and are frozen by themselves since.
    """

    trainable: bool
    lent_by: list[Any] = field(default_factory=list)
    frozen: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, layer: Any) -> "Before":
        """What a layer knows; of a plain one its flag; of one that was never plain, that it trains."""
        known: Before | None = layer.__dict__.get("_before")
        return known or cls(layer.trainable or isinstance(layer, SplitEmbedding))

    def let_train(self, owners: list[Any], layer: Any) -> "Before":
        """Makes frozen owners trainable; all else in them is frozen by itself."""
        frozen = [owner for owner in owners if not owner.trainable]
        kept = {id(each) for each in (*owners, *layer._flatten_layers(), *layer.variables)}
        for owner in frozen:
            for each in (*owner._flatten_layers(include_self=False), *owner.variables):
                if each.trainable and id(each) not in kept:
                    _set_flag(each, False)
                    self.frozen.append(each)
            owner._trainable = 1  # not True itself: TensorFlow would take `owner.trainable = True` for no change later
            self.lent_by.append(owner)
        return self

    def trains_again(self, layer: Any) -> bool:
        """The flag of the layer that is to be plain again: the old one, unless owners were unfrozen as wholes since."""
        layers = (each for owner in self.lent_by for each in owner._flatten_layers())
        return self.trainable or (self._is_unfrozen(layer) and all(each.trainable for each in layers))

    def freeze_again(self, layer: Any) -> None:
        """Freezes the owners, and gives what they hold its flags back; not if somebody has let that train since."""
        if self._is_unfrozen(layer):
            return
        for owner in self.lent_by:
            _set_flag(owner, False)
        for each in self.frozen:
            _set_flag(each, True)

    def _is_unfrozen(self, layer: Any) -> bool:
        """Whether the owners hold anything that trains beside the layer and others that are split."""
        held = [each for owner in self.lent_by for each in owner._flatten_layers()]
        splits = [layer, *(each for each in held if isinstance(each, SplitEmbedding))]
        own = {id(variable) for each in splits for variable in each.variables}
        return any(each.trainable for owner in self.lent_by for each in owner.variables if id(each) not in own)


def set_flags(layers: list[Any], frozen: list[int]) -> None:
    """Freezes those layers whose places are named, and what each of them holds of its own; the others train."""
    for place, layer in enumerate(layers):  # owners come before what they hold, which their flag is handed down to
        if layer.trainable != (place not in frozen):
            layer.trainable = place not in frozen


def loses_flags(owner: Any) -> bool:
    """Whether a layer in it is frozen that another layer, and no model, makes for itself: no config says that it is."""
    layers = [each for each in owner._flatten_layers() if not isinstance(each, (keras.Model, SplitEmbedding))]
    return any(not inner.trainable for each in layers for inner in each._flatten_layers(include_self=False))


def _set_flag(layer_or_variable: Any, value: bool) -> None:
    name = "_trainable" if isinstance(layer_or_variable, keras.Layer) else "trainable"  # a layer's would be handed down
    setattr(layer_or_variable, name, value)
