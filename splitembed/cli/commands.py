"""The commands of `splitembed`."""

import tempfile
from pathlib import Path
from typing import Any

import click

from splitembed.cli.options import (
    EXISTING,
    OUTPUT,
    VECTORS,
    counts_option,
    fallback_option,
    id_or_token,
    in_option_names,
    reading_options,
    vector_source,
)
from splitembed.cli.token_counts import count_tokens
from splitembed.errors import SplitEmbedError, shortened


class _Command(click.Command):
    """A command that reports errors of splitembed as one line and exit code 1, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SplitEmbedError, OSError) as error:
            raise click.ClickException(in_option_names(str(error), self)) from error
        except ImportError as error:
            # Only a missing optional library is the user's to install.
            if "splitembed[" not in str(error):
                raise
            raise click.ClickException(str(error)) from error


class _Group(click.Group):
    command_class = _Command


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="splitembed")
def main() -> None:
    """Keep pretrained word vectors in a frozen table and the rows to train in a small second table."""


@main.command()
@click.argument("vocabulary", type=EXISTING)
@click.argument("vectors", type=VECTORS)
@click.argument("directory", type=OUTPUT)
@counts_option
@fallback_option
@click.option("--train-fallbacks", is_flag=True, help="Train tokens that a fallback matched, starting from its row.")
@click.option("--train", "trainable_tokens", multiple=True, metavar="TOKEN", help="Train this token. Can be repeated.")
@click.option("--train-most-frequent", default=0, metavar="K", help="Train the K most frequent known tokens.")
@click.option("--min-count", default=1, metavar="N", help="Let OOV tokens rarer than N share the row of [UNK].")
@click.option("--oov-initializer", default="uniform", show_default=True, help="The initializer of OOV rows.")
@click.option("--padding", metavar="ID|TOKEN", help="The token with a zero, frozen row. Default: a blank first line.")
@click.option("--unknown", metavar="ID|TOKEN", help="The token for unknown words. Default: [UNK].")
@click.option("--extend-vocabulary", is_flag=True, help="Append every other word of the vectors to the vocabulary.")
@click.option("--frozen-dtype", help="Store the frozen rows as float16, bfloat16 or int8.")
@click.option("--seed", type=int, help="Seed of the initializer.")
@reading_options
def build(
    vocabulary: Path,
    vectors: str,
    directory: Path,
    counts: Path | None,
    padding: str | None,
    unknown: str | None,
    **options: Any,
) -> None:
    """Match VOCABULARY (one token a line, or a tokenizer.json) against VECTORS and save the split in DIRECTORY.

    VECTORS is a file or directory in any supported format, or - for standard input.
    """
    from splitembed.split.build import build_split

    source = vector_source(vectors, options)
    options.update(padding=id_or_token(padding), unknown=id_or_token(unknown))
    split = build_split(vocabulary, source, counts=count_tokens(counts), **options)
    split.save(directory)
    click.echo(split.coverage)
    click.echo(split)
    click.echo(f"Saved in {directory}: {', '.join(sorted(path.name for path in directory.glob('*.h5')))}.")


@main.command()
@click.argument("vectors", type=VECTORS)
@click.argument("output", type=OUTPUT)
@click.option("--dtype", default="float32", show_default=True, help="float32, float16, bfloat16 or int8.")
@reading_options
def convert(vectors: str, output: Path, dtype: str, **options: Any) -> None:
    """Stream VECTORS (a file, a directory, or -) into the frozen table OUTPUT, which many models can share."""
    from splitembed.vectors.save_frozen import save_frozen

    table = save_frozen(output, vector_source(vectors, options), dtype=dtype)
    click.echo(f"{output}: {len(table.vectors):,} rows x {table.dim}, {table.fingerprint}")


@main.command()
@click.argument("path", type=EXISTING)
@click.option("--verify", is_flag=True, help="Read every byte and check the fingerprints.")
def inspect(path: Path, verify: bool) -> None:
    """Describe PATH: a frozen.h5, a trainable.h5, or a directory with both."""
    from splitembed.cli.describe import describe

    click.echo(describe(path, verify))


@main.command()
@click.argument("vocabulary", type=EXISTING)
@click.argument("vectors", type=VECTORS)
@counts_option
@fallback_option
@click.option("--top", default=20, show_default=True, help="Number of OOV tokens to list, the most frequent first.")
@click.option("--suggest", is_flag=True, help="Suggest a similar word for each listed OOV token.")
@click.option("--json", "json_path", type=OUTPUT, help="A file to write the report to as JSON.")
@click.option(
    "--plot", "plot_path", type=OUTPUT, help="A file for a plot of coverage by frequency rank, such as a .png."
)
@reading_options
def coverage(
    vocabulary: Path,
    vectors: str,
    counts: Path | None,
    json_path: Path | None,
    plot_path: Path | None,
    **options: Any,
) -> None:
    """Report how much of VOCABULARY (one token a line, or a tokenizer.json) the VECTORS cover, and list OOV tokens."""
    from splitembed.coverage import report_coverage

    if plot_path and not counts:
        raise click.UsageError("--plot needs --counts: how often each token occurs.")
    report = report_coverage(vocabulary, vector_source(vectors, options), counts=count_tokens(counts), **options)
    click.echo(report)
    if json_path:
        report.to_json(json_path)
    if plot_path:
        report.plot(plot_path)


@main.command()
@click.argument("path", type=EXISTING)
@click.argument("output", type=OUTPUT)
@click.option("--format", default="glove", show_default=True, help="glove, word2vec, word2vec-binary or projector.")
@click.option("--skip-unwritable", is_flag=True, help="Leave out tokens that the format cannot hold, such as padding.")
def export(path: Path, output: Path, format: str, skip_unwritable: bool) -> None:  # noqa: A002
    """Write the tokens and rows of PATH, a directory of tables or a frozen.h5, to the vector file OUTPUT."""
    from splitembed.cli.describe import is_trainable
    from splitembed.models.export import export_vectors
    from splitembed.split.table import SplitTable

    source = SplitTable.open(path) if path.is_dir() or is_trainable(path) else path
    left_out = export_vectors(output, source, format=format, skip_unwritable=skip_unwritable)
    click.echo(f"{output}: {format}, {_left_out(left_out)}")


@main.command()
@click.option("--directory", type=OUTPUT, help="Where to save the tables. Default: they are not kept.")
def demo(directory: Path | None) -> None:
    """Build, train, save and reopen a split of the embedded sample."""
    from splitembed.cli.demo import run_demo

    with tempfile.TemporaryDirectory() as scratch:
        run_demo(directory or scratch, click.echo)


def _left_out(tokens: list[str]) -> str:
    return f"{len(tokens):,} tokens left out: {shortened(tokens, 5, ascii)}" if tokens else "every token"
