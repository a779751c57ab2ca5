"""How the rows of tokens without a pretrained vector start: a name or an initializer goes in, rows come out.

Once the rows train, the choice hardly matters: on 20 Newsgroups "zeros", "uniform" and "ngrams" came out within 0.1
points of accuracy, "normal" 0.5 and "mean" 1.1 below them. So the default is "uniform", which needs nothing. Where the
rows stay as they start, the choice does matter: "subwords" and "ngrams" are for that.
"""

import inspect
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.initializers.by_token import TOKEN_NAMES, TokenInitializer, looks_at_tokens, make_token_rows
from splitembed.vectors import WordVectors

MAX_REFERENCE_ROWS = 65_536  # a mean's standard error is then 1/256 of the standard deviation
OWN_NAMES = ("zeros", "uniform", "normal", "mean")
UNIFORM_LIMIT = 0.05  # keras.layers.Embedding's own "uniform"

Seed = int | np.random.Generator | None
Rows = NDArray[np.float32]
Initializer = str | TokenInitializer | Callable[..., Any]


def initialize_rows(
    initializer: Initializer,
    tokens: Sequence[str] | int,
    dim: int,
    *,
    reference: Any = None,
    seed: Seed = None,
    known: WordVectors | None = None,
) -> Rows:
    """Makes the rows that training starts from.

    >>> initialize_rows("mean", 2, 3, reference=np.array([[0, 2, 4], [2, 4, 8]], np.float32)).tolist()
    [[1.0, 3.0, 6.0], [1.0, 3.0, 6.0]]

    Args:
        initializer: "zeros"; "uniform", from -0.05 to 0.05 as `keras.layers.Embedding` does; "normal", with the mean
            and the standard deviation of each column of `reference`; "mean", the mean of `reference`; "subwords", the
            vectors that the fastText .bin model from which `known` was read gives the tokens; "ngrams", `NgramRidge()`;
            an object with `make_rows(tokens, known, generator)`, such as `SubwordVectors` of any model or `NgramRidge`;
            any other name that `keras.initializers.get` knows; or a callable with Keras's signature
            `initializer(shape, dtype=...)`.
        tokens: the tokens, one for each row; their number does where the initializer does not look at them.
        dim: length of a row.
        reference: `(num_reference, dim)` floats, such as the frozen rows. At most 65,536 evenly spaced rows are read,
            so a memory map of millions is fine; rows that are not finite do not count.
        seed: an int, a generator to draw from, or None. It governs names; a Keras initializer object carries its own.
        known: the words that have vectors, with them; "subwords" and "ngrams" need it.

    Returns:
        `(num_tokens, dim)` float32, every value finite.

    Raises:
        SplitError: an unknown name, no usable reference, tokens or known words where they are needed, or an
            initializer that returns another shape or values that are not finite.
        ImportError: scikit-learn is missing, which "ngrams" needs; the message says how to install it.
    """
    num_rows = _num_rows(tokens)
    if num_rows < 0 or dim < 1:
        raise SplitError(f"Rows to start must have a shape of at least (0, 1). Received: ({num_rows}, {dim}).")
    generator = _generator(seed)
    own_name = initializer if isinstance(initializer, str) and initializer in OWN_NAMES else None
    by_tokens = looks_at_tokens(initializer)
    called = None if own_name or by_tokens else _find_callable(initializer, generator)
    if num_rows == 0:
        return np.empty((0, dim), np.float32)
    if own_name:
        rows = _own_rows(own_name, (num_rows, dim), reference, generator)
    elif by_tokens:
        made = make_token_rows(initializer, tokens, known, generator)
        rows = _checked_rows(made, (num_rows, dim), initializer)
    else:
        rows = _called_rows(called, (num_rows, dim))
    if not np.isfinite(rows).all():
        raise SplitError(f"The initializer {initializer!r} gave values that are not finite in float32.")
    return rows


