"""Warnings about suspicious content: each kind is counted while a source is read, and all are given in one warning."""

import warnings

from splitembed.errors import VectorFileWarning, VectorFormatError

DUPLICATE = "duplicate words, first row kept"
NOT_UTF8 = "words that are not valid UTF-8, kept with their bytes escaped"
REPLACED = "values that are not finite, replaced by 0"
BLANK = "blank lines, skipped"
MERGED = "lines that hold the numbers of two rows, read as one"
APART = "rows with several spaces or tabs between numbers, read as one"
SKIPPED = "lines that cannot be read, skipped"
NUMBERS = (
    "words that are all decimal numbers, as in a matrix without words (pass (words, path), or set `numbers_are_words`)"
)
OPEN_END = "a last line without its line end, perhaps cut short"


class ReadWarnings:
    """Counts of suspicious content in one source; with `strict`, the first one is an error.

    >>> read_warnings = ReadWarnings("glove.txt")
    >>> read_warnings.add(DUPLICATE, "line 3")
    >>> read_warnings.add(DUPLICATE, "line 9")
    >>> read_warnings.message()
    'glove.txt: duplicate words, first row kept: 2 (first: line 3). read_vectors(..., strict=True) refuses each.'

    Args:
        source: the name of the source, for messages.
        strict: raise an error instead of counting.
    """

    def __init__(self, source: str, strict: bool = False) -> None:
        self.source, self.strict = source, strict
        self._counts: dict[str, int | None] = {}
        self._first: dict[str, list[str]] = {}

    def add(self, kind: str, position: str, count: int | None = 1, num_shown: int = 1) -> None:
        """Count suspicious content.

        Args:
            kind: one of the texts of this module, or another text that describes the content.
            position: its position, such as "line 3".
            count: how many there are; None for a kind that is not counted.
            num_shown: the number of first positions that the message lists.

        Raises:
            VectorFormatError: the reading is strict.
        """
        if self.strict:
            raise VectorFormatError(
                f"{self.source}, {position}: found {_with_count(kind, count)}; expected none, because of strict=True. "
                "Fix the source, or pass strict=False."
            )
        self._counts[kind] = None if count is None else (self._counts.get(kind) or 0) + count
        first = self._first.setdefault(kind, [])
        first.append(position)
        if len(first) > 1:
            # Their numbers decide: lines are not checked in order.
            first.sort(key=lambda each: (len(each), each))
            del first[num_shown:]

    def check_header(self, says: int | None, found: int, line: int) -> None:
        """Count a header whose number of rows is wrong.

        Args:
            says: the number of rows in the header; None without a header.
            found: the number of rows in the file.
            line: the line number of the header.
        """
        if says not in (None, found):
            self.add(f"header says {says} rows, the file holds {found}", f"line {line}", None)

    def message(self) -> str:
        """Return the text that lists every kind with its count and first position; "" without any."""
        kinds = "; ".join(
            f"{_with_count(kind, count)} (first: {', '.join(self._first[kind])})"
            for kind, count in self._counts.items()
        )
        return kinds and f"{self.source}: {kinds}. read_vectors(..., strict=True) refuses each."

    def emit(self) -> None:
        """Give one warning about all kinds, attributed to the caller of this function's caller."""
        if self._counts:
            warnings.warn(self.message(), VectorFileWarning, stacklevel=3)


def _with_count(kind: str, count: int | None) -> str:
    return kind if count is None else f"{kind}: {count}"
