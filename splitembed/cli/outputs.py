"""Results of commands: files, standard output for "-", text and JSON."""

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from splitembed.cli.options import STANDARD_STREAM


@contextlib.contextmanager
def written_to(output: Path | str) -> Iterator[Path]:
    """Yield the path of a file to write; for "-" a temporary one, which is then copied to standard output.

    >>> with written_to(Path("vectors.txt")) as path:
    ...     path.name
    'vectors.txt'
    """
    if output != STANDARD_STREAM:
        yield Path(output)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output"
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def print_result(text: str, content: dict[str, Any], json_path: Path | str | None, output: Path | str = "") -> None:
    """Print a result as text, and write it as JSON where that is requested.

    Args:
        text: the text, which "-" as `json_path` replaces.
        content: the same as dicts, lists, strings and numbers.
        json_path: a file for the JSON; "-" for standard output; None for no JSON.
        output: the file that the command wrote. If it is "-", the text is printed to standard error.
    """
    if json_path != STANDARD_STREAM:
        click.echo(text, err=output == STANDARD_STREAM)
    if json_path is not None:
        with written_to(json_path) as path:
            path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="ascii")


def name_output(output: Path | str) -> str:
    """Return the name of an output for messages.

    >>> name_output("-"), name_output("vectors.txt")
    ('standard output', 'vectors.txt')
    """
    return "standard output" if output == STANDARD_STREAM else str(output)
