"""The files of TensorBoard's Projector, which shows the rows of a table as points in space.

    vectors.tsv            number TAB number TAB ... LF, one line for each token
    metadata.tsv           "token TAB id TAB rows LF", then one line for each token
    projector_config.pbtxt the names of both, which `tensorboard --logdir` looks for

Source of the formats: the documentation of the TensorBoard plugin "projector".
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.difference import diff
from splitembed.errors import SplitError
from splitembed.split.table import SplitTable
from splitembed.tables.atomic_files import replacing
from splitembed.vectors.write import NUM_BLOCK_NUMBERS, number_texts

# characters that end a field or a line
_SEPARATORS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
_CONFIG = (
    'embeddings {\n  tensor_name: "splitembed"\n  tensor_path: "vectors.tsv"\n  metadata_path: "metadata.tsv"\n}\n'
)


def write_projector(folder: str | os.PathLike[str], split: SplitTable, before: Any = None) -> None:
    """Write every token of a split, with its row and how the row trains.

    Args:
        folder: the folder to write into, made if it does not exist; a later `tensorboard --logdir` of it opens the
            table. Three files are replaced, one by one.
        split: the split. Its tokens are written with separators of the format as spaces; ids stand for them where there
            is no vocabulary.
        before: the split before training, or a layer; then rows that training moved are called "moved".

    Raises:
        SplitError: a row is not finite, or `before` has another dim.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    with replacing(path / "vectors.tsv") as temporary, open(temporary, "wb") as stream:
        stream.writelines(_vector_lines(split))
    lines = (f"{token}\t{number}\t{rows}\n" for number, (token, rows) in enumerate(_described(split, before)))
    with replacing(path / "metadata.tsv") as temporary, open(temporary, "w", encoding="utf-8", newline="") as text:
        text.write("token\tid\trows\n")
        text.writelines(lines)
    with replacing(path / "projector_config.pbtxt") as temporary:
        Path(temporary).write_text(_CONFIG, encoding="ascii")


def _vector_lines(split: SplitTable) -> Iterator[bytes]:
    length = max(NUM_BLOCK_NUMBERS // split.dim, 1)
    for start in range(0, split.num_tokens, length):
        ids = np.arange(start, min(start + length, split.num_tokens))
        rows = split.lookup(ids)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise SplitError(
                f"The row of id {ids[int(finite.argmin())]} is not finite, and the Projector shows finite rows alone. "
                f"Fix the row."
            )
        yield from (b"\t".join(numbers) + b"\n" for numbers in number_texts(rows))


def _described(split: SplitTable, before: Any) -> Iterator[tuple[str, str]]:
    """Yield each token and one of "frozen", "trainable" and "moved"."""
    kinds: NDArray[Any] = np.where(split.remap < 0, "trainable", "frozen").astype(object)
    if before is not None:
        kinds[diff(before, split, top=0, nearest=0).ids] = "moved"
    tokens = map(str, range(split.num_tokens)) if split.vocabulary is None else iter(split.vocabulary)
    for token, kind in zip(tokens, kinds.tolist(), strict=True):
        # a lone surrogate is no UTF-8
        readable = token.encode("utf-8", "replace").decode()
        yield _SEPARATORS.sub(" ", readable), kind
