"""Whether a file lies on a network file system, where a memory map is at the mercy of other machines."""

import os
from pathlib import Path

from splitembed.tables.fields import PathLike

_MOUNTS = Path("/proc/self/mountinfo")
_KINDS = ("nfs", "cifs", "smb", "ceph", "lustre", "gpfs", "beegfs", "afs", "9p", "fuse.", "glusterfs", "ocfs2", "gfs2")


def is_on_network(path: PathLike, mounts: Path = _MOUNTS) -> bool:
    """Return whether a file lies on a network file system, or on one of FUSE, which may be one; False where unknown.

    Args:
        path: an existing file.
        mounts: the list of mounted file systems, which Linux alone has.
    """
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return False
    # 36 35 98:0 /root /mount options - type source options
    kinds = [line.partition(" - ")[2].split(" ")[0] for line in lines if line.split(" ")[2:3] == [number]]
    return any(kind.startswith(_KINDS) for kind in kinds)
