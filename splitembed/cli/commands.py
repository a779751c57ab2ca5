"""The commands of `splitembed`."""

import tempfile
from pathlib import Path
from typing import Any

import click

from splitembed.cli.options import (
    EXISTING,
    FOLDER,
    OUTPUT,
    SOURCE,
    STANDARD_STREAM,
    counts_option,
    fallback_option,
    json_option,
    reading_options,
    vector_source,
    vocabulary_of,
    vocabulary_options,
)
from splitembed.cli.outputs import name_output, print_result, written_to
from splitembed.cli.quiet import import_keras
from splitembed.cli.shell import EXIT_CODES, ShellGroup
from splitembed.cli.token_counts import count_tokens
from splitembed.errors import shortened

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=ShellGroup, context_settings=_SETTINGS, epilog=EXIT_CODES)
@click.version_option(package_name="splitembed")
def main() -> None:
    """Keep pretrained word vectors in a frozen table and the rows to train in a small second table.

    VOCABULARY and VECTORS can be - for standard input, OUTPUT and FILE can be - for standard output.
    """


@main.command()
@click.argument("vocabulary", type=SOURCE)
@click.argument("vectors", type=SOURCE)
@click.argument("directory", type=FOLDER)
@counts_option
@fallback_option
@click.option("--train-fallbacks", is_flag=True, help="Train tokens that a fallback matched, starting from its row.")
@click.option("--train", "trainable_tokens", multiple=True, metavar="TOKEN", help="Train this token. Can be repeated.")
@click.option("--train-most-frequent", default=0, metavar="K", help="Train the K most frequent known tokens.")
@click.option("--min-count", default=1, metavar="N", help="Let OOV tokens rarer than N share the row of [UNK].")
@click.option("--oov-initializer", default="uniform", show_default=True, help="The initializer of OOV rows.")
@click.option("--extend-vocabulary", is_flag=True, help="Append every other word of the vectors to the vocabulary.")
@click.option("--frozen-dtype", help="Store the frozen rows as float16, bfloat16 or int8.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the initializer.")
@vocabulary_options
@reading_options
@json_option
def build(
    vocabulary: Path | str,
    vectors: Path | str,
    directory: Path,
    counts: Path | str | None,
    json_path: Path | str | None,
    oov_initializer: str,
    **options: Any,
) -> None:
    """Match VOCABULARY (one token a line, or a tokenizer.json) against VECTORS and save the split in DIRECTORY.

    VECTORS is a file or directory in any supported format. The frozen rows are saved too, unless VECTORS is a frozen
    table, which is shared.
    """
    from splitembed.cli.describe import describe_split
    from splitembed.initializers.by_name import BUILT_IN_NAMES
    from splitembed.initializers.by_token import TOKEN_NAMES
    from splitembed.split.build import build_split

    if oov_initializer not in (*BUILT_IN_NAMES, *TOKEN_NAMES):
        import_keras()
    source, tokens = vector_source(vectors, options), vocabulary_of(vocabulary, options)
    split = build_split(tokens, source, counts=count_tokens(counts), oov_initializer=oov_initializer, **options)
    saved = _save(split, directory)
    text = f"{split.coverage}\n{split}\n{_saved_text(directory, **saved)}"
    coverage = None if split.coverage is None else split.coverage.to_dict()
    content = {"split": describe_split(split), "coverage": coverage, **saved}
    print_result(text, content, json_path)


def _save(split: Any, directory: Path) -> dict[str, Any]:
    """Save a split, and return the files that were written or removed, and the path of its frozen table."""
    from splitembed.tables import FROZEN_NAME, TRAINABLE_NAME, beside, is_frozen

    frozen, shared = directory / FROZEN_NAME, split.frozen_file()
    had_frozen = frozen.exists()
    split.save(directory)
    written = [path for path in beside(directory / TRAINABLE_NAME, split.fingerprint) if not shared]
    written = [path for path in written if is_frozen(path, split.fingerprint)][:1]
    return {
        "saved": [*(path.name for path in written), TRAINABLE_NAME],
        "removed": [FROZEN_NAME] if had_frozen and not frozen.exists() else [],
        "frozen_table": str(shared or written[0]),
    }


def _saved_text(directory: Path, saved: list[str], removed: list[str], frozen_table: str) -> str:
    text = f"Saved in {directory}: {', '.join(saved)}. The frozen rows are in {frozen_table}."
    return f"{text} Removed {', '.join(removed)} of the split saved there before." if removed else text


