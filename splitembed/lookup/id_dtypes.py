"""Which dtypes hold token ids exactly: a dtype's name goes in, what is wrong with it comes out."""

import re

_LARGEST_EXACT = {"float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8}


def is_float(dtype: str) -> bool:
    """Whether ids of this dtype must be checked for being whole."""
    return dtype in _LARGEST_EXACT


def refusal_of_dtype(dtype: str, num_tokens: int) -> str:
    """Says why a dtype cannot hold every id exactly; an empty string where it can, as every integer dtype can.

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
    """The message for a float id that is no whole number."""
    return f"Token ids must be whole numbers from 0 to {num_tokens - 1}. Received: {token_id}, of dtype {dtype}."
