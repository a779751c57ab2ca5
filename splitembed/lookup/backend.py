"""The interface between a SplitEmbedding and its backend, which TensorFlow, and JAX or PyTorch, implement.

`choose_backend.py` chooses the implementation for the backend that Keras runs on.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from splitembed.split.id_order import Order
from splitembed.split.table import SplitTable

Combiner = Literal["mean", "sum", "sqrtn"]
Form = Literal["auto", "dynamic", "static"]
Gradient = Literal["auto", "dense", "sparse"]
# draws a bool tensor of the given shape, a new one at each call
Drop = Callable[[Any], Any]


class Tables(Protocol):
    """The tables of a lookup that training never changes: the remap, and frozen rows that are read as float32."""

    num_tokens: int
    num_frozen: int
    dim: int
    # whether the frozen rows are held as columns
    transposed: bool

    @property
    def order(self) -> Order | None:
        """What trains, where the frozen rows are in id order."""

    @property
    def is_finite(self) -> bool:
        """Whether all frozen rows without a token are finite."""

    def read_remap(self) -> Any:
        """Return the remap, int32 `(num_tokens,)`."""

    def read_stored(self) -> Any:
        """Return the frozen rows as stored, without a copy: `(num_frozen, dim)`, transposed `(dim, num_frozen)`."""

    def read(self, rows: Any) -> Any:
        """Gather frozen rows, `rows.shape + (dim,)`, widened to float32."""

    def gather(self, rows: Any) -> Any:
        """Gather frozen rows as `read` does, but of a transposed table as `(dim,) + rows.shape`."""


class Embedding(Protocol):
    """What a backend reads of a built `SplitEmbedding`, whose class documents it."""

    input_dim: int
    output_dim: int
    num_frozen: int
    frozen_dtype: str
    is_transposed: bool
    trainable_rows: Any
    trainable: bool
    compute_dtype: str
    combiner: Combiner | None
    mask_zero: bool
    lookup: Form
    gradient: Gradient
    copies_rows: bool

    def add_weight(self, **options: Any) -> Any:
        """Add a weight, as every Keras layer does."""


class Backend(Protocol):
    """The operations of a SplitEmbedding that differ between Keras's backends."""

    def seed_generator(self, seed: int | None) -> Any:
        """Return a `keras.random.SeedGenerator` that draws differently in each replica."""

    def hold_tables(self, layer: Embedding, split: SplitTable | None, tables: Any) -> Any:
        """Return the tables of a layer that is being built, or whose split was loaded.

        Args:
            layer: the layer; if it `is_transposed`, its frozen rows are held as columns.
            split: None while the layer has no split.
            tables: the tables of the last call, or None.

        Returns:
            `Tables`, or None where there is nothing to hold yet.
        """

    def initial_rows(self, rows: NDArray[Any]) -> Any:
        """Return the value that the weight of the trainable rows starts from."""

    def stored_rows(self, variable: Any) -> NDArray[Any]:
        """Return the values of a float variable; those of a bfloat16 variable as uint16."""

    def embed(self, layer: Embedding, ids: Any, weights: Any, tables: Any, drop: Drop | None = None) -> Any:
        """Look ids up, and combine their rows if the layer has a combiner.

        Args:
            layer: a built layer.
            ids: token ids of any integer dtype, or whole floats.
            weights: None, or for a combiner numbers of the shape of the ids.
            tables: as `hold_tables` returned them.
            drop: draws which occurrences of trainable rows are replaced by zeros; None where none is.

        Returns:
            Rows in the compute dtype of the layer.
        """

    def without_tables(self, output_shape: tuple[int | None, ...], dtype: str, message: str) -> Any:
        """Return an output of the given shape and dtype for a layer without tables, while a model is only built.

        Raises:
            MissingTableError: with the message, where the call would run, or be compiled without a check.
        """

    def with_gradient(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Return the output of a function that defines its gradient, as `keras.ops.custom_gradient` does.

        Args:
            function: returns a tensor, and a function of the tensor's gradient that returns those of the inputs.
            inputs: the tensors that it is called with.
        """

    def is_ragged(self, ids: Any) -> bool:
        """Return whether ids are ragged: a tensor, or the symbol of one."""
