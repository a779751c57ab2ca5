"""Checks of token ids that need no TensorFlow: which dtypes hold every id, and arrays whose values are known."""

import re
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.lookup.context import is_traced
from splitembed.vocabulary import check_ids

_LARGEST_EXACT = {"float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8}


def is_float(dtype: str) -> bool:
    """Return whether ids of this dtype must be checked for being whole."""
    return dtype in _LARGEST_EXACT


def refusal_of_dtype(dtype: str, num_tokens: int) -> str:
    """Return why a dtype cannot hold every id exactly; an empty string where it can, as every integer dtype can.

    >>> refusal_of_dtype("int8", 400_000), refusal_of_dtype("float32", 400_000)
    ('', '')
    >>> print(refusal_of_dtype("float16", 400_000)[:66])
    `ids` of dtype float16 cannot hold every id below 400000 exactly.
    >>> print(refusal_of_dtype("bool", 2))
    `ids` must be integers. Received: a tensor of dtype bool.
    """
    if is_float(dtype):
        if num_tokens <= _LARGEST_EXACT[dtype]:
            return ""
        return (
            f"`ids` of dtype {dtype} cannot hold every id below {num_tokens} exactly. "
            f'Give the model integers: keras.Input(shape, dtype="int32").'
        )
    return "" if re.fullmatch(r"u?int\d+", dtype) else f"`ids` must be integers. Received: a tensor of dtype {dtype}."


def not_whole(token_id: object, dtype: str, num_tokens: int) -> str:
    """Return the message for a float id with a fraction.

    >>> not_whole(0.5, "float32", 4)
    'Token ids must be whole numbers from 0 to 3. Received: 0.5, of dtype float32.'
    """
    return f"Token ids must be whole numbers from 0 to {num_tokens - 1}. Received: {token_id}, of dtype {dtype}."


def check_known_ids(ids: Any, num_tokens: int) -> None:
    """Refuse invalid ids whose values are known while Python runs: arrays, and tensors outside a traced program.

    Raises:
        SplitError: a dtype that cannot hold every id, or an id with a fraction.
        TokenIdError: an id out of range.
    """
    if is_traced(ids):
        return
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if refusal := refusal_of_dtype(dtype, num_tokens):
        raise SplitError(refusal)
    check_array(np.asarray(ids if isinstance(ids, np.ndarray) else ops.convert_to_numpy(ids)), dtype, num_tokens)


def check_array(ids: NDArray[Any], dtype: str, num_tokens: int) -> None:
    """Refuse an array with an id that is out of range or has a fraction, and name the first one.

    Raises:
        SplitError: an id with a fraction, NaN or infinity.
        TokenIdError: an id out of range.
    """
    if is_float(dtype) and (broken := ids[~np.isfinite(ids) | (ids != np.trunc(ids))]).size:
        raise SplitError(not_whole(format(float(broken[0]), "g"), dtype, num_tokens))
    check_ids(ids, num_tokens)
