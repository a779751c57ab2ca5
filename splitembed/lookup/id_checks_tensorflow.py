"""Checks of token ids in TensorFlow, eagerly and in graphs, before a cast narrows them."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from splitembed.errors import SplitEmbedError, SplitError, TokenIdError
from splitembed.lookup.id_checks import is_float, not_whole, refusal_of_dtype
from splitembed.vocabulary import out_of_range

# tf.gather takes int32 and int64 alone
_WIDER = {
    tf.int8: tf.int32,
    tf.uint8: tf.int32,
    tf.int16: tf.int32,
    tf.uint16: tf.int32,
    tf.uint32: tf.int64,
    # 2**63 and above become negative, and are refused as such
    tf.uint64: tf.int64,
}
_UNSIGNED = {tf.int32: tf.uint32, tf.int64: tf.uint64}


def check_ids(ids: tf.Tensor, num_tokens: int) -> tuple[tf.Tensor, list[tf.Operation]]:
    """Refuse ids out of range before a cast narrows them.

    Returns:
        The ids as int32 or int64, and the operations that must have run before their rows are used. An eager call has
        none: an invalid id has raised.
    """
    checks: list[tf.Operation] = []
    if is_float(ids.dtype.name):
        ids, checks = _whole_ids(ids, num_tokens)
    elif refusal := refusal_of_dtype(ids.dtype.name, num_tokens):
        raise SplitError(refusal)
    wide = tf.cast(ids, _WIDER.get(ids.dtype, ids.dtype))
    # a negative id is a huge unsigned one
    largest = tf.reduce_max(tf.bitcast(wide, _UNSIGNED[wide.dtype]))
    worst = largest if ids.dtype.is_unsigned else tf.bitcast(largest, wide.dtype)
    in_range = _require(largest < num_tokens, worst, lambda worst: out_of_range(worst, num_tokens), TokenIdError)
    return wide, checks + in_range


def _whole_ids(ids: tf.Tensor, num_tokens: int) -> tuple[tf.Tensor, list[tf.Operation]]:
    """Return float ids, as `keras.Input(shape)` without a dtype passes them, as int64; refuse inexact ones."""
    too_narrow = refusal_of_dtype(ids.dtype.name, num_tokens)
    if too_narrow:
        # in a graph when it runs, not when it is traced: Keras traces with float placeholders for integers
        refused = _require(tf.constant(False), tf.constant(0), lambda _: too_narrow, SplitError)
        return tf.zeros(tf.shape(ids), tf.int64), refused
    # NaN and infinity become some integer, which is not equal to them
    whole = tf.cast(ids, tf.int64)
    other = tf.cast(tf.boolean_mask(ids, tf.cast(whole, ids.dtype) != ids)[:1], tf.float64)
    name = ids.dtype.name
    return whole, _require(tf.size(other) == 0, other, lambda other: not_whole(other, name, num_tokens), SplitError)


def _require(
    holds: tf.Tensor, value: tf.Tensor, message: Callable[[Any], str], kind: type[SplitEmbedError]
) -> list[tf.Operation]:
    """Raise now if the condition fails; in a graph, return the operation that raises when it runs."""
    is_float = value.dtype.is_floating
    if tf.executing_eagerly():
        if not holds:
            raise kind(message(format(value.numpy().item(), "g" if is_float else "d")))
        return []
    before, *after = message("\n").split("\n")
    text = tf.strings.as_string(value, shortest=is_float)
    parts = [before, *(part for each in after for part in (text, each))]
    return [tf.debugging.Assert(holds, [tf.strings.join(parts)])]
