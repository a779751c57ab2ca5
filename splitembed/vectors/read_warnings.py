"""Doubts about a source of vectors: each kind is counted as it is met, and all are told once in one warning."""

import warnings

from splitembed.errors import VectorFileWarning, VectorFormatError

DUPLICATE = "words that came again, first row kept"
NOT_UTF8 = "words that are not valid UTF-8, kept with their bytes escaped"
REPLACED = "values that are not finite, replaced by 0"
BLANK = "blank lines, skipped"
MERGED = "lines that hold the numbers of two rows, read as one"
OPEN_END = "a last line without its line end, perhaps cut short"


class Doubts:
    """Counts what is doubtful in one source; `strict` makes the first doubt an error.

    >>> doubts = Doubts("glove.txt")
    >>> doubts.add(DUPLICATE, "line 3")
    >>> doubts.add(DUPLICATE, "line 9")
    >>> doubts.message()
    'glove.txt: words that came again, first row kept: 2 (first: line 3). read_vectors(..., strict=True) refuses each.'

    Args:
        source: what is read, for messages.
        strict: raise instead of counting.
    """

    def __init__(self, source: str, strict: bool = False) -> None:
        self.source, self.strict = source, strict
        self._counts: dict[str, int | None] = {}
        self._first: dict[str, str] = {}

    def add(self, kind: str, place: str, count: int | None = 1) -> None:
        """Counts a doubt.

        Args:
            kind: one of this module's texts, or one that says all by itself.
            place: where, such as "line 3".
            count: how many at once; None where there is nothing to count.

        Raises:
            VectorFormatError: the reading is strict.
        """
        if self.strict:
            raise VectorFormatError(
                f"{self.source}, {place}: found {_told(kind, count)}; expected no doubt, because of strict=True. "
                "Mend the source, or pass strict=False."
            )
        self._counts[kind] = None if count is None else (self._counts.get(kind) or 0) + count
        self._first.setdefault(kind, place)

    def check_header(self, says: int | None, found: int, line: int) -> None:
        """Doubts a header that counts other rows than there are.

        Args:
            says: the header's number of rows; None without a header.
            found: rows there are.
            line: the header's.
        """
        if says not in (None, found):
            self.add(f"header says {says} rows, the file holds {found}", f"line {line}", None)

    def message(self) -> str:
        """Lists every kind with its count and first place; "" if there was no doubt."""
        told = "; ".join(f"{_told(kind, count)} (first: {self._first[kind]})" for kind, count in self._counts.items())
        return told and f"{self.source}: {told}. read_vectors(..., strict=True) refuses each."

    def tell(self) -> None:
        """Warns with all doubts at once, at the line that called this function's caller."""
        if self._counts:
            warnings.warn(self.message(), VectorFileWarning, stacklevel=3)


def _told(kind: str, count: int | None) -> str:
    return kind if count is None else f"{kind}: {count}"
