"""safetensors files, alone or with a tokenizer beside them, read slice by slice.

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

from splitembed.errors import VectorFormatError, load_library
from splitembed.vectors.open_request import WORDS_APART, OpenRequest
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import WeightedRows, check_rows
from splitembed.vectors.pairs.word_lists import as_word_list

EMBEDDINGS = ("embeddings", "embedding.weight")
TENSORS, TOKENIZER = "model.safetensors", "tokenizer.json"
# sentence-transformers keeps the files of a model2vec folder in this one.
NESTED = "0_StaticEmbedding"
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
    """A tensor in a safetensors file. bfloat16 is widened to float32, which is exact."""

    def __init__(self, name: str, slices: Any) -> None:
        if slices.get_dtype() not in _DTYPES:
            raise VectorFormatError(
                f"{name}: found a tensor of {slices.get_dtype()}; expected {', '.join(_DTYPES)}. Convert it, and pass "
                "(words, matrix)."
            )
        if slices.get_dtype() == "BF16":
            # Its import registers bfloat16 with NumPy.
            load_library("ml_dtypes", name, "safetensors")
        self.shape, self.dtype = tuple(slices.get_shape()), np.dtype(_DTYPES[slices.get_dtype()])
        self._slices, self._is_empty = slices, 0 in self.shape

    def __getitem__(self, positions: slice) -> NDArray[Any]:
        if self._is_empty:
            return np.zeros((0, *self.shape[1:]), self.dtype)
        return np.asarray(self._slices[positions]).astype(self.dtype, copy=False)


def recognise_file(request: OpenRequest) -> bool:
    """Return whether the source is a safetensors file: the length of its header, less than 4 GB, then JSON."""
    return len(request.head) > 8 and request.head[4:8] == bytes(4) and request.head[8:9] == b"{"


def open_file(request: OpenRequest) -> Pair:
    """Open a safetensors file that has a tokenizer beside it.

    Raises:
        VectorFormatError: no tokenizer, or as `open_folder` raises it.
        ImportError: safetensors is not installed.
    """
    path = Path(request.source)
    if path.name == TENSORS and (path.parent / TOKENIZER).is_file():
        return _open_tokens(path.parent, request)
    raise VectorFormatError(
        f"{path}: found a safetensors file, which holds no words, and no {TOKENIZER} beside it; expected words and "
        "their rows. Pass (words, path), with the words as a list, a path of one word a line, or a tokenizer."
    )


def open_matrix(request: OpenRequest) -> Any:
    """Open a tensor of a safetensors file. It can be read until `request.stack` is closed.

    Args:
        request: its option `datasets` names the tensor; None takes the only matrix.

    Returns:
        An object with `shape` and `dtype` that gives slices.

    Raises:
        VectorFormatError: a damaged file; no such tensor, or several.
        ImportError: safetensors is not installed.
    """
    tensor, name = request.dataset_name(WORDS_APART), str(request.path)
    return _tensor(name, _open(name, request.stack), tensor)


def recognise_folder(request: OpenRequest) -> bool:
    """Return whether the source is a folder with `model.safetensors` and `tokenizer.json`."""
    return request.folder is not None and _model_folder(request.folder) is not None


def open_folder(request: OpenRequest) -> Pair:
    """Open the tokens and rows of a folder. Special tokens, and pieces that continue a word, are left out.

    Args:
        request: its option `datasets` names the matrix; None takes `embeddings`, `embedding.weight` or the only matrix.

    Returns:
        Its name is the path of the safetensors file. It can be read until `request.stack` is closed.

    Raises:
        VectorFormatError: a damaged file; no such tensor, or another number of rows than of tokens.
        ImportError: safetensors is not installed.
    """
    assert request.folder is not None
    folder = _model_folder(request.folder)
    assert folder is not None
    return _open_tokens(folder, request)


def _model_folder(folder: Path) -> Path | None:
    folders = (folder, folder / NESTED)
    return next((each for each in folders if (each / TENSORS).is_file() and (each / TOKENIZER).is_file()), None)


def _open_tokens(folder: Path, request: OpenRequest) -> Pair:
    tensor, name = request.dataset_name("the words are those of the tokenizer"), os.fspath(folder / TENSORS)
    file = _open(name, request.stack)
    known = [each for each in EMBEDDINGS if each in file.keys()]  # noqa: SIM118
    rows = _tensor(name, file, tensor or (known[0] if known else None))
    if rows.dtype.kind != "f":
        raise VectorFormatError(
            f"{name}: found rows of {rows.dtype}, numbers without their scale; expected floats. Get the model as "
            "float16 or float32, or pass (words, scale * matrix)."
        )
    words = as_word_list(folder / TOKENIZER)
    row_of = None
    if tensor is None and known[:1] == ["embeddings"]:
        rows, row_of = _mapped(name, file, rows, words.num_rows)
    if row_of is None:
        return Pair(name, words.words, check_rows(name, words.num_rows, rows), words.row_of)
    return Pair(name, words.words, rows, row_of if words.row_of is None else row_of[words.row_of])


def _mapped(name: str, file: Any, rows: Any, num_tokens: int) -> tuple[Any, NDArray[np.int64] | None]:
    """Return the rows with their weights, and the row of each token from `mapping`; None without one."""
    parts = {part: _vector(name, file, part, num_tokens) for part in ("mapping", "weights")}
    mapping, weights = parts["mapping"], parts["weights"]
    if mapping is not None:
        mapping = mapping.astype(np.int64)
        if len(mapping) and not 0 <= int(mapping.min()) <= int(mapping.max()) < rows.shape[0]:
            raise VectorFormatError(
                f"{name}: found rows {mapping.min()} to {mapping.max()} in `mapping`; expected 0 to "
                f"{rows.shape[0] - 1}, the rows of the matrix. The file is damaged: get it again."
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
            f"{TOKENIZER}. Get both files of the same model."
        )
    return tensor[:]


def _open(name: str, stack: contextlib.ExitStack) -> Any:
    library = load_library("safetensors", name, "safetensors")
    try:
        return stack.enter_context(library.safe_open(name, framework="numpy"))
    except library.SafetensorError as error:
        raise VectorFormatError(
            f"{name}: found safetensors data that is damaged or cut short ({error}); expected a whole file. "
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
