"""Anonymous memory of this process, now or at its peak.

Anonymous resident memory is the memory that only this process uses. Pages of a mapped file are shared, and the system
can drop them.
"""

import contextlib
import threading
from types import TracebackType

_SECONDS_BETWEEN_SAMPLES = 0.002


def anonymous_bytes() -> int | None:
    """Return the resident anonymous memory of this process in bytes, or None if the system does not report it.

    >>> found = anonymous_bytes()
    >>> found is None or found > 1_000_000
    True

    Source: `RssAnon` in /proc/self/status, proc(5).
    """
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"RssAnon:"):
                return int(line.split()[1]) * 1024
    return None


class PeakMemory:
    """A context manager that measures `growth`, the peak of anonymous memory in a block minus its start, in bytes.

    >>> with PeakMemory() as peak:
    ...     block = bytearray(32_000_000)
    >>> peak.growth is None or 0 <= peak.growth < 40_000_000
    True

    The growth is smaller than the allocated memory if memory that was freed before is used again.
    """

    def __init__(self) -> None:
        self.growth: int | None = None

    def __enter__(self) -> "PeakMemory":
        self._start = self._peak = anonymous_bytes()
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._watcher.join()
        self._sample()
        if self._start is not None and self._peak is not None:
            self.growth = self._peak - self._start

    def _watch(self) -> None:
        while not self._done.wait(_SECONDS_BETWEEN_SAMPLES):
            self._sample()

    def _sample(self) -> None:
        now = anonymous_bytes()
        if now is not None and self._peak is not None:
            self._peak = max(self._peak, now)
