"""Forward passes: ids in, rows out."""

from splitembed.bench.suite.plan import Entry, Scenario, Target, times
from splitembed.bench.suite.problems import Sizes


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


SCENARIOS = (forward(300, at_most=1.15), forward(100, at_most=1.4))
