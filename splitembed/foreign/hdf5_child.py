"""The program of the child process that reads an HDF5 file, because a damaged one can crash or hang libhdf5.

It is run as a script by `hdf5_file` and imports only NumPy and h5py. Each line of standard input is a request in
JSON. The answer is a line of JSON, then the bytes of the array that it describes.
"""

import json
import os
import sys
from typing import Any

# zlib packs at most 1,032 bytes into one, which only constant bytes reach. Padded words reach about 150.
_MOST_EXPANSION = 500
_FREE_BYTES = 1 << 20
_MEMORY_BYTES = 1 << 28
_CPU_SECONDS = 2
_BYTES_PER_CPU_SECOND = 10_000_000


class RefusedError(Exception):
    """Content that is not read; the message says what was found."""


def limit_memory(file_bytes: int) -> None:
    """Limit the address space to what the process has now and what a file of this size may need."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY_BYTES + 4 * file_bytes, resource.RLIM_INFINITY))
    # Windows and macOS: the parent process limits the time.
    except (ImportError, OSError, ValueError):
        return


def limit_cpu(file_bytes: int) -> None:
    """Limit the CPU seconds of the next request."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + _CPU_SECONDS + file_bytes // _BYTES_PER_CPU_SECOND
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def find(file: Any, name: str) -> Any:
    """Return the object of a name, or None. Links that leave the group are refused before they are followed."""
    import h5py

    try:
        name.encode()
    # No name in a file is written with lone surrogates.
    except UnicodeEncodeError:
        return None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    for end in range(1, len(parts) + 1):
        prefix = "/".join(parts[:end])
        link = file.get(prefix, getlink=True)
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise RefusedError(f"a link at {prefix!r} ({type(link).__name__})")
    return file.get("/".join(parts) or "/")


def check_storage(name: str, dataset: Any) -> None:
    """Refuse a dataset whose content is in other files."""
    if dataset.is_virtual:
        raise RefusedError(f"a virtual dataset, {name!r}, whose rows are in other files")
    if dataset.external:
        raise RefusedError(f"a dataset, {name!r}, with external storage: its content is in another file")


def describe(name: str, found: Any) -> dict[str, Any]:
    """Return what the parent process must know about an object."""
    import h5py

    if isinstance(found, h5py.Group):
        return {"group": sorted(found.keys())[:1000]}
    if not isinstance(found, h5py.Dataset):
        return {}
    check_storage(name, found)
    if found.shape is None:
        return {}
    is_text = h5py.check_string_dtype(found.dtype) is not None
    return {"shape": found.shape, "dtype": found.dtype.str, "named": str(found.dtype), "is_text": is_text}


def list_datasets(file: Any) -> dict[str, Any]:
    """Return lines about the datasets, and whether the file holds the weights of a Keras model."""
    import h5py

    lines: list[str] = []

    def add(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset) and not found.is_virtual:
            lines.append(f"{name!r} {found.shape} {found.dtype}")

    file.visititems(add)
    return {"lines": lines[:1000], "is_keras": "layers" in file}


def read_slice(dataset: Any, name: str, start: int, stop: int, file_bytes: int) -> tuple[dict[str, Any], bytes]:
    """Return the rows of a slice: their description, and their bytes. Strings are preceded by their lengths."""
    import h5py
    import numpy as np

    check_storage(name, dataset)
    expected = dataset.size * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if expected and not stored:
        raise RefusedError(f"a dataset, {name!r}, that was never written")
    if expected > _FREE_BYTES + _MOST_EXPANSION * file_bytes:
        raise RefusedError(f"a dataset, {name!r}, of {expected} bytes in a file of {file_bytes}")
    if dataset.chunks and np.prod(dataset.chunks, dtype=object) * dataset.dtype.itemsize > _MEMORY_BYTES:
        raise RefusedError(f"a dataset, {name!r}, in chunks of shape {dataset.chunks}")
    rows = dataset[start:stop]
    if rows.dtype.kind != "O":
        return {"dtype": rows.dtype.str, "shape": rows.shape}, rows.tobytes()
    if h5py.check_string_dtype(dataset.dtype) is None or rows.ndim != 1:
        raise RefusedError(f"a dataset, {name!r}, of Python objects")
    words = [word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape") for word in rows]
    lengths = np.array([len(word) for word in words], np.int64)
    return {"words": len(words)}, lengths.tobytes() + b"".join(words)


def _plain(value: Any) -> Any:
    """Return the text or the number of an attribute, or a description of anything else."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    is_number = getattr(value, "shape", None) == () and getattr(value, "dtype", None) == "int64"
    return int(value) if is_number else repr(value)[:100]


def _text(file: Any, name: str) -> str:
    written = file.attrs.get(name)
    return written.decode("utf-8", "replace") if isinstance(written, bytes) else str(written)


def answer(file: Any, request: dict[str, Any], file_bytes: int) -> tuple[dict[str, Any], bytes]:
    """Return the answer to a request, and its bytes."""
    name = request.get("name", "")
    if request["do"] == "list":
        return list_datasets(file), b""
    if request["do"] == "frozen":
        is_table = _text(file, "format") == "splitembed.frozen"
        return {"dtype": _text(file, "dtype") if is_table else ""}, b""
    if request["do"] == "attributes":
        return {"attributes": {name: _plain(value) for name, value in file.attrs.items()}}, b""
    found = find(file, name)
    if request["do"] == "describe":
        return describe(name, found), b""
    return read_slice(found, name, request["start"], request["stop"], file_bytes)


def serve(path: str) -> None:
    """Answer requests about a file until standard input ends."""
    import h5py

    file_bytes = os.path.getsize(path)
    limit_memory(file_bytes)
    limit_cpu(file_bytes)
    file, failure = None, {}
    try:
        file = h5py.File(path, "r")
    # libhdf5 may raise anything on a damaged file.
    except Exception as error:
        failure = {"error": f"{type(error).__name__}: {error}"}
    send(failure, b"")
    for line in sys.stdin.buffer:
        limit_cpu(file_bytes)
        try:
            head, content = answer(file, json.loads(line), file_bytes)
        except RefusedError as error:
            head, content = {"refused": str(error)}, b""
        except Exception as error:
            head, content = {"error": f"{type(error).__name__}: {error}"}, b""
        send(head, content)


def send(head: dict[str, Any], content: bytes) -> None:
    """Write a line of JSON, and the bytes whose number it holds."""
    sys.stdout.buffer.write(json.dumps({**head, "bytes": len(content)}).encode() + b"\n" + content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.path.append(sys.argv[2])
    serve(sys.argv[1])
