"""Read the same crafted files with other libraries, each in processes that may die, and print who survives what.

Run as `python -m tests.hostile.compare`. A library gets the files of the formats that it reads. "ended" counts files
that end the process (a crash, or CPU time without end); "memory" those that ask for more than 2 GB.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.hostile import cases
from tests.hostile.cases import Case

CPU_SECONDS, WALL_SECONDS = 10, 60
MEMORY_BYTES = 2 << 30
OUTCOMES = ("refused", "read", "memory", "ended")


class Library(NamedTuple):
    """A library, the name of what is called, how it reads a path, and the suffixes of the files that it is given."""

    name: str
    read: Callable[[Path], Any]
    suffixes: tuple[str, ...]


def read_h5py(path: Path) -> None:
    import h5py

    def read_all(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset):
            found[()]

    with h5py.File(path, "r") as file:
        file.visititems(read_all)
        for name in cases.NAMES:
            if name in file and isinstance(file[name], h5py.Dataset):
                read_all(name, file[name])


def read_keras(path: Path) -> None:
    import keras

    keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).load_weights(path)


def read_numpy(path: Path) -> None:
    import numpy as np

    found = np.load(path)
    if path.suffix == ".npz":
        for name in found.files:
            found[name]


def read_safetensors(path: Path) -> None:
    from safetensors.numpy import load_file

    load_file(path)


def read_gensim(path: Path) -> None:
    from gensim.models import KeyedVectors
    from gensim.models.fasttext import load_facebook_vectors

    if path.name.startswith("fasttext"):
        load_facebook_vectors(str(path))
    else:
        is_binary = path.suffix == ".bin"
        has_header = is_binary or path.name.startswith("header")
        KeyedVectors.load_word2vec_format(str(path), binary=is_binary, no_header=not has_header)


LIBRARIES = (
    Library("h5py", read_h5py, (".h5",)),
    Library("keras load_weights", read_keras, (".h5",)),
    Library("numpy.load", read_numpy, (".npy", ".npz")),
    Library("safetensors", read_safetensors, (".safetensors",)),
    Library("gensim", read_gensim, (".txt", ".bin", ".gz", ".bz2")),
)


def given(library: Library) -> list[Case]:
    """Return the cases of vectors with one of the library's suffixes."""
    return [
        case
        for case in cases.all_cases()
        if case.reader != "vocabulary" and not isinstance(case.content, dict) and case.name.endswith(library.suffixes)
    ]


def serve(read: Callable[[Case, Path], Any], chosen: list[Case]) -> None:
    """Read the cases one after another, and print the outcome of each."""
    for case in chosen:
        print(json.dumps([case.name, "ended"]), flush=True)
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        with tempfile.TemporaryDirectory() as folder:
            path = case.write(Path(folder))
            try:
                read(case, path)
                found = "read"
            except MemoryError:
                found = "memory"
            # Other libraries raise errors of any kind.
            except Exception as error:
                found = "memory" if "allocate" in str(error) else "refused"
        print(json.dumps([case.name, found]), flush=True)


def limit_memory() -> None:
    """Limit the address space to what the imported libraries have and 2 GB more."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        now = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, resource.RLIM_INFINITY))


def outcomes(name: str, chosen: list[Case]) -> dict[str, str]:
    """Read the cases in child processes; after one that ends early, the next one goes on behind its file."""
    found: dict[str, str] = {}
    while len(found) < len(chosen):
        rest = [case.name for case in chosen if case.name not in found]
        command = [sys.executable, "-m", "tests.hostile.compare", name, *rest]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        try:
            output, _ = process.communicate(timeout=WALL_SECONDS + len(rest))
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        lines = dict(json.loads(line) for line in output.splitlines() if line.startswith("["))
        # A process that ends before its first file would do so again.
        found |= lines or dict.fromkeys(rest, "ended")
    return found


def row(name: str, found: dict[str, str]) -> str:
    """Return the line of the table of a library.

    >>> row("numpy.load", {"a.npy": "refused", "b.npy": "ended"})
    '| numpy.load | 2 | 1 | 0 | 0 | 1 |'
    """
    counts = Counter(found.values())
    return f"| {' | '.join([name, str(len(found)), *(str(counts[each]) for each in OUTCOMES)])} |"


def main() -> None:
    """Print the table: a row for each library, and one for splitembed on the same files."""
    print(f"| library | files | {' | '.join(OUTCOMES)} |\n|---{'|---' * (1 + len(OUTCOMES))}|")
    lists = []
    for library in LIBRARIES:
        chosen = given(library)
        found = outcomes(library.name, chosen)
        print(row(library.name, found), flush=True)
        print(row("splitembed, the same files", outcomes(f"splitembed {library.name}", chosen)), flush=True)
        lists += [f"{library.name}, {name}: {each}" for name, each in found.items() if each in ("ended", "memory")]
    print("\n" + "\n".join(lists))


def child(name: str, names: list[str]) -> None:
    """Read the named cases with one library, or with splitembed."""
    library = next(each for each in LIBRARIES if name.endswith(each.name))
    chosen = [case for case in given(library) if case.name in names]
    is_ours = name != library.name

    def read(case: Case, path: Path) -> Any:
        return case.read(path) if is_ours else library.read(path)

    # Imports, before the limits.
    ready = Case("ready.txt", cases.TEXT)
    with tempfile.TemporaryDirectory() as folder:
        try:
            read(ready, ready.write(Path(folder)))
        # Most libraries refuse a text.
        except Exception as error:
            print(type(error).__name__, file=sys.stderr)
    limit_memory()
    serve(read, chosen)


if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else main()
