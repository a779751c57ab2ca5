"""Initial rows of OOV tokens, by the name of an initializer or by an initializer object.

If the rows train, the choice hardly matters: on 20 Newsgroups the accuracies of "zeros", "uniform" and "ngrams" were
within 0.1 points, "normal" was 0.5 and "mean" 1.1 points below. The default is therefore "uniform", which needs no
other data. If the rows do not train, use "subwords" or "ngrams".
"""

import inspect
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.initializers.by_token import TOKEN_NAMES, TokenInitializer, make_token_rows, needs_tokens
from splitembed.vectors import WordVectors

# The standard error of a mean of so many rows is 1/256 of the standard deviation.
MAX_REFERENCE_ROWS = 65_536
BUILT_IN_NAMES = ("zeros", "uniform", "normal", "mean")
# The limit of Keras's "uniform" initializer.
UNIFORM_LIMIT = 0.05

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
    """Return the rows from which training starts.

    >>> initialize_rows("mean", 2, 3, reference=np.array([[0, 2, 4], [2, 4, 8]], np.float32)).tolist()
    [[1.0, 3.0, 6.0], [1.0, 3.0, 6.0]]

    Args:
        initializer: "zeros"; "uniform", from -0.05 to 0.05 like `keras.layers.Embedding`; "normal", with the mean and
            the standard deviation of each column of `reference`; "mean", the mean of `reference`; "subwords", the
            subword vectors of the fastText .bin model from which `known` was read; "ngrams", `NgramRidge()`; an object
            with a method `make_rows(tokens, known, generator)`, such as `SubwordVectors` or `NgramRidge`; any other
            name that `keras.initializers.get` accepts; or a callable with Keras's signature
            `initializer(shape, dtype=...)`.
        tokens: the tokens, one for each row; or their number if the initializer does not use the tokens.
        dim: length of a row.
        reference: `(num_reference, dim)` floats, such as the frozen rows. At most 65,536 evenly spaced rows are read,
            also of a memory map; rows that are not finite are ignored.
        seed: an int, a generator to draw from, or None, as for `make_generator`. It seeds named initializers; a Keras
            initializer object has its own seed.
        known: pretrained words with their vectors, for "subwords", "ngrams" and objects with `make_rows`.

    Returns:
        `(num_tokens, dim)` float32, every value finite.

    Raises:
        SplitError: the name is unknown; the reference, tokens or known words that the initializer needs are missing or
            invalid; or it returns another shape or values that are not finite.
        ImportError: "ngrams" needs scikit-learn, which is missing.
    """
    num_rows = _num_rows(tokens)
    if num_rows < 0 or dim < 1:
        raise SplitError(f"The shape of the rows must be at least (0, 1). Received: ({num_rows}, {dim}).")
    generator = make_generator(seed)
    built_in_name = initializer if isinstance(initializer, str) and initializer in BUILT_IN_NAMES else None
    by_token = needs_tokens(initializer)
    called = None if built_in_name or by_token else _find_callable(initializer, generator)
    if num_rows == 0:
        return np.empty((0, dim), np.float32)
    if built_in_name:
        rows = _built_in_rows(built_in_name, (num_rows, dim), reference, generator)
    elif by_token:
        made = make_token_rows(initializer, tokens, known, generator)
        rows = _checked_rows(made, (num_rows, dim), initializer)
    else:
        rows = _called_rows(called, (num_rows, dim))
    if not np.isfinite(rows).all():
        raise SplitError(
            f"The initializer {initializer!r} must return values that are finite in float32. Received: NaN or infinity."
        )
    return rows


def make_generator(seed: Seed) -> np.random.Generator:
    """Return a random generator. Without a seed it follows `keras.utils.set_random_seed`.

    >>> np.random.seed(7)
    >>> number = make_generator(None).random()
    >>> np.random.seed(7)
    >>> make_generator(None).random() == number
    True

    Args:
        seed: an int, a generator, or None: a seed from NumPy's global generator, which
            `keras.utils.set_random_seed` seeds with those of Python and Keras.

    Raises:
        SplitError: another seed.
    """
    if seed is None:
        # Only the global generator is seeded by Keras.
        return np.random.default_rng(np.random.randint(2**32, size=4, dtype=np.uint32))  # noqa: NPY002
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise SplitError(
            f"`seed` must be an integer, 0 or more, a NumPy generator or None. Received: {seed!r}. ({error})"
        ) from None


