"""Forward passes: rows for a batch of ids."""

from benchmarks.speed.plan import Entry, Scenario, Target, times
from benchmarks.speed.problems import Sizes

_GATHER = "tf.gather from one constant"


def forward(dim: int, at_most: float) -> Scenario:
    """Compare every lookup on TensorFlow with a plain gather, 400,000 tokens."""
    sizes = Sizes(num_tokens=400_000, dim=dim, num_trainable=20_000)
    kinds = {
        _GATHER: ("floor.Floor", {}),
        "splitembed": ("ours.Ours", {}),
        "splitembed, memory-mapped": ("ours.Ours", {"mapped": True}),
        "keras Embedding": ("keras_embedding.KerasEmbedding", {"trainable": True}),
        "one variable, gradient slices filtered": ("filtered.Filtered", {}),
        "mask after the gather": ("masks.MaskAfterGather", {}),
        "two gathers and where": ("where.Where", {}),
        "concat, then gather": ("concat.Concat", {}),
        "mask over the whole table": ("masks.MaskWholeTable", {}),
    }
    return Scenario(
        f"forward-{dim}",
        f"Forward pass, 400,000 x {dim}, 64 x 200 ids",
        tuple(Entry(label, kind, "forward", sizes, options) for label, (kind, options) in kinds.items()),
        floor=_GATHER,
        targets=(
            Target(
                f"forward, 400,000 x {dim}: at most {at_most} x a plain tf.gather from one table",
                times("splitembed", of=_GATHER),
                at_most=at_most,
            ),
        ),
    )


def stages(dim: int) -> Scenario:
    """Measure where a forward pass spends its time: the lookup stopped after each stage, and the alternative."""
    sizes = Sizes(num_tokens=400_000, dim=dim, num_trainable=20_000)
    upto = {
        "remap, then gather": "route",
        "the same, ids checked": "check",
        "the same, trainable rows gathered": "gather",
    }
    entries = (
        Entry(_GATHER, "floor.Floor", "forward", sizes),
        *(Entry(label, "stages.Stages", "forward", sizes, {"upto": stage}) for label, stage in upto.items()),
        Entry("the same, written in place: splitembed", "ours.Ours", "forward", sizes),
        Entry("distinct rows, concat, then gather", "concat.ConcatDistinct", "forward", sizes),
    )
    note = (
        "With TensorFlow's kernels, no lookup in two tables can be faster than its first stage: the remap costs a "
        "cache miss for each distinct id. The last stage writes trainable rows into a batch that has left the caches."
    )
    return Scenario(f"stages-{dim}", f"Stages of a forward pass, 400,000 x {dim}", entries, _GATHER, note=note)


SCENARIOS = (forward(300, at_most=1.15), forward(100, at_most=1.4), stages(300), stages(100))
