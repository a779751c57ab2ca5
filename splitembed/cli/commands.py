"""The `splitembed` command: files go in; tables and a readable account come out."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from splitembed.cli.options import (
    EXISTING,
    OUTPUT,
    VECTORS,
    corpus_option,
    count_tokens,
    fallback_option,
    id_or_token,
    reads_vectors,
    vector_source,
)
from splitembed.errors import SplitEmbedError

if TYPE_CHECKING:
    from splitembed.tables import TrainableTable


class _Command(click.Command):
    """A command whose splitembed errors are a line for the user and exit code 1, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SplitEmbedError, OSError) as error:
            raise click.ClickException(str(error)) from error
        except ImportError as error:
            if "splitembed[" not in str(error):
                raise  # no extra of ours mends it
            raise click.ClickException(str(error)) from error


class _Group(click.Group):
    command_class = _Command


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="splitembed")
def main() -> None:
    """Pretrained word vectors in a frozen table, the rows to be learned in a small trainable one."""


@main.command()
@click.argument("vocabulary", type=EXISTING)
@click.argument("vectors", type=VECTORS)
@click.argument("directory", type=OUTPUT)
@corpus_option
@fallback_option
@click.option("--train-fallbacks", is_flag=True, help="Tokens that a fallback found train, and start from its row.")
@click.option("--train", "trainable_tokens", multiple=True, metavar="TOKEN", help="A token that trains although known.")
@click.option("--train-most-frequent", default=0, metavar="K", help="The K most frequent known tokens train too.")
@click.option("--min-count", default=1, metavar="N", help="OOV tokens rarer than N share the row of [UNK].")
@click.option("--oov-initializer", default="uniform", show_default=True, help="How OOV rows start.")
@click.option("--padding", metavar="ID|TOKEN", help="What has a zero and frozen row. Default: a blank first line.")
@click.option("--unknown", metavar="ID|TOKEN", help="What stands for unknown words. Default: [UNK].")
@click.option("--extend-vocabulary", is_flag=True, help="Append every other word of the vectors to the vocabulary.")
@click.option("--frozen-dtype", help="Store the frozen rows as float16, bfloat16 or int8.")
@click.option("--seed", type=int, help="Seed of the OOV rows.")
@reads_vectors
def build(
    vocabulary: Path,
    vectors: str,
    directory: Path,
    corpus: Path | None,
    padding: str | None,
    unknown: str | None,
    **options: Any,
) -> None:
    """Match VOCABULARY (one token a line, or a tokenizer.json) against VECTORS and save the split in DIRECTORY.

    VECTORS is a file or folder in any format that is read, or - for standard input.
    """
    from splitembed.split.build import build_split

    source = vector_source(vectors, options)
    named: dict[str, Any] = {"padding": id_or_token(padding), "unknown": id_or_token(unknown)}
    split = build_split(vocabulary, source, counts=count_tokens(corpus), **named, **options)
    split.save(directory)
    click.echo(split.coverage)
    click.echo(split)
    click.echo(f"Saved in {directory}: {', '.join(sorted(path.name for path in directory.glob('*.h5')))}.")


@main.command()
@click.argument("vectors", type=VECTORS)
@click.argument("output", type=OUTPUT)
@click.option("--dtype", default="float32", show_default=True, help="float32, float16, bfloat16 or int8.")
@reads_vectors
def convert(vectors: str, output: Path, dtype: str, **options: Any) -> None:
    """Stream all of VECTORS (a file, a folder, or -) into the frozen table OUTPUT, which many models can share."""
    from splitembed.vectors.save_frozen import save_frozen

    table = save_frozen(output, vector_source(vectors, options), dtype=dtype)
    click.echo(f"{output}: {len(table.vectors):,} rows x {table.dim}, {table.fingerprint}")


@main.command()
@click.argument("path", type=EXISTING)
@click.option("--verify", is_flag=True, help="Read every byte and check the fingerprints.")
def inspect(path: Path, verify: bool) -> None:
    """Say what PATH holds: a frozen.h5, a trainable.h5, or a folder of both."""
    from splitembed.split.table import SplitTable
    from splitembed.tables import TRAINABLE_NAME

    if path.is_dir():
        split = SplitTable.open(path, verify=verify)
        click.echo(split)
        click.echo(_describe_trainable(path / TRAINABLE_NAME, verify=False))
        if split.table is not None and split.table.path is not None:
            click.echo(_describe_frozen(split.table.path, verify=False))
    elif _is_trainable(path):
        click.echo(_describe_trainable(path, verify))
    else:
        click.echo(_describe_frozen(path, verify))


