"""splitembed: pretrained word vectors in a frozen constant, and the rows that train in a small variable.

>>> import splitembed as se
>>> split = se.build_split(["", "[UNK]", "the", "usr"], {"the": [0.1, 0.2]}, seed=0)
>>> split
SplitTable(num_tokens=4, dim=2, num_frozen=2, num_trainable=2)

`import splitembed` does not import TensorFlow: each name is loaded on first use. The Keras classes are registered as
soon as Keras is imported, so that saved models load without `custom_objects`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from splitembed.registration import register_with_keras

if TYPE_CHECKING:
    from splitembed.coverage import report_coverage as report_coverage
    from splitembed.difference import diff as diff
    from splitembed.layers.embedding import SplitEmbedding as SplitEmbedding
    from splitembed.layers.reversible import SplitReversibleEmbedding as SplitReversibleEmbedding
    from splitembed.models.choose_rows import choose_rows as choose_rows
    from splitembed.models.export import export_vectors as export_vectors
    from splitembed.models.export import save_trainable as save_trainable
    from splitembed.models.export import to_dense as to_dense
    from splitembed.models.load_trainable import load_trainable as load_trainable
    from splitembed.models.replace_split import replace_split as replace_split
    from splitembed.models.save_model import save_model as save_model
    from splitembed.models.split_embedding import combine_embedding as combine_embedding
    from splitembed.models.split_embedding import split_embedding as split_embedding
    from splitembed.optimizers import LazyAdam as LazyAdam
    from splitembed.split.build import build_split as build_split
    from splitembed.split.table import SplitTable as SplitTable
    from splitembed.vectors import read_vectors as read_vectors
    from splitembed.vectors.save_frozen import save_frozen as save_frozen
    from splitembed.vocabulary import read_vocabulary as read_vocabulary

_MODULE_OF = {
    "build_split": "split.build",
    "read_vectors": "vectors",
    "read_vocabulary": "vocabulary",
    "save_frozen": "vectors.save_frozen",
    "report_coverage": "coverage",
    "SplitTable": "split.table",
    "SplitEmbedding": "layers.embedding",
    "SplitReversibleEmbedding": "layers.reversible",
    "LazyAdam": "optimizers",
    "split_embedding": "models.split_embedding",
    "combine_embedding": "models.split_embedding",
    "replace_split": "models.replace_split",
    "save_model": "models.save_model",
    "choose_rows": "models.choose_rows",
    "save_trainable": "models.export",
    "load_trainable": "models.load_trainable",
    "diff": "difference",
    "to_dense": "models.export",
    "export_vectors": "models.export",
}
_NAMESPACES = ("errors", "gradients", "initializers", "optimizers", "vectors", "vocabulary")
__all__ = [*_MODULE_OF, *_NAMESPACES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("splitembed")
    if name in _NAMESPACES:
        return importlib.import_module(f"splitembed.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'splitembed' has no attribute {name!r}")
    return getattr(importlib.import_module(f"splitembed.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if name.startswith("__")), *__all__])


register_with_keras()