def _num_rows(tokens: Any) -> int:
    if isinstance(tokens, (str, bytes)):
        raise SplitError(f"`tokens` must be a sequence of tokens, or their number. Received: {tokens!r}.")
    return len(tokens) if isinstance(tokens, Sequence) else operator.index(tokens)


def _find_callable(initializer: Any, generator: np.random.Generator) -> Any:
    if isinstance(initializer, str):
        return _named_in_keras(initializer, generator)
    if inspect.isclass(initializer):
        raise SplitError(
            f"The initializer must be an instance. Received: the class {initializer.__name__}. "
            f"Pass {initializer.__name__}(...)."
        )
    if not callable(initializer):
        raise SplitError(
            f"The initializer must be a name or a callable (shape, dtype=...). Received: {type(initializer).__name__}."
        )
    return initializer


def _built_in_rows(name: str, shape: tuple[int, int], reference: Any, generator: np.random.Generator) -> Rows:
    if name == "zeros":
        return np.zeros(shape, np.float32)
    if name == "uniform":
        rows = generator.random(shape, np.float32)
        # In place, which needs half the memory.
        rows *= np.float32(2 * UNIFORM_LIMIT)
        rows -= np.float32(UNIFORM_LIMIT)
        return rows
    sample = _sample(reference, shape[1], name)
    rows = generator.standard_normal(shape, np.float32) if name == "normal" else np.zeros(shape, np.float32)
    # The caller checks the finished rows for overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "normal":
            rows *= sample.std(axis=0, dtype=np.float64).astype(np.float32)
        rows += sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    return rows


def _sample(reference: Any, dim: int, name: str) -> NDArray[Any]:
    """Return evenly spaced finite rows of the reference, by a slice, so that a memory map reads no others."""
    reference = np.asarray(reference) if isinstance(reference, (list, tuple)) else reference
    if reference is None or len(reference) == 0:
        raise SplitError(f'The initializer "{name}" needs `reference` rows. Received: none. Use "zeros" or "uniform".')
    if len(reference.shape) != 2 or reference.shape[1] != dim or not _is_float(reference.dtype):
        raise SplitError(
            f"`reference` must be floats of shape (num_reference, {dim}). "
            f"Received: shape {tuple(reference.shape)}, dtype {reference.dtype}."
        )
    step = -(-len(reference) // MAX_REFERENCE_ROWS)
    rows = np.asarray(reference[::step])
    # NumPy has no statistics of bfloat16.
    if not np.issubdtype(rows.dtype, np.floating):
        rows = rows.astype(np.float32)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.any():
        raise SplitError(
            f'The initializer "{name}" needs finite `reference` rows. Received: NaN or infinity in each of the '
            f"{len(rows)} rows read."
        )
    return rows if finite.all() else rows[finite]


def _is_float(dtype: np.dtype[Any]) -> bool:
    # NumPy itself does not know bfloat16.
    return np.issubdtype(dtype, np.floating) or dtype.name == "bfloat16"


def _named_in_keras(name: str, generator: np.random.Generator) -> Any:
    import keras

    try:
        initializer = keras.initializers.get(name)
    # "constant" raises KeyError, because its value is missing.
    except (ValueError, KeyError):
        names = ", ".join(sorted({*BUILT_IN_NAMES, *TOKEN_NAMES, *_keras_names(keras.initializers)} - {name}))
        raise SplitError(
            f"`initializer` must be a known name, or an object. Received: {name!r}. Names: {names}."
        ) from None
    config = initializer.get_config()
    # Keras draws a random seed otherwise.
    if "seed" in config:
        config["seed"] = int(generator.integers(2**31))
    return type(initializer).from_config(config)


def _keras_names(module: Any) -> list[str]:
    """Return the names of Keras's initializers, such as `glorot_uniform`."""
    return [name for name in dir(module) if name.islower() and inspect.isclass(getattr(module, name))]


def _called_rows(initializer: Any, shape: tuple[int, int]) -> Rows:
    result = initializer(shape, dtype="float32")
    # Only if Keras is loaded can the result be a tensor of its backend.
    keras = sys.modules.get("keras")
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
        # A copy, because the initializer's array can be read-only, or change later.
        return np.array(array, np.float32, order="C")
