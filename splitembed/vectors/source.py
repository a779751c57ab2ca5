"""A source of vectors with the options for reading it, for every place that takes a source."""

from dataclasses import dataclass, fields
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.vectors.layouts import AUTO


@dataclass(frozen=True)
class VectorSource:
    """Where vectors are, and how they are to be read: any place that takes a source takes this one.

    >>> from splitembed.vectors import read_vectors
    >>> source = VectorSource({"the": [0.5, 0.25, 1.0]}, dim=2)
    >>> read_vectors(source)
    Traceback (most recent call last):
    splitembed.errors.VectorFormatError: dict: found rows of dim 3; expected dim=2. Pass dim=3, or read the right file.

    Args:
        source: whatever `read_vectors` takes.
        dim: numbers a row, to be checked, or to be known where words end in numbers; None finds it out.
        format: the name of a format to refuse any other file; "auto" goes by content.
        member: which file inside a zip archive; None takes the only one, or the only one of dim `dim`.
        datasets: the names of the words and of the matrix inside an HDF5 or .npz file that is not ours; for a
            safetensors file the name of the matrix alone.
        allow_pickle: load a pickle, which can run any code; for files of whoever you trust.
        strict: make each doubt an error.
        non_finite: "error", or "zero" to replace NaN, infinities and what float32 cannot hold, which is then a doubt.
    """

    source: Any
    dim: int | None = None
    format: str = AUTO
    member: str | None = None
    datasets: tuple[str, str] | str | None = None
    allow_pickle: bool = False
    strict: bool = False
    non_finite: str = "error"


def with_options(source: Any, **options: Any) -> VectorSource:
    """The source with its options, those of a `VectorSource` or those given here.

    >>> with_options({"the": [1.0]}, dim=1).dim
    1

    Raises:
        VectorFormatError: options beside a `VectorSource`, which brings its own.
        TypeError: an option that is none.
    """
    known = [field.name for field in fields(VectorSource)][1:]
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; options of reading are {', '.join(known)}")
    if not isinstance(source, VectorSource):
        return VectorSource(source, **options)
    defaults = VectorSource(None)
    given = [name for name, value in options.items() if value != getattr(defaults, name)]
    if given:
        raise VectorFormatError(
            f"Found `{given[0]}` beside a VectorSource; expected the options in one place. Put it into that."
        )
    return source


def refuse_datasets(asked: VectorSource) -> None:
    """Refuses `datasets` of a source that has none to name.

    >>> refuse_datasets(VectorSource({"the": [1.0]}, datasets="matrix"))
    Traceback (most recent call last):
    splitembed.errors.VectorFormatError: Found datasets='matrix'; expected it with an HDF5 file that is not ours, an
    .npz or a safetensors file alone. Leave `datasets` out.

    Raises:
        VectorFormatError: there are some.
    """
    if asked.datasets is not None:
        raise VectorFormatError(
            f"Found datasets={asked.datasets!r}; expected it with an HDF5 file that is not ours, an .npz or a "
            "safetensors file alone. Leave `datasets` out."
        )
