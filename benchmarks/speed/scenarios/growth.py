"""Growth with the vocabulary and with the trainable rows, and memory."""

import math
from typing import Any

from benchmarks.speed.plan import Entry, Scenario, Target, times, value
from benchmarks.speed.problems import Sizes

_NUMBERS_OF_ROWS = (20_000, 100_000, 1_000_000)
# The ratio to LazyAdam's step from which on Adam's is considered slow.
_SLOW = 1.5


def vocabulary() -> Scenario:
    """Train with ten thousand to ten million tokens, memory-mapped, and a thousand distinct ids in each batch."""
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
    title = "Training step, LazyAdam, dim 64, memory-mapped, 1,000 distinct ids per batch"
    note = "Twenty batches are repeated. After the first round their pages are in memory, as usual in training."
    return Scenario("vocabulary", title, entries, smallest, targets, note=note)


def trainable_rows() -> Scenario:
    """Compare Adam and LazyAdam at three numbers of trainable rows."""
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
    """Return from how many trainable rows on LazyAdam is faster, as measured."""
    labels = {rows: [_trainable_rows_label(name, rows) for name in ("Adam", "LazyAdam")] for rows in _NUMBERS_OF_ROWS}
    ratios = {rows: outcome.ratio(*pair).median for rows, pair in labels.items()}
    if outcome.quick or any(map(math.isnan, ratios.values())):
        return ""
    measured = ", ".join(f"{ratio:.2g} x at {rows:,}" for rows, ratio in ratios.items())
    slow = [f"{rows:,}" for rows, ratio in ratios.items() if ratio > _SLOW]
    advice = f"use LazyAdam from {slow[0]} trainable rows on" if slow else "both are equally good"
    return (
        "Adam updates every trainable row and its two slots at each step, LazyAdam only the rows of the batch. The "
        f"time of Adam's step, relative to LazyAdam's: {measured}. For speed, {advice}. The two train differently: "
        "rows outside of the batch continue to move by their momentum with Adam, and do not move with LazyAdam."
    )


def memory() -> Scenario:
    """Measure the peak anonymous memory of `model.fit` with two million tokens."""
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
        "peak anonymous memory of training: at most 10 % of the table's 800 MB",
        value(ours, "memory_bytes", 1e-6),
        at_most=80,
        unit="MB",
    )
    title = "Peak anonymous memory of model.fit, 2,000,000 x 100, 20,000 trainable rows"
    return Scenario("memory", title, entries, "keras Embedding, frozen", (target,), shows="memory_bytes")


SCENARIOS = (vocabulary(), trainable_rows(), memory())
