"""Row control under `fit`: a Keras optimizer in, one that keeps and clips rows of its gradients first out."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from splitembed.errors import SplitError
from splitembed.gradients.rows import check_clipnorm, clip_gradient_rows, keep_gradient_rows
from splitembed.vocabulary import resolve_ids


@keras.saving.register_keras_serializable(package="splitembed")
class RowGradientOptimizer(keras.optimizers.Optimizer):
    """Any Keras optimizer, with `keep_gradient_rows` and `clip_gradient_rows` before it, on tables named by their path.

    ```python
    optimizer = splitembed.gradients.RowGradientOptimizer(
        keras.optimizers.Adam(1e-3),
        keep_rows={"tokens/embeddings": trainable_ids},
        clip_rows={"tokens/embeddings": 1.0},
    )
    model.compile(optimizer, loss="mse")               # works under fit, and is saved with the model
    ```

    Rows are kept first, and what is kept is clipped. The wrapped optimizer does all else, its own clipping included:
    its weight decay still reaches every row, and its momentum every row that once had a gradient. Its slots are as
    large as the whole table. Rows that must not move are cheaper and safer in a `SplitEmbedding`.

    In a training step of your own call the two functions between `tape.gradient` and `optimizer.apply`.

    Args:
        inner_optimizer: a Keras optimizer, by name, config or object. `learning_rate` and `iterations` are its own.
        keep_rows: path of a trainable variable, such as "tokens/embeddings", to the rows that train: ids or a boolean
            mask `(num_rows,)`. A saved model holds them as a list of ids in its config.
        clip_rows: path to the greatest length that the gradient of a row may have.
        name: as in any Keras optimizer.

    Raises:
        SplitError: once the model is known, a path that none of its variables has, or more than one.
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
        """Builds the wrapped optimizer, and finds the variables that are named."""
        if self.built:
            return
        paths = [_path(variable) for variable in variables]
        for path, _ in (*self._kept, *self._clipped):
            if paths.count(path) != 1:
                raise SplitError(
                    f"`keep_rows` and `clip_rows` name trainable variables by their path, one by each. Path {path!r} "
                    f"has {paths.count(path)} of: {', '.join(map(repr, paths))}."
                )
        for variable, path in zip(variables, paths, strict=True):
            for rows in (rows for kept, rows in self._kept if kept == path):
                resolve_ids(rows, variable.shape[0])  # wrong ids are told before training
        self.inner_optimizer.build(variables)
        self._paths = tuple(paths)
        self.built = True

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> Any:
        """Changes the gradients, and has the wrapped optimizer apply them."""
        grads = list(grads)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
            self.build(trainable_variables)
        return self.inner_optimizer.apply(self._changed(grads, trainable_variables), trainable_variables)

    def stateless_apply(self, optimizer_variables: Any, grads: Any, trainable_variables: Any) -> Any:
        """The same on JAX, where variables come and go as arrays."""
        return self.inner_optimizer.stateless_apply(
            optimizer_variables, self._changed(list(grads), None), trainable_variables
        )

    def _changed(self, grads: list[Any], variables: Sequence[Any] | None) -> list[Any]:
        paths = self._paths if variables is None else tuple(map(_path, variables))
        kept, clipped = dict(self._kept), dict(self._clipped)
        # the wrapped optimizer gets gradients of the scaled loss, and scales them back itself
        scale = self.loss_scale_factor or 1.0
        for place, (path, grad) in enumerate(zip(paths, grads, strict=True)):
            if grad is not None and path in kept:
                grad = keep_gradient_rows(grad, kept[path])
            if grad is not None and path in clipped:
                grad = clip_gradient_rows(grad, clipped[path] * scale)
            grads[place] = grad
        return grads

    @property
    def variables(self) -> list[Any]:
        """The wrapped optimizer's: this one has none of its own that count."""
        return self.inner_optimizer.variables

    @property
    def learning_rate(self) -> Any:
        """The wrapped optimizer's."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.inner_optimizer.learning_rate = learning_rate

    @property
    def iterations(self) -> Any:
        """The wrapped optimizer's."""
        return self.inner_optimizer.iterations

    @property
    def loss_scale_factor(self) -> Any:
        """The wrapped optimizer's; Keras sets it to None where a LossScaleOptimizer scales instead."""
        return self.inner_optimizer.loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, factor: Any) -> None:
        if hasattr(self, "inner_optimizer"):  # Keras sets it first of all
            self.inner_optimizer.loss_scale_factor = factor

    def scale_loss(self, loss: Any) -> Any:
        """As the wrapped optimizer does: ours ask there for row slices."""
        return self.inner_optimizer.scale_loss(loss)

    def finalize_variable_values(self, var_list: Any) -> None:
        """As the wrapped optimizer does."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def save_own_variables(self, store: Any) -> None:
        """Writes nothing: Keras saves the wrapped optimizer by itself."""

    def load_own_variables(self, store: Any) -> None:
        """Reads nothing: Keras loads the wrapped optimizer by itself."""

    def get_config(self) -> dict[str, Any]:
        """The wrapped optimizer, the rows as lists of ids, and the lengths."""
        return {
            "name": self.name,
            "inner_optimizer": keras.saving.serialize_keras_object(self.inner_optimizer),
            "keep_rows": {path: rows.tolist() for path, rows in self._kept},
            "clip_rows": dict(self._clipped),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "RowGradientOptimizer":
        """Makes the optimizer again, the wrapped one first."""
        inner = keras.saving.deserialize_keras_object(config["inner_optimizer"], custom_objects=custom_objects)
        return cls(**{**config, "inner_optimizer": inner})


def _path(variable: Any) -> str:
    return str(getattr(variable, "path", variable.name))


def _listed(rows: Any) -> np.ndarray:
    """Row ids or a mask as an array."""
    array = np.asarray(rows if not keras.ops.is_tensor(rows) else keras.ops.convert_to_numpy(rows))
    if array.size == 0 and array.dtype.kind == "f":  # NumPy makes [] float64
        array = array.astype(np.int64)
    return array