@main.command()
@click.argument("vectors", type=SOURCE)
@click.argument("output", type=OUTPUT)
@click.option("--dtype", default="float32", show_default=True, help="float32, float16, bfloat16 or int8.")
@reading_options
@json_option
def convert(vectors: Path | str, output: Path | str, dtype: str, json_path: Path | str | None, **options: Any) -> None:
    """Stream VECTORS (a file or a directory) into the frozen table OUTPUT, which many models can share."""
    from splitembed.cli.describe import describe_frozen
    from splitembed.vectors.save_frozen import save_frozen

    with written_to(output) as path:
        table = save_frozen(path, vector_source(vectors, options), dtype=dtype)
        content = {**describe_frozen(table), "path": name_output(output)}
    text = f"{name_output(output)}: {table.num_frozen:,} rows x {table.dim}, {table.fingerprint}"
    print_result(text, content, json_path, output)


@main.command()
@click.argument("path", type=EXISTING)
@json_option
def inspect(path: Path, json_path: Path | str | None) -> None:
    """Describe PATH: a frozen.h5, a trainable.h5, or a directory with both."""
    from splitembed.cli.describe import as_text, describe

    description = describe(path)
    print_result(as_text(description), description, json_path)


@main.command()
@click.argument("path", type=EXISTING)
@json_option
def verify(path: Path, json_path: Path | str | None) -> None:
    """Read every byte of PATH: a frozen.h5, a trainable.h5, or a directory with both. Exit code 1 if one is not whole.

    Head, checksums, fingerprints and ranges are checked, and that HDF5 finds the same as the head says.
    """
    from splitembed.cli.verify import as_text
    from splitembed.cli.verify import verify as checked

    found = checked(path)
    print_result(as_text(found), found, json_path)
    if not found["ok"]:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("vocabulary", type=SOURCE)
@click.argument("vectors", type=SOURCE)
@counts_option
@fallback_option
@click.option("--top", default=20, show_default=True, help="Number of OOV tokens to list, the most frequent first.")
@click.option("--suggest", is_flag=True, help="Suggest a similar word for each listed OOV token.")
@click.option(
    "--plot", "plot_path", type=FOLDER, help="A file for a plot of coverage by frequency rank, such as a .png."
)
@vocabulary_options
@reading_options
@json_option
def coverage(
    vocabulary: Path | str,
    vectors: Path | str,
    counts: Path | str | None,
    json_path: Path | str | None,
    plot_path: Path | None,
    **options: Any,
) -> None:
    """Report how much of VOCABULARY (one token a line, or a tokenizer.json) the VECTORS cover, and list OOV tokens."""
    from splitembed.coverage import report_coverage

    if plot_path and not counts:
        raise click.UsageError("--plot needs --counts: how often each token occurs.")
    source, tokens = vector_source(vectors, options), vocabulary_of(vocabulary, options)
    report = report_coverage(tokens, source, counts=count_tokens(counts), **options)
    if plot_path:
        report.plot(plot_path)
    print_result(str(report), report.to_dict(), json_path)


@main.command()
@click.argument("path", type=EXISTING)
@click.argument("output", type=OUTPUT)
@click.option("--format", default="glove", show_default=True, help="glove, word2vec, word2vec-binary or projector.")
@click.option("--skip-unwritable", is_flag=True, help="Leave out tokens that the format cannot hold, such as padding.")
def export(path: Path, output: Path | str, format: str, skip_unwritable: bool) -> None:  # noqa: A002
    """Write the tokens and rows of PATH, a directory of tables or a frozen.h5, to the vector file OUTPUT."""
    from splitembed.cli.describe import is_trainable
    from splitembed.split.table import SplitTable

    import_keras()
    from splitembed.models.export import export_vectors

    source = SplitTable.open(path) if path.is_dir() or is_trainable(path) else path
    with written_to(output) as written:
        left_out = export_vectors(written, source, format=format, skip_unwritable=skip_unwritable)
    click.echo(f"{name_output(output)}: {format}, {_left_out(left_out)}", err=output == STANDARD_STREAM)


@main.command()
@click.option("--directory", type=FOLDER, help="Where to save the tables. Default: they are not kept.")
def demo(directory: Path | None) -> None:
    """Build, train, save and reopen a split of the embedded sample."""
    import_keras()
    from splitembed.cli.demo import run_demo

    with tempfile.TemporaryDirectory() as scratch:
        run_demo(directory or scratch, click.echo)


def _left_out(tokens: list[str]) -> str:
    if not tokens:
        return "every token"
    return f"{len(tokens):,} token{'s' * (len(tokens) != 1)} left out: {shortened(tokens, 5, ascii)}"
