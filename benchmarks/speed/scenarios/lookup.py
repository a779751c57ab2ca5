"""Forward passes: ids in, rows out."""

from benchmarks.speed.plan import Entry, Scenario, Target, times
from benchmarks.speed.problems import Sizes


def forward(dim: int, at_most: float) -> Scenario:
    """Every way to embed on TensorFlow against a plain gather, 400,000 tokens."""
    sizes = Sizes(num_tokens=400_000, dim=dim, num_trainable=20_000)
    kinds = {
        "tf.gather from one constant": ("floor.Floor", {}),
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
        floor="tf.gather from one constant",
        targets=(
            Target(
                f"forward, 400,000 x {dim}: at most {at_most} x a plain tf.gather from one table",
                times("splitembed", of="tf.gather from one constant"),
                at_most=at_most,
            ),
        ),
    )


def stages(dim: int) -> Scenario:
    """Where the time of a forward pass goes: the lookup cut short after each of its stages."""
    sizes = Sizes(num_tokens=400_000, dim=dim, num_trainable=20_000)
    gather = "gather by id, from one table"
    upto = {
        "remap, then gather": "route",
        "the same, ids checked": "check",
        "the same, trainable rows gathered": "gather",
    }
    entries = (
        Entry(gather, "floor.Floor", "forward", sizes),
        *(Entry(label, "stages.Stages", "forward", sizes, {"upto": stage}) for label, stage in upto.items()),
        Entry("the same, put in place: splitembed", "ours.Ours", "forward", sizes),
    )
    note = (
        "No lookup in two tables that is made of TensorFlow's kernels is below its first stage: a remap costs a cache "
        "miss for each distinct id. The last stage writes rows back into a batch that has left the caches."
    )
    return Scenario(f"stages-{dim}", f"Stages of a forward pass, 400,000 x {dim}", entries, gather, note=note)


SCENARIOS = (forward(300, at_most=1.15), forward(100, at_most=1.4), stages(300), stages(100))
