"""Commands that report errors and warnings in one line each, in the words of the command line."""

import ast
import re
import warnings
from typing import Any

import click

from splitembed.cli.options import STANDARD_STREAM, LocalPath
from splitembed.errors import SplitEmbedError

EXIT_CODES = "Exit codes: 0 success, 1 an error such as an invalid file, 2 wrong arguments."
# A Python value as it stands in messages.
_VALUE = r"""(True|False|None|'[^']*'|"[^"]*"|\([^()]*\)|[\w.+-]*\w)"""
# The names in Python of arguments and options that have another one on the command line.
_NAMES_IN_PYTHON = {
    "vectors": ("source",),
    "frozen_dtype": ("frozen_dtype", "dtype"),
    "oov_initializer": ("oov_initializer", "initializer"),
}
# Advice that names functions of Python, and the same for the command line.
_ADVICE = (
    (re.compile(r"Use read_vectors for other files of vectors\."), "Make one with: splitembed convert VECTORS OUTPUT."),
    (re.compile(r"Open it with open_(?:frozen|trainable)\."), "Pass the other table, or the folder with both."),
)
_WORDS_AND_MATRIX = re.compile(r"\(words, (?:path|matrix)\)")


class ShellCommand(click.Command):
    """A command that reports errors of splitembed as one line and exit code 1; `--debug` shows the traceback."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"epilog": EXIT_CODES, **options})
        self.params.append(click.Option(["--debug"], is_flag=True, help="Show the Python traceback of an error."))

    def invoke(self, ctx: click.Context) -> Any:
        is_debug = ctx.params.pop("debug")
        self._check_streams(ctx)
        with warnings.catch_warnings():
            # Those of splitembed: each is shown, whatever filters Python was started with.
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = self._show_warning
            try:
                return super().invoke(ctx)
            # Click ends quietly when the reader of a pipe has gone.
            except BrokenPipeError:
                raise
            except (SplitEmbedError, OSError) as error:
                if is_debug:
                    raise
                raise click.ClickException(in_shell_words(_message(error), self)) from error
            except ImportError as error:
                # Only a missing optional library is the user's to install.
                if is_debug or "splitembed[" not in str(error):
                    raise
                raise click.ClickException(str(error)) from error

    def _show_warning(self, message: Warning | str, *where: Any, **options: Any) -> None:
        click.echo(f"Warning: {in_shell_words(str(message), self)}", err=True)

    def _check_streams(self, ctx: click.Context) -> None:
        """Refuse "-" for several inputs or several outputs."""
        for is_input, stream in ((True, "input"), (False, "output")):
            named = [
                parameter.get_error_hint(ctx)
                for parameter in self.params
                if isinstance(parameter.type, LocalPath)
                and parameter.type.exists == is_input
                and ctx.params.get(parameter.name or "") == STANDARD_STREAM
            ]
            if len(named) > 1:
                raise click.UsageError(f"Standard {stream} (-) can be used once. Received it for {', '.join(named)}.")


class ShellGroup(click.Group):
    """A group of such commands."""

    command_class = ShellCommand


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def in_shell_words(message: str, command: click.Command) -> str:
    r"""Return a message of the library in one line, with the names of the command's options and arguments.

    >>> strict = click.Option(["--strict"], is_flag=True)
    >>> command = click.Command("build", params=[strict, click.Option(["--fallback", "fallbacks"])])
    >>> in_shell_words("`fallbacks` must hold rules.\nread_vectors(..., strict=True) refuses each.", command)
    '--fallback must hold rules. --strict refuses each.'
    """
    for parameter in command.params:
        own_name = str(parameter.name)
        for name in _NAMES_IN_PYTHON.get(own_name, (own_name,)):
            message = _with_shell_name(message, name, parameter)
        if own_name == "words":
            message = _WORDS_AND_MATRIX.sub("the matrix with --words FILE", message)
    for pattern, advice in _ADVICE:
        message = pattern.sub(advice, message)
    return " ".join(message.splitlines())


def _with_shell_name(message: str, name: str, parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return message.replace(f"`{name}`", parameter.human_readable_name)
    option = parameter.opts[0]

    def typed(found: re.Match[str]) -> str:
        return _typed(option, found[1])

    message = re.sub(rf"\b\w+\((?:path|\.\.\.), {name}={_VALUE}\)", typed, message)
    message = re.sub(rf"(?<![\w.`]){name}={_VALUE}", typed, message)
    return message.replace(f"`{name}`", option)


def _typed(option: str, value: str) -> str:
    """Return an option with a Python value as it is typed in a shell.

    >>> _typed("--dim", "3"), _typed("--strict", "True"), _typed("--dataset", "('words', 'rows')")
    ('--dim 3', '--strict', '--dataset words --dataset rows')
    """
    if value == "True":
        return option
    if value in ("False", "None"):
        return f"no {option}"
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        literal = value
    values = literal if isinstance(literal, tuple) else (literal,)
    return " ".join(f"{option} {each}" for each in values)
