"""The files frozen.h5 and trainable.h5. What is read equals what was written; foreign and damaged files are refused.

    FrozenWriter, write_frozen      rows -> frozen.h5             open_frozen     -> FrozenTable, memory-mapped
    write_trainable                 rows, remap -> trainable.h5   open_trainable  -> TrainableTable
    check_pair, open_pair           refuse tables that do not match

The format, version 1
=====================

Both files are plain HDF5, readable by HDF5 1.8 (2008) and later. In front of the HDF5 data, in its user block, stands a
head, which splitembed reads in the place of HDF5, as libhdf5 crashes or hangs on damaged files. It has the same
attributes, and the place of each array in the file. `splitembed.tables.head` describes its bytes. The JSON text in it:

    {"format": ..., "file_size": the number of bytes of the file,
     "attributes": {name: text or integer, ...},
     "arrays": [{"name", "dtype": as NumPy writes it, "shape", "offset": in the file, "size": in bytes,
                 "ends": CRC-32 of the first and the last 4096 bytes, "crc32": of all bytes, null for rows}, ...]}

Readers of HDF5 ignore names, attributes and datasets that are not listed here. Text attributes are scalar UTF-8 strings
of fixed length, padded with NUL; "" is one NUL. Integer attributes are int64. Datasets are contiguous, without filters,
and little-endian; each starts at a multiple of 64 bytes. A file that another tool wrote again no longer fits its head,
and is refused; `splitembed convert` makes a new frozen.h5 of it.

frozen.h5
    attribute `format`              text, "splitembed.frozen"
    attribute `format_version`      integer, 1; a reader refuses another one
    attribute `dtype`               text: "float32", "float16", "bfloat16" or "int8"
    attribute `dim`                 integer, the length of a row
    attribute `source`              text for people: where the rows came from
    attribute `fingerprint`         text, of the rows
    attribute `words_fingerprint`   text, of the words; "" if there is no group `words`
    attribute `word_rows_fingerprint`  text, only with `words/rows`: of that, as of a remap
    attribute `zero_row`            integer, optional: a row that is all zero, for padding; its word, if there are
                                    words, is not a token
    dataset   `vectors`             (num_frozen, dim). float32, float16: IEEE 754. bfloat16: uint16, the upper half of
                                    the float32. int8: row i is vectors[i] * scale[i]
    dataset   `scale`               float32 (num_frozen,), only with int8
    dataset   `words/utf8`          uint8 (num_bytes,): the bytes of all words, without separators
    dataset   `words/offsets`       uint64 (num_frozen + 1,), from 0 to num_bytes, never decreasing: word i is
                                    utf8[offsets[i]:offsets[i + 1]]
    dataset   `words/rows`          int32 (num_words,), optional; with it offsets are (num_words + 1,) and several words
                                    may share a row: word i has row rows[i], 0 <= rows[i] < num_frozen

    Arrays start at a multiple of 4096 bytes, so that the file can be memory-mapped and the map given to libraries that
    need memory at a multiple of 64 bytes. Words are UTF-8, or other bytes copied from a foreign file; they may be empty
    and may repeat.

trainable.h5
    attribute `format`                  text, "splitembed.trainable"
    attribute `format_version`          integer, 1; a reader refuses another one
    attribute `fingerprint`             text, of the trainable rows
    attribute `remap_fingerprint`       text, of the remap
    attribute `vocabulary_fingerprint`  text, of the vocabulary; "" if there is no group `vocabulary`
    attribute `frozen_fingerprint`      text, the attribute `fingerprint` of the frozen.h5 that `remap` points into
    attribute `frozen_path`             text, a hint: the path of that file, absolute or relative to the folder of this
                                        one; "" if it is beside this one: `frozen.h5`, or `frozen-` and the first 16
                                        hexadecimal digits of its fingerprint and `.h5`
    attribute `owned_frozen`            text: the fingerprints, separated by spaces, of frozen tables beside this file
                                        that were saved in this folder for it or for the split before it; they are
                                        removed when another split is saved there
    attribute `padding`                 integer, optional: the padding id, 0 <= padding < num_tokens
    dataset   `vectors`                 float32 (num_trainable, dim)
    dataset   `remap`                   int32 (num_tokens,), -num_trainable <= remap < num_frozen: token id t has row
                                        remap[t] of the frozen table if remap[t] >= 0, else row -1 - remap[t] of
                                        `vectors`
    dataset   `vocabulary/utf8`         as `words/utf8`: the tokens in id order; the group `vocabulary` is absent where
                                        ids have no strings
    dataset   `vocabulary/offsets`      uint64 (num_tokens + 1,), as `words/offsets`

    A remap that consists of few ramps, at most one for four tokens, and has at most 2**22 tokens, is stored as a group
    instead. In a ramp each token has the row after that of the token before, in the same table.

    attribute `num_tokens`              integer
    dataset   `remap/starts`            int32 (num_ramps,), rising from 0: the first token id of each ramp
    dataset   `remap/rows`              int32 (num_ramps,): remap[starts[i]]. The following tokens have remap + 1 if
                                        rows[i] >= 0, else remap - 1

    An embedding whose weights are not tied has a second table, for its logits, with the same tokens: the datasets
    `reverse/vectors` and `reverse/remap` and the attributes `reverse_fingerprint`, `reverse_remap_fingerprint`,
    `reverse_frozen_fingerprint`, `reverse_padding` and `reverse_num_tokens`, each as the one without `reverse`.

Fingerprints
    "sha256:" and the 64 lower-case hexadecimal digits of SHA-256 (FIPS 180-4) over bytes in this order, numbers
    little-endian and in C order:
    rows        the bytes of `vectors`; with int8 then the bytes of `scale`; then the ASCII text of dtype, number of
                rows and dim, such as `float32 400000x50`
    words       the bytes of `utf8`, then those of `offsets`
    remap       the bytes of `remap` as int32, one for each token

A file is written under a temporary name in the same folder, synchronised to the disk, and renamed: files are replaced,
never edited, and a process that has mapped the old file keeps its content. Temporary files of writers that were killed
are removed by the next writer in the folder.

A complete example of a reader without splitembed:

>>> import hashlib, tempfile
>>> from pathlib import Path
>>> import h5py, numpy as np
>>> from splitembed import tables
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "frozen.h5"
...     _ = tables.write_frozen(path, np.array([[0.5, 1.0], [1.5, 2.0]], np.float32), words=["the", "of"])
...     with h5py.File(path) as file:
...         rows, utf8, offsets = file["vectors"][:], file["words/utf8"][:].tobytes(), file["words/offsets"][:]
...         recorded = file.attrs["fingerprint"].decode()
>>> rows[1].tolist(), utf8[offsets[1] : offsets[2]]
([1.5, 2.0], b'of')
>>> recorded == "sha256:" + hashlib.sha256(rows.astype("<f4").tobytes() + b"float32 2x2").hexdigest()
True
"""

