"""GradientGate, a layer that scales the gradient of its input by a mask aligned from the batch axis."""

from typing import Any

import keras
from keras import ops

from splitembed.errors import SplitError
from splitembed.gradients.mask import Shape, check_floats, gate, may_fit


@keras.saving.register_keras_serializable(package="splitembed")
class GradientGate(keras.layers.Layer):
    """Passes its input on unchanged, and its gradient only for samples, positions or elements whose mask is 1.

    ```python
    rows = splitembed.SplitEmbedding(split)(ids)       # (batch, length, dim)
    gated = splitembed.gradients.GradientGate()([rows, mask])    # the same rows; mask (batch, 1): whole samples
    model = keras.Model([ids, mask], [head_a(rows), head_b(gated)])
    ```

    Here both heads learn from every sample; the rows learn from head A in every sample, and from head B where the mask
    is 1.

    The output has the bits and the dtype of the target under every dtype policy. The mask scales the gradient as in
    `keep_gradient_where`: 0 stops it, also an infinity or NaN; the mask has no gradient. Later layers receive the Keras
    mask of the target, not that of the gate's mask.

    Args:
        **kwargs: `name`, as in any Keras layer.

    Input shape:
        A pair `[target, mask]`. The target is floats `(batch, ...)`. The mask is bool, integers or floats, and its axes
        are the target's first ones, each of the same length or 1; it is repeated along the missing ones. For a target
        `(batch, length, dim)`: `(batch,)` or `(batch, 1)` gates samples, `(batch, length)` positions,
        `(batch, length, dim)` elements.

    Output shape:
        The target's.

    Raises:
        SplitError: not a pair, or a mask whose axes are not the target's first ones.
    """

    def __init__(self, **kwargs: Any) -> None:
        # the target keeps its dtype
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Return the target."""
        target, mask = _pair(inputs)
        target, mask = ops.convert_to_tensor(target), ops.convert_to_tensor(mask)
        check_leading(tuple(mask.shape), tuple(target.shape))
        check_floats(target)
        for _ in range(len(target.shape) - len(mask.shape)):
            mask = ops.expand_dims(mask, -1)
        return gate(target, mask)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        """Return the Keras mask of the target."""
        return None if previous_mask is None else previous_mask[0]

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Return the target's shape, after a check of the mask's."""
        target, mask = _pair(input_shape)
        check_leading(tuple(mask), tuple(target))
        return tuple(target)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Return the symbolic target."""
        target, mask = _pair(inputs)
        check_floats(target)
        return keras.KerasTensor(self.compute_output_shape((target.shape, mask.shape)), dtype=target.dtype)


def check_leading(mask: Shape, target: Shape) -> None:
    """Raise unless the mask's axes are the target's first ones or 1, as far as both are known.

    >>> check_leading((None, 1), (None, 7, 3))
    >>> check_leading((2, 3), (2, 7, 3))
    Traceback (most recent call last):
    splitembed.errors.SplitError: A mask of shape (2, 3) does not fit a target of shape (2, 7, 3): ...
    """
    if not mask or len(mask) > len(target) or not may_fit(mask, target):
        raise SplitError(
            f"A mask of shape {tuple(mask)} does not fit a target of shape {tuple(target)}: counted from the first "
            f"axis, the batch, each of its axes must be 1 or that of the target. For masks aligned from the last "
            f"axis use keep_gradient_where."
        )


def _pair(inputs: Any) -> tuple[Any, Any]:
    if not isinstance(inputs, list | tuple) or len(inputs) != 2:
        raise SplitError(f"`inputs` must be a pair [target, mask]. Received: {inputs!r}.")
    return inputs[0], inputs[1]
