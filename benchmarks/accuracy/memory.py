"""Anonymous memory: nothing goes in; the bytes of this process that no file backs come out, now or at their peak.

Anonymous resident memory is what a process costs a machine: pages of a mapped file are shared, and can be dropped.
"""

import contextlib
import threading
from types import TracebackType

_SECONDS_BETWEEN_LOOKS = 0.002


def anonymous_bytes() -> int | None:
    """Tells how much anonymous memory this process has resident, in bytes; None where the system does not say.

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
    """Watches anonymous memory while a block runs: `growth` is the peak less what there was at the start, in bytes.

    >>> with PeakMemory() as peak:
    ...     block = bytearray(32_000_000)
    >>> peak.growth is None or 0 <= peak.growth < 40_000_000  # less than the block where freed memory was used again
    True
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
        self._look()
        if self._start is not None and self._peak is not None:
            self.growth = self._peak - self._start

    def _watch(self) -> None:
        while not self._done.wait(_SECONDS_BETWEEN_LOOKS):
            self._look()

    def _look(self) -> None:
        now = anonymous_bytes()
        if now is not None and self._peak is not None:
            self._peak = max(self._peak, now)
