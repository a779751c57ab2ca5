"""Training steps, compared with the floor, masks, PyTorch and PEFT; and the steps of `model.fit`."""

from typing import Any

from benchmarks.speed.plan import Entry, Scenario, Target, times
from benchmarks.speed.problems import Sizes

FLOOR = "tf.gather from one constant"
OURS = "splitembed, LazyAdam"
SPARSE = "PyTorch sparse=True, SparseAdam"
PEFT = "PEFT TrainableTokens, Adam"

_TENSORFLOW: dict[str, tuple[str, dict[str, Any]]] = {
    FLOOR: ("floor.Floor", {}),
    OURS: ("ours.Ours", {}),
    "splitembed, memory-mapped, LazyAdam": ("ours.Ours", {"mapped": True}),
    "splitembed, trainable off": ("ours.Ours", {"trains": False}),
    "splitembed, Adam": ("ours.Ours", {"optimizer": "adam"}),
    "keras Embedding, frozen": ("keras_embedding.KerasEmbedding", {"trainable": False}),
    "one variable, slices filtered, row-sparse Adam": ("filtered.Filtered", {}),
    "mask after the gather, SGD": ("masks.MaskAfterGather", {"optimizer": "sgd"}),
    "two gathers and where, row-sparse Adam": ("where.Where", {}),
    "concat, then gather, row-sparse Adam": ("concat.Concat", {}),
    "mask after the gather, Adam": ("masks.MaskAfterGather", {"optimizer": "adam"}),
    "keras Embedding, trainable, Adam": ("keras_embedding.KerasEmbedding", {"trainable": True, "optimizer": "adam"}),
    "mask over the whole table, Adam": ("masks.MaskWholeTable", {"optimizer": "adam"}),
}
_PYTORCH: dict[str, tuple[str, dict[str, Any]]] = {
    "PyTorch, frozen": ("torch_embedding.TorchEmbedding", {"rows": "frozen", "optimizer": "adam"}),
    SPARSE: ("torch_embedding.TorchEmbedding", {"rows": "sparse", "optimizer": "sparse_adam"}),
    "PyTorch, trainable, Adam": ("torch_embedding.TorchEmbedding", {"rows": "trainable", "optimizer": "adam"}),
    "PyTorch, gradient-mask hook, Adam": ("torch_embedding.TorchEmbedding", {"rows": "hook", "optimizer": "adam"}),
}


def step(dim: int, with_peers: bool) -> Scenario:
    """Compare one training step, 400,000 tokens, on TensorFlow and optionally with PyTorch and PEFT."""
    sizes = Sizes(num_tokens=400_000, dim=dim, num_trainable=20_000)
    entries = [Entry(label, kind, "step", sizes, options) for label, (kind, options) in _TENSORFLOW.items()]
    size = f"400,000 x {dim}"
    targets = [
        Target(f"training step, LazyAdam, {size}: at most 1.35 x the floor", times(OURS, of=FLOOR), at_most=1.35)
    ]
    if with_peers:
        entries += [
            Entry(label, kind, "step", sizes, options, ("torch",)) for label, (kind, options) in _PYTORCH.items()
        ]
        entries.append(Entry(PEFT, "peft_tokens.PeftTokens", "step", sizes, {"optimizer": "adam"}, ("torch", "peft")))
        targets += [
            Target("at least 40 x faster than PEFT trainable tokens", times(PEFT, of=OURS), at_least=40),
            Target("at least 2 x faster than SparseAdam on the whole table", times(SPARSE, of=OURS), at_least=2),
        ]
    title = f"Training step, {size}, 5 % trainable, 64 x 200 ids"
    return Scenario(f"step-{dim}", title, tuple(entries), FLOOR, tuple(targets))


def fit() -> Scenario:
    """Compare the steps of `model.fit` for two table sizes."""
    sizes = {"400,000": Sizes(400_000, 100, 20_000), "2,000,000": Sizes(2_000_000, 100, 100_000)}
    keras, entries = "keras_embedding.KerasEmbedding", []
    for size, each in sizes.items():
        entries.append(Entry(f"keras Embedding, frozen, {size}", keras, "fit", each, {"trainable": False}))
        entries.append(Entry(f"splitembed, LazyAdam, {size}", "ours.Ours", "fit", each))
    xla = {"trainable": False, "jit_compile": True}
    entries.append(Entry("keras Embedding, frozen, 400,000, XLA", keras, "fit", sizes["400,000"], xla))
    adam = {"trainable": True, "optimizer": "adam"}
    entries.append(Entry("keras Embedding, trainable, Adam, 2,000,000", keras, "fit", sizes["2,000,000"], adam))
    small, large = (f"splitembed, LazyAdam, {size}" for size in sizes)
    frozen_small, frozen_large = (f"keras Embedding, frozen, {size}" for size in sizes)
    text = "model.fit step, LazyAdam"
    targets = (
        Target(
            f"{text}, 400,000 x 100: at most 1.25 x a frozen Embedding", times(small, of=frozen_small), at_most=1.25
        ),
        Target(f"{text}, 2,000,000 x 100: at most 1.25 x the same", times(large, of=frozen_large), at_most=1.25),
        Target("2,000,000 rows at most 1.15 x 400,000 rows", times(large, of=small), at_most=1.15),
        Target("400,000 rows at most 1.15 x 2,000,000 rows", times(small, of=large), at_most=1.15),
        Target(
            "at least 300 x faster than a trainable Embedding with Adam, 2,000,000 x 100",
            times("keras Embedding, trainable, Adam, 2,000,000", of=large),
            at_least=300,
        ),
    )
    return Scenario(
        "fit", "A step of model.fit, dim 100, 5 % trainable, 64 x 200 ids", tuple(entries), frozen_small, targets
    )


SCENARIOS = (step(100, with_peers=True), step(300, with_peers=False), fit())
