"""What holds a split layer is saved with it: an owner whose config is its constructor's would make a plain one again.

Such an owner becomes of a class of the same name, that is saved as what it was and what was split in it.
"""

from typing import Any

import keras
from keras.src.models.functional import Functional, functional_like_constructor

from splitembed.layers.embedding import SplitEmbedding
from splitembed.models.find_embedding import layers_in
from splitembed.models.swap_layer import owners_of, put_layer
from splitembed.models.trainable_flags import Before, loses_flags, set_flags
from splitembed.optimizers.optimizer_state import Carried

_EMBEDDINGS = (keras.layers.Embedding, SplitEmbedding)
_BY_NUMBER = ("save_lora_weights", "load_lora_weights")  # KerasHub's, which name layers by their number
_MADE: dict[Any, type] = {}  # the class that remembers, by the plain one


@keras.saving.register_keras_serializable(package="splitembed")
class RemembersSplits:
    """Mixed into an owner's class: its config is that of the plain owner, with the split layers' beside it."""

    _plain: Any

    def get_config(self) -> dict[str, Any]:
        """The plain owner as Keras serializes it, split layers at their places among embeddings, and what is frozen."""
        plain = _as(self, self._plain, keras.saving.serialize_keras_object)
        plain.pop("compile_config", None)  # the whole has one
        is_split_later = not _has_layers_in_config(self._plain)
        if is_split_later and "trainable" in plain["config"] and _trains_splits_alone(self):
            plain["config"]["trainable"] = False  # it is made frozen again, and then split
        places = enumerate(layers_in(self, _EMBEDDINGS))
        splits = {
            str(place): keras.saving.serialize_keras_object(each)
            for place, each in places
            if isinstance(each, SplitEmbedding)
        }
        layers = _other_layers(self)
        frozen = [place for place, layer in enumerate(layers) if not layer.trainable]
        return {"plain": plain, "splits": splits, "frozen": frozen, "num_layers": len(layers)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the owner, and puts the split layers in the places of plain ones."""
        owner = keras.saving.deserialize_keras_object(config["plain"])
        embeddings = layers_in(owner, _EMBEDDINGS)
        for place, layer_config in config["splits"].items():
            old = embeddings[int(place)]
            if not isinstance(old, SplitEmbedding):  # an inner owner may have seen to it
                new = keras.saving.deserialize_keras_object({**layer_config, "build_config": None})
                new._parent_path = old._parent_path
                new.build()
                put_split(owner, old, new)
        layers = _other_layers(owner)
        if len(layers) == config["num_layers"]:  # else some are made when the owner is built, with the flags they get
            set_flags(layers, config["frozen"])
            for layer in layers_in(owner, SplitEmbedding):
                Before.of(layer).frozen.clear()  # these are flags of their own
        _remember(owner)
        return owner

    def __reduce__(self) -> Any:
        """As the plain owner is pickled: this class is found by no name."""
        arguments = super().__reduce__()[1]
        return self._plain._unpickle_model, arguments


def put_split(model: Any, old: Any, new: Any, carried: Carried | None = None) -> Any:
    """Puts a layer in another one's place as `put_layer` does; owners remember split layers, and forget plain ones."""
    owners = owners_of(model, old)
    put_layer(model, old, new, carried)
    for owner in owners:
        if layers_in(owner, SplitEmbedding):
            _remember(owner)
        elif isinstance(owner, RemembersSplits):
            object.__setattr__(owner, "__class__", owner._plain)
    return model


def _remember(owner: Any) -> None:
    if not isinstance(owner, RemembersSplits) and (not _has_layers_in_config(type(owner)) or loses_flags(owner)):
        object.__setattr__(owner, "__class__", _remembering(type(owner)))


def _has_layers_in_config(kind: Any) -> bool:
    """Whether a class's config says of each layer what it is, as those of plain functional models and wrappers do."""
    if kind.get_config is keras.Sequential.get_config or issubclass(kind, keras.layers.Wrapper):
        return True
    return kind.get_config is Functional.get_config and bool(functional_like_constructor(kind))


def _remembering(kind: Any) -> type:
    if kind in _MADE:
        return _MADE[kind]
    contents: dict[str, Any] = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    if hasattr(kind, "save_to_preset"):
        contents["save_to_preset"] = _no_preset
    for name in _BY_NUMBER:
        if hasattr(kind, name):
            contents[name] = _by_number(name)
    made = _MADE[kind] = type(kind.__name__, (RemembersSplits, kind), {**contents, "_plain": kind})
    # any class of this name leads to the same from_config, so each may take the last one's place
    keras.saving.register_keras_serializable(package="splitembed", name=RemembersSplits.__name__)(made)
    return made


def _no_preset(self: Any, *args: Any, **kwargs: Any) -> None:
    """Refuses: presets are for plain models, and hold no frozen table.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"{self.name!r} holds a SplitEmbedding, which a preset cannot. Save the small table by save_trainable beside "
        "the base model's preset, or the whole model by save; or make it plain first, by combine_embedding."
    )


def _by_number(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        """As the plain owner does it.

        Raises:
            NotImplementedError: a second table, that of the logits, has a number of its own, so that all after it have
                others than in the plain model.
        """
        untied = [each for each in layers_in(self, SplitEmbedding) if getattr(each, "reverse_embedding", None)]
        if untied:
            raise NotImplementedError(
                f"{name} counts layers, and {untied[0].name!r}, whose weights are not tied, is two of them. Call "
                "combine_embedding first, or save the whole model by save."
            )
        return getattr(self._plain, name)(self, *args, **kwargs)

    return method


def _as(owner: Any, kind: type, action: Any) -> Any:
    """What an action gives of an object that is of another class meanwhile."""
    own = type(owner)
    object.__setattr__(owner, "__class__", kind)
    try:
        return action(owner)
    finally:
        object.__setattr__(owner, "__class__", own)


def _other_layers(owner: Any) -> list[Any]:
    return [each for each in layers_in(owner, keras.Layer) if not isinstance(each, SplitEmbedding)]


def _trains_splits_alone(owner: Any) -> bool:
    of_splits = {id(each) for layer in layers_in(owner, SplitEmbedding) for each in layer.variables}
    return not any(each.trainable for each in owner.variables if id(each) not in of_splits)