@main.command()
@click.argument("vocabulary", type=EXISTING)
@click.argument("vectors", type=VECTORS)
@corpus_option
@fallback_option
@click.option("--top", default=20, show_default=True, help="How many OOV tokens to list, heaviest first.")
@click.option("--suggest", is_flag=True, help="Name a word for each of them that it may stand for.")
@click.option("--json", "json_path", type=OUTPUT, help="Write the report there as well, as JSON.")
@click.option("--plot", "plot_path", type=OUTPUT, help="Draw coverage by frequency rank there, such as in a .png file.")
@reads_vectors
def coverage(
    vocabulary: Path,
    vectors: str,
    corpus: Path | None,
    json_path: Path | None,
    plot_path: Path | None,
    **options: Any,
) -> None:
    """Say how much of VOCABULARY (one token a line, or a tokenizer.json) the VECTORS know, and what is missing."""
    from splitembed.coverage import report_coverage

    if plot_path and not corpus:
        raise click.UsageError("--plot needs --counts: how often each token occurs.")
    report = report_coverage(vocabulary, vector_source(vectors, options), counts=count_tokens(corpus), **options)
    click.echo(report)
    if json_path:
        report.to_json(json_path)
    if plot_path:
        report.plot(plot_path)


@main.command()
@click.argument("path", type=EXISTING)
@click.argument("output", type=OUTPUT)
@click.option("--format", default="glove", show_default=True, help="glove, word2vec or word2vec-binary.")
@click.option("--skip-unwritable", is_flag=True, help="Leave out tokens that cannot stand there, such as padding.")
def export(path: Path, output: Path, format: str, skip_unwritable: bool) -> None:  # noqa: A002
    """Write the tokens and rows of PATH, a folder of tables or a frozen.h5, to OUTPUT, for other tools."""
    from splitembed.models.export import export_vectors
    from splitembed.split.table import SplitTable

    source = SplitTable.open(path) if path.is_dir() or _is_trainable(path) else path
    left_out = export_vectors(output, source, format=format, skip_unwritable=skip_unwritable)
    click.echo(f"{output}: {format}, {_left_out(left_out)}")


@main.command()
@click.option("--directory", type=OUTPUT, help="Where to leave the tables. Default: nowhere.")
def demo(directory: Path | None) -> None:
    """Do the main job on the embedded sample: build, train, save, open again."""
    from splitembed.cli.demo import run_demo

    with tempfile.TemporaryDirectory() as scratch:
        run_demo(directory or scratch, click.echo)


def _left_out(tokens: list[str]) -> str:
    shown = ", ".join(map(ascii, tokens[:5])) + (", ..." if len(tokens) > 5 else "")
    return f"{len(tokens):,} tokens left out: {shown}" if tokens else "every token"


def _is_trainable(path: Path) -> bool:
    import h5py

    from splitembed.tables.fields import TRAINABLE_FORMAT, text_or_other

    if not h5py.is_hdf5(path):
        return False  # and open_frozen says what it is not
    with h5py.File(path) as file:
        return bool(text_or_other(file, "format") == TRAINABLE_FORMAT)


def _describe_frozen(path: Path, verify: bool) -> str:
    from splitembed.tables import open_frozen

    table = open_frozen(path, verify=verify)
    words = "none" if table.words is None else f"{len(table.words):,}"
    held = "mapped" if table.mapped else "read"
    return (
        f"frozen table   {table.num_frozen:,} rows x {table.dim}, {table.dtype}, {held}\n"
        f"words          {words}\n"
        f"source         {table.source or 'not said'}\n"
        f"fingerprint    {table.fingerprint}"
    )


def _describe_trainable(path: Path, verify: bool) -> str:
    from splitembed.tables import open_trainable

    table = open_trainable(path, verify=verify)
    logits = "" if table.reverse is None else f"\n\nlogits, not tied\n{_describe_rows(table.reverse)}"
    return _describe_rows(table) + logits


def _describe_rows(table: "TrainableTable") -> str:
    import numpy as np

    shared = len(table.remap) - len(np.unique(table.remap))
    return (
        f"trainable table  {len(table.vectors):,} rows x {table.vectors.shape[1]}\n"
        f"tokens           {len(table.remap):,}, {shared:,} of them on the row of another; padding {table.padding}\n"
        f"vocabulary       {table.vocabulary_fingerprint or 'none: ids have no strings'}\n"
        f"frozen table     {table.frozen_fingerprint}\n"
        f"                 {table.frozen_path or 'beside it'}"
    )
