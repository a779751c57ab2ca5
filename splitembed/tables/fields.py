"""Names in our files, and the errors for a file that is damaged or was changed."""

import os

from splitembed.errors import TableFormatError

PathLike = str | os.PathLike[str]

FORMAT_VERSION = 1
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
FROZEN_NAME, TRAINABLE_NAME = "frozen.h5", "trainable.h5"
FROZEN_FORMAT, TRAINABLE_FORMAT = "splitembed.frozen", "splitembed.trainable"
OPENERS = {FROZEN_FORMAT: "open_frozen", TRAINABLE_FORMAT: "open_trainable"}


def damaged(path: PathLike, what: str) -> TableFormatError:
    """Return the error for a damaged file."""
    return TableFormatError(f"{os.fspath(path)} is damaged: {what} Write it again, or use another copy.")


def changed(path: PathLike, what: str) -> TableFormatError:
    """Return the error for a file that no longer is as it was written."""
    return TableFormatError(
        f"{os.fspath(path)} is not as splitembed wrote it: {what} Use another copy. If another HDF5 tool wrote the "
        "file, its frozen rows are still there: `splitembed convert` makes a new table of them."
    )
