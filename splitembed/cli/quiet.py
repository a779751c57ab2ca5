"""The start of TensorFlow without the lines that it logs."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


def import_keras() -> None:
    """Import Keras and make its first tensor, while TensorFlow's log is held back; an error shows it.

    Only the commands do this: a program that imports splitembed decides on the log itself.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with standard_error_held():
        import keras

        # The first tensor starts the devices, which logs more lines.
        keras.ops.zeros(())


@contextlib.contextmanager
def standard_error_held() -> Iterator[None]:
    """Hold back what is written to file descriptor 2, also by C++ code; show it only if the block raises an error.

    >>> with standard_error_held():
    ...     _ = os.write(2, b"a line of a log")
    """
    if sys.stderr is None:
        # The shell has closed it.
        yield
        return
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            _show(held.fileno(), original)
            raise
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)


def _show(held: int, original: int) -> None:
    sys.stderr.flush()
    os.lseek(held, 0, os.SEEK_SET)
    while part := os.read(held, 1 << 16):
        os.write(original, part)
