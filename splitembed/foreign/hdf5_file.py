"""An HDF5 file of another program, read by a child process with a bound on time and memory."""

import contextlib
import importlib.util
import json
import os
import stat
import subprocess
import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.foreign import hdf5_child

# The child process limits its CPU time itself. This ends one that waits, or one without such limits.
_SECONDS = 60
_BYTES_PER_SECOND = 5_000_000


class ForeignHdf5:
    """An HDF5 file that is open in a child process.

    Args:
        path: the file.
        stack: closes the file.

    Raises:
        VectorFormatError: the file is damaged, or not a regular file.
    """

    def __init__(self, path: str, stack: contextlib.ExitStack) -> None:
        self.name = path
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise VectorFormatError(f"{path}: found a pipe or a device; expected a file. Save the data as a file.")
        self._seconds = _SECONDS + status.st_size / _BYTES_PER_SECOND
        self._process = stack.enter_context(_start(path))
        stack.callback(self._process.kill)
        self._receive()

    def ask(self, **request: Any) -> tuple[dict[str, Any], bytes]:
        """Send a request, and return its answer and the bytes after it.

        Raises:
            VectorFormatError: damaged or refused content, or the child process crashed or ran out of time.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        return self._receive()

    def slice(self, dataset: str, start: int, stop: int) -> NDArray[Any] | list[bytes]:
        """Return rows of a dataset; strings of variable length as a list of bytes."""
        head, content = self.ask(do="slice", name=dataset, start=start, stop=stop)
        if "words" not in head:
            return np.frombuffer(content, np.dtype(head["dtype"])).reshape(head["shape"])
        lengths = np.frombuffer(content, np.int64, head["words"])
        ends = (8 * len(lengths) + np.cumsum(lengths)).tolist()
        return [content[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]

    def _receive(self) -> tuple[dict[str, Any], bytes]:
        assert self._process.stdout is not None
        timer = threading.Timer(self._seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            line = self._process.stdout.readline()
            head = json.loads(line) if line.endswith(b"\n") else {}
            content = self._process.stdout.read(head.get("bytes", 0))
        finally:
            timer.cancel()
        if not head or len(content) != head["bytes"]:
            raise damaged(self.name, f"the child process that reads it ended with code {self._process.wait()}")
        if "refused" in head:
            raise VectorFormatError(
                f"{self.name}: found {head['refused']}; expected datasets inside the file, written in full. Copy them "
                "into a new file."
            )
        if "error" in head:
            raise damaged(self.name, head["error"])
        return head, content


def damaged(name: str, found: str) -> VectorFormatError:
    """Return the error of a damaged file."""
    return VectorFormatError(
        f"{name}: found HDF5 data that cannot be read ({found}); expected a whole file. Copy or write it again."
    )


def _start(path: str) -> subprocess.Popen[bytes]:
    spec = importlib.util.find_spec("h5py")
    assert spec is not None and spec.origin is not None
    libraries = os.path.dirname(os.path.dirname(spec.origin))
    # Isolated, so that neither the environment nor the working directory adds modules.
    command = [sys.executable, "-I", hdf5_child.__file__, os.path.abspath(path), libraries]
    # Threads of OpenBLAS would take address space; plugins of libhdf5 are other files.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "HDF5_PLUGIN_PRELOAD": "::"}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
