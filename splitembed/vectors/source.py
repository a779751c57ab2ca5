"""A source of vectors with the options for reading it."""

from dataclasses import dataclass, fields
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.vectors.layouts import AUTO


@dataclass(frozen=True)
class VectorSource:
    """A source of vectors with the options for reading it. Every function that takes a source takes one of these.

    >>> from splitembed.vectors import read_vectors
    >>> source = VectorSource({"the": [0.5, 0.25, 1.0]}, dim=2)
    >>> read_vectors(source)
    Traceback (most recent call last):
    splitembed.errors.VectorFormatError: dict: found rows of dim 3; expected dim=2. Pass dim=3, or read the right file.

    Args:
        source: any source of `read_vectors`.
        dim: the numbers in a row: checked, and needed if words end in numbers; None detects it.
        format: the name of a format, to refuse any other; "auto" recognises it by the content.
        member: the name of the file inside a zip archive; None takes the only one, or the only one of dim `dim`.
        datasets: the names of the words and of the matrix inside an HDF5 or .npz file; for a safetensors file the name
            of the matrix alone.
        allow_pickle: load a pickle, which can run any code: trust its author first.
        strict: raise an error instead of each warning.
        non_finite: "error", or "zero" to replace NaN, infinities and values that overflow float32, with a warning.
        skip_bad_lines: leave out lines of a text that cannot be read, and count them in one warning.
        numbers_are_words: accept a text whose words are all decimal numbers; it looks like a matrix without words.
        progress: show a bar of bytes read; None shows it if standard error is a terminal.
    """

    source: Any
    dim: int | None = None
    format: str = AUTO
    member: str | None = None
    datasets: tuple[str, str] | str | None = None
    allow_pickle: bool = False
    strict: bool = False
    non_finite: str = "error"
    skip_bad_lines: bool = False
    numbers_are_words: bool = False
    progress: bool | None = None


def with_options(source: Any, **options: Any) -> VectorSource:
    """Return a source with its options: those of a `VectorSource`, or those given here.

    >>> with_options({"the": [1.0]}, dim=1).dim
    1

    Raises:
        VectorFormatError: options beside a `VectorSource`, which has its own.
        TypeError: an unknown option.
    """
    known = [field.name for field in fields(VectorSource)][1:]
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; the options of a source are {', '.join(known)}")
    if not isinstance(source, VectorSource):
        return VectorSource(source, **options)
    defaults = VectorSource(None)
    given = [name for name, value in options.items() if value != getattr(defaults, name)]
    if given:
        raise VectorFormatError(
            f"Found `{given[0]}` beside a VectorSource; expected all options in one place. Pass it to VectorSource."
        )
    return source


def refuse_datasets(options: VectorSource) -> None:
    """Raise an error if the option `datasets` is given.

    >>> refuse_datasets(VectorSource({"the": [1.0]}, datasets="matrix"))
    Traceback (most recent call last):
    splitembed.errors.VectorFormatError: Found datasets='matrix'; expected it only with HDF5, .npz and safetensors
    files. Leave `datasets` out.

    Raises:
        VectorFormatError: it is given.
    """
    if options.datasets is not None:
        raise VectorFormatError(
            f"Found datasets={options.datasets!r}; expected it only with HDF5, .npz and safetensors files. Leave "
            "`datasets` out."
        )
