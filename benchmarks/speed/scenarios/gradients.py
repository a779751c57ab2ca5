"""Gradient control, compared with a split on the same training step."""

from typing import Any

from benchmarks.speed.plan import Entry, Scenario, Target, times, value
from benchmarks.speed.problems import Sizes

_FLOOR = "tf.gather from one constant"
_OURS = "splitembed, LazyAdam"
_PARTIAL = "PartialEmbedding, LazyAdam"
_CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    _PARTIAL: ("PartialRows", {}),
    "PartialEmbedding, Adam": ("PartialRows", {"optimizer": "adam"}),
    "keep_gradient_rows, LazyAdam": ("KeptRows", {}),
    "keep_gradient_rows, Adam": ("KeptRows", {"optimizer": "adam"}),
    "keep_gradient_where after the gather, LazyAdam": ("GatedRows", {}),
    "keep_gradient_where after the gather, Adam": ("GatedRows", {"optimizer": "adam"}),
    "keep_gradient_where on the whole table, LazyAdam": ("GatedTable", {}),
    "keep_gradient_where on the whole table, Adam": ("GatedTable", {"optimizer": "adam"}),
}


def gradient_control() -> Scenario:
    """Compare all methods of the package that train only some rows: one training step, 400,000 x 100."""
    sizes = Sizes(num_tokens=400_000, dim=100, num_trainable=20_000)
    entries = (
        Entry(_FLOOR, "floor.Floor", "step", sizes),
        Entry(_OURS, "ours.Ours", "step", sizes),
        *(
            Entry(label, f"gradient_control.{kind}", "step", sizes, options)
            for label, (kind, options) in _CONTROLS.items()
        ),
    )
    targets = (
        Target("PartialEmbedding: at most 1.1 x SplitEmbedding", times(_PARTIAL, of=_OURS), at_most=1.1),
        Target("PartialEmbedding: no frozen row moves", value(_PARTIAL, "frozen_rows_moved"), at_most=0, unit=""),
        Target(
            "PartialEmbedding: no frozen row moves by momentum",
            value(_PARTIAL, "moved_by_momentum"),
            at_most=0,
            unit="",
        ),
    )
    title = "Gradient control: a training step, 400,000 x 100, 5 % trainable, 64 x 200 ids"
    return Scenario("gradient-control", title, entries, _FLOOR, targets, note=_moving_rows)


def _moving_rows(outcome: Any) -> str:
    """Return which methods let "frozen" rows move, as measured."""
    sentences = []
    for what, key in (("Weight decay", "frozen_rows_moved"), ("Momentum from before the freeze", "moved_by_momentum")):
        movers = [label for label in _CONTROLS if outcome.value(label, key) == 1]
        sentences.append(f"{what} moves frozen rows with: {'; '.join(movers) or 'none'}.")
    return " ".join([*sentences, "Methods with one table for all rows also have slots and a checkpoint of that size."])


SCENARIOS = (gradient_control(),)
