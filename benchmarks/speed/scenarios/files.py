"""Reading vector files, converting them to frozen.h5, and building a split."""

import numpy as np

from benchmarks.speed.contestants.building import WordSizes
from benchmarks.speed.contestants.formats import LAYOUTS, FormatSizes
from benchmarks.speed.plan import Entry, Scenario, Target, times, value
from benchmarks.speed.texts import TextSizes

_SIZES = TextSizes(400_000, 100)
_BYTES, _BLOCKS = "read the file's bytes", "read them in 1 MB blocks, without keeping them"
_GENSIM, _POLARS, _ARROW = "gensim load_word2vec_format", "polars.read_csv", "pyarrow.csv.read_csv"


def reading() -> Scenario:
    """Read a vocabulary of 5 % of the words from GloVe text."""
    ours = "read_vectors with a 5 % vocabulary"
    entries = (
        Entry(_BYTES, "files.WholeFile", "vocabulary", _SIZES),
        Entry(_BLOCKS, "files.InBlocks", "vocabulary", _SIZES),
        Entry(ours, "files.Ours", "vocabulary", _SIZES),
        Entry(_GENSIM, "files.Gensim", "vocabulary", _SIZES, needs=("gensim",)),
    )
    targets = (
        Target("5 % of 400,000 x 100 GloVe text: at most 3.5 x reading the bytes", times(ours, of=_BYTES), at_most=3.5),
        Target("at least 40 x faster than gensim", times(_GENSIM, of=ours), at_least=40),
    )
    return Scenario("reading", "Reading 20,000 words from 400,000 x 100 GloVe text", entries, _BYTES, targets)


def converting() -> Scenario:
    """Convert a text file to frozen.h5."""
    ours, quarter = "save_frozen", "save_frozen, a quarter of the words"
    entries = (
        Entry(_BYTES, "files.WholeFile", "whole", _SIZES),
        Entry(ours, "files.Ours", "whole", _SIZES),
        Entry("read_vectors, nothing written", "files.Ours", "read", _SIZES),
        Entry(_POLARS, "files.Polars", "whole", _SIZES, needs=("polars",)),
        Entry(_ARROW, "files.Arrow", "whole", _SIZES, needs=("pyarrow",)),
        Entry(_GENSIM, "files.Gensim", "whole", _SIZES, needs=("gensim",)),
        Entry(quarter, "files.Ours", "whole", TextSizes(100_000, 100)),
    )
    targets = (
        Target(
            "converting 400,000 x 100 text: at least 15 x faster than gensim's load",
            times(_GENSIM, of=ours),
            at_least=15,
        ),
        Target(
            "at most 1.5 x polars or pyarrow parsing the same file",
            lambda outcome: float(np.nanmin([outcome.ratio(ours, peer).median for peer in (_POLARS, _ARROW)])),
            at_most=1.5,
        ),
        Target(
            "memory only for the words and a few chunks (the text has 341 MB, the rows 160 MB)",
            value(ours, "memory_bytes", 1e-6),
            at_most=100,
            unit="MB",
        ),
    )
    note = "save_frozen also writes the file and its fingerprint. The parsers only keep their columns in memory."
    return Scenario(
        "converting", "Converting 400,000 x 100 GloVe text to frozen.h5", entries, _BYTES, targets, note=note
    )


def binary() -> Scenario:
    """Read a word2vec binary file."""
    ours = "read_vectors"
    entries = (
        Entry(_BYTES, "files.WholeFile", "binary", _SIZES),
        Entry(_BLOCKS, "files.InBlocks", "binary", _SIZES),
        Entry("only its words, into a set", "files.WordsAlone", "binary", _SIZES),
        Entry(ours, "files.Ours", "binary", _SIZES),
        Entry(_GENSIM, "files.Gensim", "binary", _SIZES, needs=("gensim",)),
    )
    target = Target("word2vec binary: at most 2 x reading the bytes", times(ours, of=_BYTES), at_most=2)
    return Scenario("binary", "Reading 400,000 x 100 word2vec binary", entries, _BYTES, (target,))


def formats() -> Scenario:
    """Read a vocabulary of 5 % of the words from the same table in every format and compression."""
    sizes = TextSizes(200_000, 100)
    needs = {"zstd": ("zstandard",), "safetensors": ("safetensors",)}
    ours = [
        Entry(
            f"read_vectors, {layout}",
            "formats.Ours",
            "vocabulary",
            FormatSizes(sizes, layout),
            needs=needs.get(layout, ()),
        )
        for layout in LAYOUTS
    ]
    gensim = "gensim load_facebook_vectors"
    peer = Entry(gensim, "formats.Gensim", "vocabulary", FormatSizes(sizes, "fasttext"), needs=("gensim",))
    fasttext = "read_vectors, fasttext"
    targets = (
        Target("a fastText .bin model: at least 10 x faster than gensim", times(gensim, of=fasttext), at_least=10),
        Target(
            "a fastText .bin model: memory only for the vocabulary",
            value(fasttext, "memory_bytes", 1e-6),
            at_most=60,
            unit="MB",
        ),
    )
    return Scenario("formats", "Reading 10,000 words from 200,000 x 100", (*ours, peer), "read_vectors, text", targets)


def building() -> Scenario:
    """Build a split of two million tokens from two million words."""
    sizes, ours, loop = WordSizes(2_000_000, 100), "build_split", "a dict, and one assignment per token"
    entries = (
        Entry(loop, "building.LoopOverVocabulary", "build", sizes),
        Entry(ours, "building.BuildSplit", "build", sizes),
    )
    target = Target("building the split: under 10 s", value(ours, "seconds"), at_most=10, unit="s")
    return Scenario("building", "Building a split: 2,000,000 tokens and 2,000,000 words", entries, loop, (target,))


SCENARIOS = (reading(), converting(), binary(), formats(), building())