from splitembed.tables.atomic_files import locked_folder, synchronize_folder
from splitembed.tables.fields import FORMAT_VERSION, FROZEN_NAME, TRAINABLE_NAME
from splitembed.tables.find_frozen import SEARCH_PATH, find_frozen, is_frozen, search_path
from splitembed.tables.fingerprints import fingerprint_remap, fingerprint_rows, fingerprint_words
from splitembed.tables.head import MAGIC
from splitembed.tables.pairing import beside, check_pair, frozen_name, open_pair
from splitembed.tables.read_frozen import FrozenTable, open_frozen
from splitembed.tables.read_trainable import TrainableTable, open_trainable
from splitembed.tables.storage import encode_rows
from splitembed.tables.stream_frozen import FrozenWriter
from splitembed.tables.table_file import MemoryMap, format_of, is_rewritten
from splitembed.tables.write_frozen import write_frozen
from splitembed.tables.write_trainable import write_trainable

__all__ = [
    "FORMAT_VERSION",
    "FROZEN_NAME",
    "MAGIC",
    "SEARCH_PATH",
    "TRAINABLE_NAME",
    "FrozenTable",
    "FrozenWriter",
    "MemoryMap",
    "TrainableTable",
    "beside",
    "check_pair",
    "encode_rows",
    "find_frozen",
    "fingerprint_remap",
    "fingerprint_rows",
    "fingerprint_words",
    "format_of",
    "frozen_name",
    "is_frozen",
    "is_rewritten",
    "locked_folder",
    "open_frozen",
    "open_pair",
    "open_trainable",
    "search_path",
    "synchronize_folder",
    "write_frozen",
    "write_trainable",
]
