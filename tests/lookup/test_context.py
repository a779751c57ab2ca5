"""The kind of run that a call belongs to: eager, traced, for XLA, or an export to fixed shapes."""

import pytest
import tensorflow as tf

from splitembed import SplitEmbedding, keras_compat
from splitembed.lookup.context import exports_fixed_shapes, in_xla, is_traced
from tests.helpers.models import IDS, make_split


def call_from(module: str, function):
    """Call a function from code of a module of the given name."""
    caller = {"__name__": module}
    exec("def export(function):\n    return [function() for _ in range(1)][0]", caller)
    return caller["export"](function)


def trace(function, **options):
    """Return what a function returns to Python while TensorFlow traces it."""
    seen = []
    tf.function(lambda x: seen.append(function(x)), autograph=False, **options).get_concrete_function(tf.constant(1))
    return seen[0]


def test_a_call_is_traced_in_a_graph_alone():
    assert not is_traced(tf.constant(1))
    assert trace(is_traced)


def test_xla_is_seen_in_a_compiled_graph_alone():
    assert not in_xla()
    assert not trace(lambda x: in_xla())
    assert trace(lambda x: in_xla(), jit_compile=True)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("tensorflow.lite.python.lite", True),
        ("tf2onnx.convert", True),
        ("keras.src.export.saved_model", False),
        ("my_model", False),
    ],
)
def test_converters_to_fixed_shapes_are_known_by_their_module(module, expected):
    assert call_from(module, lambda: trace(exports_fixed_shapes)) is expected
    assert not call_from(module, lambda: exports_fixed_shapes(tf.constant(1)))


@pytest.mark.parametrize("options", [{}, {"combiner": "mean"}, {"lookup": "static"}, {"lookup": "dynamic"}])
@pytest.mark.parametrize("frozen_dtype", ["float32", "float16"])
def test_an_eager_call_never_walks_the_stack(options, frozen_dtype, monkeypatch):
    def walk():
        raise AssertionError("the stack was walked")

    layer = SplitEmbedding(make_split().with_frozen_dtype(frozen_dtype), **options)
    layer.build()
    monkeypatch.setattr(keras_compat, "is_called_by_exporter", walk)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(IDS))
    assert tape.gradient(loss, layer.trainable_variables)[0] is not None
    if options != {"lookup": "static"}:
        with pytest.raises(AssertionError, match="the stack was walked"):
            tf.function(layer, autograph=False)(IDS)