def _generator(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise SplitError(
            f"`seed` must be an integer, 0 or more, a NumPy generator or None. Received: {seed!r}. ({error})"
        ) from None


def _num_rows(tokens: Any) -> int:
    if isinstance(tokens, (str, bytes)):
        raise SplitError(f"`tokens` must be a sequence of tokens or their number. Received: {tokens!r}.")
    return len(tokens) if isinstance(tokens, Sequence) else operator.index(tokens)


def _find_callable(initializer: Any, generator: np.random.Generator) -> Any:
    if isinstance(initializer, str):
        return _named_in_keras(initializer, generator)
    if inspect.isclass(initializer):
        raise SplitError(f"The initializer is a class: pass an instance, {initializer.__name__}(...).")
    if not callable(initializer):
        raise SplitError(
            f"The initializer must be a name or a callable (shape, dtype=...). Received: {type(initializer).__name__}."
        )
    return initializer


def _own_rows(name: str, shape: tuple[int, int], reference: Any, generator: np.random.Generator) -> Rows:
    if name == "zeros":
        return np.zeros(shape, np.float32)
    if name == "uniform":
        rows = generator.random(shape, np.float32)
        rows *= np.float32(2 * UNIFORM_LIMIT)  # in place: the memory of one table, not of two
        rows -= np.float32(UNIFORM_LIMIT)
        return rows
    sample = _sample(reference, shape[1], name)
    rows = generator.standard_normal(shape, np.float32) if name == "normal" else np.zeros(shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found and refused in the finished rows
        if name == "normal":
            rows *= sample.std(axis=0, dtype=np.float64).astype(np.float32)
        rows += sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    return rows


def _sample(reference: Any, dim: int, name: str) -> NDArray[Any]:
    """Evenly spaced rows of the reference, those that are finite; a slice, so that a memory map reads no others."""
    reference = np.asarray(reference) if isinstance(reference, (list, tuple)) else reference
    if reference is None or len(reference) == 0:
        raise SplitError(
            f'The initializer "{name}" needs pretrained rows to match, and there are none. Use "zeros" or "uniform".'
        )
    if len(reference.shape) != 2 or reference.shape[1] != dim or not _is_float(reference.dtype):
        raise SplitError(
            f"The reference of an initializer must be floats of shape (num_reference, {dim}). "
            f"Received: shape {tuple(reference.shape)}, dtype {reference.dtype}."
        )
    step = -(-len(reference) // MAX_REFERENCE_ROWS)
    rows = np.asarray(reference[::step])
    if not np.issubdtype(rows.dtype, np.floating):  # bfloat16
        rows = rows.astype(np.float32)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.any():
        raise SplitError(
            f'The initializer "{name}" needs finite pretrained rows to match: each of the {len(rows)} rows read holds '
            "NaN or infinity."
        )
    return rows if finite.all() else rows[finite]


def _is_float(dtype: np.dtype[Any]) -> bool:
    return np.issubdtype(dtype, np.floating) or dtype.name == "bfloat16"  # bfloat16 is no NumPy type of its own


def _named_in_keras(name: str, generator: np.random.Generator) -> Any:
    import keras  # here, not above: our own names need no Keras

    try:
        initializer = keras.initializers.get(name)
    except (ValueError, KeyError):  # KeyError: "constant" misses its value
        names = ", ".join(sorted({*OWN_NAMES, *TOKEN_NAMES, *_keras_names(keras.initializers)} - {name}))
        raise SplitError(
            f"The name {name!r} alone makes no initializer. Names: {names}. Others are passed as objects."
        ) from None
    config = initializer.get_config()
    if "seed" in config:  # else the rows would differ from run to run whatever the seed
        config["seed"] = int(generator.integers(2**31))
    return type(initializer).from_config(config)


def _keras_names(module: Any) -> list[str]:
    """Keras's initializers in the spelling that its documentation uses for names: `glorot_uniform`."""
    return [name for name in dir(module) if name.islower() and inspect.isclass(getattr(module, name))]


def _called_rows(initializer: Any, shape: tuple[int, int]) -> Rows:
    result = initializer(shape, dtype="float32")
    keras = sys.modules.get("keras")  # if it is there, the result may be a tensor of its backend, on any device
    if keras is not None and not isinstance(result, np.ndarray):
        result = keras.ops.convert_to_numpy(result)
    return _checked_rows(result, shape, initializer)


def _checked_rows(result: Any, shape: tuple[int, int], initializer: Any) -> Rows:
    array = np.asarray(result)
    if array.shape != shape or not (array.dtype.kind in "iu" or _is_float(array.dtype)):
        raise SplitError(
            f"The initializer {initializer!r} must return numbers of shape {shape}. "
            f"Received: shape {array.shape}, dtype {array.dtype}."
        )
    with np.errstate(over="ignore"):
        return np.array(array, np.float32, order="C")  # a copy: a user's array may be read-only, or change later
