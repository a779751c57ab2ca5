"""RowGradientOptimizer, which keeps and clips rows of gradients for another Keras optimizer."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from splitembed.errors import SplitError
from splitembed.gradients.rows import check_clipnorm, clip_gradient_rows, keep_gradient_rows
from splitembed.vocabulary import resolve_ids


@keras.saving.register_keras_serializable(package="splitembed")
class RowGradientOptimizer(keras.optimizers.Optimizer):
    """An optimizer that applies `keep_gradient_rows` and `clip_gradient_rows` to some variables before another one.

    ```python
    optimizer = splitembed.gradients.RowGradientOptimizer(
        keras.optimizers.Adam(1e-3),
        keep_rows={"tokens/embeddings": trainable_ids},
        clip_rows={"tokens/embeddings": 1.0},
    )
    model.compile(optimizer, loss="mse")               # works under fit, and is saved with the model
    ```

    Rows are dropped first, and the kept ones are clipped. The wrapped optimizer does the rest, its own clipping
    included: its weight decay reaches every row, and its momentum every row that ever had a gradient. Its slots are as
    large as the whole table. Rows that must not move are cheaper and safer in a `SplitEmbedding`.

    In a custom training step, call the two functions between `tape.gradient` and `optimizer.apply` instead.

    Args:
        inner_optimizer: a Keras optimizer, by name, config or object, with its `learning_rate` and `iterations`.
        keep_rows: path of a trainable variable, such as "tokens/embeddings", to the rows that train: ids or a boolean
            mask `(num_rows,)`. A saved model holds them as a list of ids in its config.
        clip_rows: path of a trainable variable to the largest norm of the gradient of a row.
        name: as in any Keras optimizer.

    Raises:
        SplitError: when the optimizer is built, a path that no variable has, or more than one.
    """

    built: bool

    def __init__(
        self,
        inner_optimizer: Any,
        keep_rows: Mapping[str, Any] | None = None,
        clip_rows: Mapping[str, float] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate=0.0, name=name)
        self.inner_optimizer = keras.optimizers.get(inner_optimizer)
        self._kept = tuple((path, _listed(rows)) for path, rows in (keep_rows or {}).items())
        self._clipped = tuple((clip_rows or {}).items())
        for _, clipnorm in self._clipped:
            check_clipnorm(clipnorm)

    def build(self, variables: Sequence[Any]) -> None:
        """Build the wrapped optimizer, and check the paths and rows."""
        if self.built:
            return
        paths = [_path(variable) for variable in variables]
        for path, _ in (*self._kept, *self._clipped):
            if paths.count(path) != 1:
                raise SplitError(
                    f"Each path in `keep_rows` and `clip_rows` must be that of one trainable variable. Path {path!r} "
                    f"has {paths.count(path)} of: {', '.join(map(repr, paths))}."
                )
        for variable, path in zip(variables, paths, strict=True):
            for rows in (rows for kept, rows in self._kept if kept == path):
                # refuse wrong ids before training
                resolve_ids(rows, variable.shape[0])
        self.inner_optimizer.build(variables)
        self._paths = tuple(paths)
        self.built = True

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> Any:
        """Change the gradients, and let the wrapped optimizer apply them."""
        grads = list(grads)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
            self.build(trainable_variables)
        return self.inner_optimizer.apply(self._changed(grads, trainable_variables), trainable_variables)

    def stateless_apply(self, optimizer_variables: Any, grads: Any, trainable_variables: Any) -> Any:
        """Apply gradients on JAX, where variables are passed as arrays."""
        return self.inner_optimizer.stateless_apply(
            optimizer_variables, self._changed(list(grads), None), trainable_variables
        )

    def _changed(self, grads: list[Any], variables: Sequence[Any] | None) -> list[Any]:
        paths = self._paths if variables is None else tuple(map(_path, variables))
        kept, clipped = dict(self._kept), dict(self._clipped)
        # the wrapped optimizer receives gradients of the scaled loss, and unscales them
        scale = self.loss_scale_factor or 1.0
        for position, (path, grad) in enumerate(zip(paths, grads, strict=True)):
            if grad is not None and path in kept:
                grad = keep_gradient_rows(grad, kept[path])
            if grad is not None and path in clipped:
                grad = clip_gradient_rows(grad, clipped[path] * scale)
            grads[position] = grad
        return grads

    @property
    def variables(self) -> list[Any]:
        """The variables of the wrapped optimizer."""
        return self.inner_optimizer.variables

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the wrapped optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.inner_optimizer.learning_rate = learning_rate

    @property
    def iterations(self) -> Any:
        """The number of steps of the wrapped optimizer."""
        return self.inner_optimizer.iterations

    @property
    def loss_scale_factor(self) -> Any:
        """The factor of the wrapped optimizer; Keras sets None where a LossScaleOptimizer scales instead."""
        return self.inner_optimizer.loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, factor: Any) -> None:
        # the constructor of Keras sets it first
        if hasattr(self, "inner_optimizer"):
            self.inner_optimizer.loss_scale_factor = factor

    def scale_loss(self, loss: Any) -> Any:
        """Scale the loss as the wrapped optimizer does: `LazyAdam` requests row slices there."""
        return self.inner_optimizer.scale_loss(loss)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Finalize variables as the wrapped optimizer does."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def save_own_variables(self, store: Any) -> None:
        """Write nothing: Keras saves the wrapped optimizer separately."""

    def load_own_variables(self, store: Any) -> None:
        """Read nothing: Keras loads the wrapped optimizer separately."""

    def get_config(self) -> dict[str, Any]:
        """Return the wrapped optimizer, the rows as lists of ids, and the norms."""
        return {
            "name": self.name,
            "inner_optimizer": keras.saving.serialize_keras_object(self.inner_optimizer),
            "keep_rows": {path: rows.tolist() for path, rows in self._kept},
            "clip_rows": dict(self._clipped),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "RowGradientOptimizer":
        """Make the optimizer from a config, the wrapped one first."""
        inner = keras.saving.deserialize_keras_object(config["inner_optimizer"], custom_objects=custom_objects)
        return cls(**{**config, "inner_optimizer": inner})


def _path(variable: Any) -> str:
    return str(getattr(variable, "path", variable.name))


def _listed(rows: Any) -> np.ndarray:
    """Return row ids or a mask as an array."""
    array = np.asarray(rows if not keras.ops.is_tensor(rows) else keras.ops.convert_to_numpy(rows))
    # NumPy makes [] float64
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    return array
