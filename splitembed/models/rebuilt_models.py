"""Models that Keras rebuilds from constructor arguments, such as KerasHub's: they are not saved whole while split.

A `.keras` file or a preset of such a model holds sizes and weights. Keras would make a plain embedding of the sizes, on
which the saved weights of a split one do not fit.
"""

from collections.abc import Iterable
from typing import Any

from splitembed.keras_compat import add_refusal, remove_refusal
from splitembed.layers.embedding import SplitEmbedding
from splitembed.models.find_embedding import layers_in

# methods of Keras's and KerasHub's models that write or read files by what the constructor makes
REFUSED = ("save", "save_to_preset", "export_to_transformers", "save_lora_weights", "load_lora_weights")


def config_holds(container: Any, layer: Any) -> bool:
    """Return whether the config of a container describes a layer, as those of functional models and wrappers do."""
    try:
        config = container.get_config()
    # a class that Keras cannot save may raise anything
    except Exception:
        return False
    return _describes(config, type(layer).__name__, layer.name)


def _describes(config: Any, class_name: str, name: str) -> bool:
    if isinstance(config, dict):
        inner = config.get("config")
        if config.get("class_name") == class_name and isinstance(inner, dict) and inner.get("name") == name:
            return True
        return any(_describes(each, class_name, name) for each in config.values())
    return isinstance(config, list | tuple) and any(_describes(each, class_name, name) for each in config)


def refuse_saving(containers: Iterable[Any], layer: SplitEmbedding) -> None:
    """Make containers that do not describe their split layer refuse to be saved, and the layer with them.

    The methods in `REFUSED` are shadowed on each object. In models around these, which Keras saves through the layer's
    `save_assets`, the layer refuses.

    Args:
        containers: those for which `config_holds` is False.
        layer: the split layer in them.
    """
    for container in containers:
        layer.refuses_archives = True
        for name in REFUSED:
            if hasattr(container, name):
                add_refusal(container, name, layer.name)


def allow_saving(containers: Iterable[Any]) -> None:
    """Remove the refusals from containers in which no refusing split layer is left."""
    for container in containers:
        if any(each.refuses_archives for each in layers_in(container, SplitEmbedding)):
            continue
        for name in REFUSED:
            remove_refusal(container, name)
