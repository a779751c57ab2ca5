"""File systems that are known to be elsewhere, by the list of mounts of Linux."""

import os

import pytest

from splitembed.tables.network_files import is_on_network


@pytest.mark.skipif(not hasattr(os, "major"), reason="no such numbers there")
@pytest.mark.parametrize(
    ("kind", "expected"), [("nfs4", True), ("cifs", True), ("fuse.sshfs", True), ("ext4", False), ("tmpfs", False)]
)
def test_the_kind_of_the_mount_decides(tmp_path, kind, expected):
    device = os.stat(tmp_path).st_dev
    lines = [
        "22 1 999:999 / /other rw - nfs4 host:/ rw",
        f"36 35 {os.major(device)}:{os.minor(device)} / {tmp_path} rw,noatime shared:1 - {kind} source rw",
        "odd",
    ]
    (tmp_path / "mountinfo").write_text("\n".join(lines))
    assert is_on_network(tmp_path, tmp_path / "mountinfo") is expected


@pytest.mark.skipif(not hasattr(os, "major"), reason="no such numbers there")
def test_without_a_list_nothing_is_known(tmp_path):
    assert not is_on_network(tmp_path, tmp_path / "none")
    assert not is_on_network(tmp_path)
