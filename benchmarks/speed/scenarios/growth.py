"""What grows and what does not: the vocabulary, the trainable rows, and memory."""

import math
from typing import Any

from benchmarks.speed.plan import Entry, Scenario, Target, times, value
from benchmarks.speed.problems import Sizes

_NUMBERS_OF_ROWS = (20_000, 100_000, 1_000_000)
_DEAR = 1.5  # times LazyAdam's step


def vocabulary() -> Scenario:
    """Ten thousand to ten million tokens, memory-mapped, a thousand distinct ids in each batch."""
    labels = {f"{size:,} tokens": size for size in (10_000, 100_000, 1_000_000, 10_000_000)}
    entries = tuple(
        Entry(label, "ours.Ours", "step", Sizes(size, 64, size // 20, num_distinct=1000), {"mapped": True})
        for label, size in labels.items()
    )
    smallest, *larger = labels
    targets = tuple(
        Target(f"step with {label} at most 1.2 x that with {smallest}", times(label, of=smallest), at_most=1.2)
        for label in larger
    )
    title = "Training step, LazyAdam, dim 64, memory-mapped, 1,000 distinct ids a batch"
    note = "Twenty batches in turn: after the first round their pages are in memory, as in any training but its start."
    return Scenario("vocabulary", title, entries, smallest, targets, note=note)


def trainable_rows() -> Scenario:
    """Adam and LazyAdam at three numbers of trainable rows."""
    entries = [
        Entry(
            _trainable_rows_label(name, rows),
            "ours.Ours",
            "step",
            Sizes(2_000_000, 100, rows),
            {"optimizer": optimizer, "mapped": True},
        )
        for name, optimizer in (("LazyAdam", "lazy_adam"), ("Adam", "adam"))
        for rows in _NUMBERS_OF_ROWS
    ]
    few, many = entries[0].label, entries[2].label
    target = Target("LazyAdam, 1,000,000 trainable rows: at most 1.3 x 20,000", times(many, of=few), at_most=1.3)
    title = "Training step by number of trainable rows, 2,000,000 x 100"
    return Scenario("trainable-rows", title, tuple(entries), few, (target,), note=_advice)


def _trainable_rows_label(optimizer: str, rows: int) -> str:
    return f"{optimizer}, {rows:,} trainable rows"


def _advice(outcome: Any) -> str:
    """What the measured steps say: from how many trainable rows on it matters which optimizer is used."""
    labels = {rows: [_trainable_rows_label(name, rows) for name in ("Adam", "LazyAdam")] for rows in _NUMBERS_OF_ROWS}
    ratios = {rows: outcome.ratio(*pair).median for rows, pair in labels.items()}
    if outcome.quick or any(map(math.isnan, ratios.values())):
        return ""
    measured = ", ".join(f"{ratio:.2g} x at {rows:,}" for rows, ratio in ratios.items())
    dear = [f"{rows:,}" for rows, ratio in ratios.items() if ratio > _DEAR]
    where = f"from {dear[0]} trainable rows on take LazyAdam" if dear else "either will do"
    return (
        f"Adam updates every trainable row and both its slots at each step, LazyAdam those that the batch has: Adam's "
        f"step takes {measured} of LazyAdam's. Where time decides, {where}. The two train differently: under Adam rows "
        "that a batch does not have go on moving by their momentum, under LazyAdam they stand still."
    )


def memory() -> Scenario:
    """Peak anonymous memory of `model.fit` on two million tokens."""
    sizes = Sizes(2_000_000, 100, 20_000)
    ours = "splitembed, memory-mapped, LazyAdam"
    trainable = {"trainable": True, "optimizer": "adam"}
    entries = (
        Entry(ours, "ours.Ours", "fit", sizes, {"mapped": True}),
        Entry("splitembed, in memory, LazyAdam", "ours.Ours", "fit", sizes),
        Entry("keras Embedding, frozen", "keras_embedding.KerasEmbedding", "fit", sizes, {"trainable": False}),
        Entry("keras Embedding, trainable, Adam", "keras_embedding.KerasEmbedding", "fit", sizes, trainable),
    )
    target = Target(
        "peak anonymous memory of training above import: at most 10 % of the table's 800 MB",
        value(ours, "memory_bytes", 1e-6),
        at_most=80,
        unit="MB",
    )
    title = "Peak anonymous memory of model.fit, 2,000,000 x 100, 20,000 trainable rows"
    return Scenario("memory", title, entries, "keras Embedding, frozen", (target,), shows="memory_bytes")


SCENARIOS = (vocabulary(), trainable_rows(), memory())
