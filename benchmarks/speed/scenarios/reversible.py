"""Language models with tied weights: a training step, and a forward pass."""

from typing import Any

from benchmarks.speed.plan import Entry, Scenario, Target, times, value
from benchmarks.speed.problems import Sizes

_FROZEN = "keras ReversibleEmbedding, frozen"
_KERAS = "keras ReversibleEmbedding, trainable, Adam"
_OURS, _FEW = "splitembed, Adam", "splitembed, ten rows train, Adam"
_BASE, _BASE_FEW = "splitembed, base in id order, Adam", "splitembed, base in id order, ten rows train, Adam"
_ADAM = {"optimizer": "adam"}
_CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    _FROZEN: ("KerasReversible", {"trainable": False}),
    _KERAS: ("KerasReversible", {}),
    _OURS: ("Ours", {}),
    _FEW: ("Ours", {"few": 10}),
    _BASE: ("Ours", {"in_order": True}),
    _BASE_FEW: ("Ours", {"few": 10, "in_order": True}),
}


def language_model(task: str) -> Scenario:
    """Compare language models of 32,000 x 256 with 512 positions per batch. The task is "step" or "forward"."""
    sizes = Sizes(num_tokens=32_000, dim=256, num_trainable=1_600, batch_size=8, length=65)
    options = {label: {**_ADAM, **own} for label, (_, own) in _CONTESTANTS.items()}
    entries = tuple(
        Entry(label, f"reversible.{kind}", task, sizes, options[label]) for label, (kind, _) in _CONTESTANTS.items()
    )
    what = {"step": "Training step", "forward": "Forward pass"}[task]
    title = f"{what} of a tied language model, 32,000 x 256, 5 % trainable, 8 x 64 positions"
    return Scenario(f"tied-{task}", title, entries, _FROZEN, _TARGETS[task])


_TARGETS = {
    "step": (
        Target("tied, a training step: at most as slow as the trained Keras layer", times(_OURS, of=_KERAS), at_most=1),
        Target(
            "tied, after split_embedding: at most as slow as the trained layer",
            times(_BASE, of=_KERAS),
            at_most=1,
        ),
        Target("tied, a training step: no frozen row moves", value(_OURS, "frozen_rows_moved"), at_most=0, unit=""),
    ),
    "forward": (),
}
SCENARIOS = (language_model("step"), language_model("forward"))
