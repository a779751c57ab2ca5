"""splitembed: pretrained word vectors in a frozen constant, the rows to be learned in a small trainable variable.

>>> import splitembed as se
>>> split = se.build_split(["", "[UNK]", "the", "usr"], {"the": [0.1, 0.2]}, seed=0)
>>> split
SplitTable(num_tokens=4, dim=2, num_frozen=2, num_trainable=2)

`import splitembed` does not import TensorFlow: each name is loaded on first use. The Keras classes register themselves
as soon as Keras is imported, so that saved models load without `custom_objects`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from splitembed.layers.registration import register_with_keras

if TYPE_CHECKING:
    from splitembed.coverage import CoverageReport as CoverageReport
    from splitembed.coverage import measure_coverage as measure_coverage
    from splitembed.coverage import report_coverage as report_coverage
    from splitembed.difference import diff as diff
    from splitembed.gradients import GradientGate as GradientGate
    from splitembed.gradients import RowGradientOptimizer as RowGradientOptimizer
    from splitembed.gradients import clip_gradient_rows as clip_gradient_rows
    from splitembed.gradients import keep_gradient_rows as keep_gradient_rows
    from splitembed.gradients import keep_gradient_where as keep_gradient_where
    from splitembed.gradients.partial_embedding import PartialEmbedding as PartialEmbedding
    from splitembed.initializers.ngrams import NgramRidge as NgramRidge
    from splitembed.layers.embedding import SplitEmbedding as SplitEmbedding
    from splitembed.layers.reversible import SplitReversibleEmbedding as SplitReversibleEmbedding
    from splitembed.models.export import export_vectors as export_vectors
    from splitembed.models.export import save_trainable as save_trainable
    from splitembed.models.export import to_dense as to_dense
    from splitembed.models.load_trainable import load_trainable as load_trainable
    from splitembed.models.replace_split import replace_split as replace_split
    from splitembed.models.split_embedding import combine_embedding as combine_embedding
    from splitembed.models.split_embedding import split_embedding as split_embedding
    from splitembed.optimizers.lazy import LazyAdagrad as LazyAdagrad
    from splitembed.optimizers.lazy import LazyAdam as LazyAdam
    from splitembed.optimizers.lazy import LazySGD as LazySGD
    from splitembed.split.build import build_split as build_split
    from splitembed.split.table import SplitTable as SplitTable
    from splitembed.vectors import SubwordVectors as SubwordVectors
    from splitembed.vectors import VectorSource as VectorSource
    from splitembed.vectors import WordVectors as WordVectors
    from splitembed.vectors import read_vectors as read_vectors
    from splitembed.vectors.save_frozen import save_frozen as save_frozen
    from splitembed.vocabulary import Vocabulary as Vocabulary
    from splitembed.vocabulary import read_vocabulary as read_vocabulary

_MODULE_OF = {
    "build_split": "split.build",
    "clip_gradient_rows": "gradients",
    "combine_embedding": "models.split_embedding",
    "CoverageReport": "coverage",
    "diff": "difference",
    "export_vectors": "models.export",
    "GradientGate": "gradients",
    "keep_gradient_rows": "gradients",
    "keep_gradient_where": "gradients",
    "load_trainable": "models.load_trainable",
    "measure_coverage": "coverage",
    "LazyAdagrad": "optimizers.lazy",
    "LazyAdam": "optimizers.lazy",
    "LazySGD": "optimizers.lazy",
    "NgramRidge": "initializers.ngrams",
    "PartialEmbedding": "gradients.partial_embedding",
    "read_vectors": "vectors",
    "read_vocabulary": "vocabulary",
    "replace_split": "models.replace_split",
    "report_coverage": "coverage",
    "RowGradientOptimizer": "gradients",
    "save_frozen": "vectors.save_frozen",
    "save_trainable": "models.export",
    "split_embedding": "models.split_embedding",
    "SplitEmbedding": "layers.embedding",
    "SplitReversibleEmbedding": "layers.reversible",
    "SplitTable": "split.table",
    "SubwordVectors": "vectors",
    "to_dense": "models.export",
    "VectorSource": "vectors",
    "Vocabulary": "vocabulary",
    "WordVectors": "vectors",
}
__all__ = [*_MODULE_OF, "errors"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("splitembed")
    if name == "errors":
        return importlib.import_module("splitembed.errors")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'splitembed' has no attribute {name!r}")
    return getattr(importlib.import_module(f"splitembed.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if name.startswith("__")), *__all__])


register_with_keras()
