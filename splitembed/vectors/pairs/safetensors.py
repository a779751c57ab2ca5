"""safetensors: a file, or a folder with a tokenizer beside it, enters; rows leave, read slice by slice.

Source of the folders: model2vec's `StaticModel.save_pretrained`: tensor `embeddings`, and in newer ones `mapping` (the
row of each token) and `weights` (a factor for each token); sentence-transformers' `StaticEmbedding` calls the tensor
`embedding.weight`.
"""

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import WeightedRows, check_rows
from splitembed.vectors.pairs.word_lists import as_word_list
from splitembed.vectors.unreadable import load_library

EMBEDDINGS = ("embeddings", "embedding.weight")
TENSORS, TOKENIZER = "model.safetensors", "tokenizer.json"
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<f4",
    "I8": "i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
}
_DTYPES |= {"U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8"}


class TensorRows:
    """A tensor in a safetensors file; bfloat16 is widened to float32, which is exact."""

    def __init__(self, name: str, slices: Any) -> None:
        if slices.get_dtype() not in _DTYPES:
            raise VectorFormatError(
                f"{name}: found a tensor of {slices.get_dtype()}; expected {', '.join(_DTYPES)}. Convert it, and pass "
                "(words, matrix)."
            )
        if slices.get_dtype() == "BF16":
            load_library("ml_dtypes", name, "safetensors")  # imported, it makes bfloat16 known to NumPy
        self.shape, self.dtype = tuple(slices.get_shape()), np.dtype(_DTYPES[slices.get_dtype()])
        self._slices, self._is_empty = slices, 0 in self.shape

    def __getitem__(self, places: slice) -> NDArray[Any]:
        if self._is_empty:
            return np.zeros((0, *self.shape[1:]), self.dtype)
        return np.asarray(self._slices[places]).astype(self.dtype, copy=False)


def safetensors_matrix(path: str | os.PathLike[str], tensor: str | None, stack: contextlib.ExitStack) -> Any:
    """Opens a tensor of a safetensors file.

    Args:
        path: the file.
        tensor: its name; None takes the only matrix.
        stack: closes the file.

    Returns:
        Something with `shape` and `dtype` that gives slices until `stack` is closed.

    Raises:
        VectorFormatError: a file that is damaged, holds no such tensor, or several.
        ImportError: safetensors is not installed.
    """
    return _tensor(os.fspath(path), _open(path, stack), tensor)


def tokenizer_pair(folder: Path, tensor: str | None, stack: contextlib.ExitStack) -> Pair:
    """Opens the tokens and their rows of a folder with `model.safetensors` and `tokenizer.json`.

    Special tokens, and pieces that continue a word, are no words.

    Args:
        folder: where both are.
        tensor: the name of the matrix; None takes `embeddings`, `embedding.weight` or the only matrix.
        stack: closes the file.

    Returns:
        Its name is the path of the safetensors file.

    Raises:
        VectorFormatError: a file that is damaged, holds no such tensor, or not one row for each token.
        ImportError: safetensors is not installed.
    """
    name, file = os.fspath(folder / TENSORS), _open(folder / TENSORS, stack)
    known = [each for each in EMBEDDINGS if each in file.keys()]  # noqa: SIM118
    rows = _tensor(name, file, tensor or (known[0] if known else None))
    if rows.dtype.kind != "f":
        raise VectorFormatError(
            f"{name}: found rows of {rows.dtype}, numbers without their scale; expected floats. Get the model as "
            "float16 or float32, or pass (words, scale * matrix)."
        )
    words = as_word_list(folder / TOKENIZER)
    if tensor is None and known[:1] == ["embeddings"]:
        rows, row_of = _mapped(name, file, rows, words.num_rows)
    else:
        row_of = None
    if row_of is None:
        return Pair(name, words.words, check_rows(name, words.num_rows, rows), words.row_of)
    return Pair(name, words.words, rows, row_of if words.row_of is None else row_of[words.row_of])


def _mapped(name: str, file: Any, rows: Any, num_tokens: int) -> tuple[Any, NDArray[np.int64] | None]:
    """The rows with their weights, and the row of each token where `mapping` says so."""
    parts = {part: _vector(name, file, part, num_tokens) for part in ("mapping", "weights")}
    mapping, weights = parts["mapping"], parts["weights"]
    if mapping is not None:
        mapping = mapping.astype(np.int64)
        if len(mapping) and not 0 <= int(mapping.min()) <= int(mapping.max()) < rows.shape[0]:
            raise VectorFormatError(
                f"{name}: found rows {mapping.min()} to {mapping.max()} in `mapping`; expected 0 to "
                f"{rows.shape[0] - 1}, as there are rows. The file is damaged: get it again."
            )
    if weights is None:
        return rows, mapping
    if mapping is None:
        check_rows(name, num_tokens, rows)
        mapping = np.arange(num_tokens)
    return WeightedRows(rows, mapping, weights), None


def _vector(name: str, file: Any, part: str, num_tokens: int) -> NDArray[Any] | None:
    if part not in file.keys():  # noqa: SIM118
        return None
    tensor = TensorRows(name, file.get_slice(part))
    if tensor.shape != (num_tokens,):
        raise VectorFormatError(
            f"{name}: found `{part}` of shape {tensor.shape}; expected ({num_tokens},), one for each token of "
            f"{TOKENIZER}. The two do not belong together."
        )
    return tensor[:]


def _open(path: str | os.PathLike[str], stack: contextlib.ExitStack) -> Any:
    library = load_library("safetensors", os.fspath(path), "safetensors")
    try:
        return stack.enter_context(library.safe_open(path, framework="numpy"))
    except library.SafetensorError as error:
        raise VectorFormatError(
            f"{os.fspath(path)}: found safetensors data that is damaged or cut short ({error}); expected a whole file. "
            "Download or copy it again."
        ) from error


def _tensor(name: str, file: Any, tensor: str | None) -> TensorRows:
    if tensor is not None and tensor in file.keys():  # noqa: SIM118
        return TensorRows(name, file.get_slice(tensor))
    shapes = {each: file.get_slice(each) for each in file.keys()}  # noqa: SIM118
    matrices = [each for each, slices in shapes.items() if len(slices.get_shape()) == 2]
    if tensor is None and len(matrices) == 1:
        return TensorRows(name, shapes[matrices[0]])
    found = ", ".join(f"{each!r} {tuple(slices.get_shape())} {slices.get_dtype()}" for each, slices in shapes.items())
    expected = "one matrix" if tensor is None else f"a tensor {tensor!r}"
    raise VectorFormatError(f"{name}: found {found or 'no tensors'}; expected {expected}. Name one with `datasets`.")
