"""Mutate files of each format, and read them: anything but a documented error, or much time, is a find.

Run as `python -m tests.hostile.fuzz [SECONDS [SEED]]`. It starts from valid files and from the crafted cases, and
changes bytes, lengths and numbers at random. It knows the formats by these files alone, and takes no measure of the
code that a file reaches. A reader that crashes ends the process; the last file is then left in the folder.
"""

import hashlib
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.helpers.table_heads import START
from tests.hostile import cases
from tests.hostile.cases import Case
from tests.hostile.measure import cpu_seconds, outcome

CPU_SECONDS = 5
# The most changes of one file.
MOST_CHANGES = 4
NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**62, 2**63 - 1, 2**64 - 1]


def seeds() -> list[Case]:
    """Return valid files, and the crafted ones of moderate size that are read in this process without a pickle."""
    words, matrix = cases.npy_bytes(["the", "of"]), cases.npy_bytes([[1.0, 2.0], [3.0, 4.0]])
    tensor = cases.safetensors_file({"embeddings": cases.tensor([2, 2], 0, 16)})
    valid = [
        Case("valid.txt", cases.TEXT),
        Case("header.txt", b"2 2\n" + cases.TEXT),
        Case("valid.bin", b"2 2\nthe " + bytes(8) + b"of " + bytes(8)),
        Case("fasttext.bin", cases.fasttext_model()),
        Case("valid.npy", matrix, "words"),
        Case("valid.npz", cases.zip_of({"words.npy": words, "matrix.npy": matrix})),
        Case("valid.zip", cases.zip_of({"v.txt": cases.TEXT})),
        Case("valid.safetensors", tensor, "words"),
        Case("valid.json", cases.tokenizer(), "vocabulary"),
        Case("vocabulary.txt", b"a\nb\n", "vocabulary"),
    ]
    in_child = {case.name for case in itertools.chain(cases.hdf5(), cases.tables_as_hdf5(), cases.pickles())}
    crafted = [case for case in cases.all_cases() if case.name not in in_child and not callable(case.content)]
    # Each table as often as three other cases: of their heads, most changes find something.
    return valid + 3 * table_files() + [case for case in crafted if size(case) < 10_000]


def table_files() -> list[Case]:
    """Return valid tables."""
    with tempfile.TemporaryDirectory() as folder:
        frozen, trainable = Path(folder) / "valid-frozen.h5", Path(folder) / "valid-trainable.h5"
        cases.written_table(None)(frozen)
        cases.write_ramps(trainable)
        files = [(frozen, "frozen"), (trainable, "trainable")]
        return [Case(path.name, path.read_bytes(), reader) for path, reader in files]


def size(case: Case) -> int:
    """Return the bytes of a case."""
    content = case.content
    return sum(map(len, content.values())) if isinstance(content, dict) else len(content)  # type: ignore[arg-type]


def mutate(content: bytes, generator: random.Random) -> bytes:
    """Return the bytes after some random changes."""
    changed = bytearray(content)
    for _ in range(generator.randint(1, MOST_CHANGES)):
        generator.choice(CHANGES)(changed, generator)
    return bytes(changed)


def flip(content: bytearray, generator: random.Random) -> None:
    if content:
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)


def put_number(content: bytearray, generator: random.Random) -> None:
    width, start = generator.choice([1, 2, 4, 8]), generator.randint(0, len(content))
    number = generator.choice(NUMBERS) & ((1 << 8 * width) - 1)
    content[start : start + width] = number.to_bytes(width, generator.choice(["little", "big"]))


def put_digits(content: bytearray, generator: random.Random) -> None:
    start = generator.randint(0, len(content))
    content[start : start + 1] = str(generator.choice([-1, *NUMBERS, 10**30, 1e999])).encode()


def cut(content: bytearray, generator: random.Random) -> None:
    del content[generator.randint(0, len(content)) :]


def drop(content: bytearray, generator: random.Random) -> None:
    start = generator.randint(0, len(content))
    del content[start : start + generator.randint(1, 8)]


def repeat(content: bytearray, generator: random.Random) -> None:
    start = generator.randint(0, len(content))
    content[start:start] = content[start : start + generator.randint(1, 64)]


CHANGES: list[Callable[[bytearray, random.Random], None]] = [flip, flip, put_number, put_digits, cut, drop, repeat]


def mutated(case: Case, generator: random.Random) -> Case:
    """Return a case with one changed file."""
    if isinstance(case.content, bytes) and case.reader in ("frozen", "trainable") and generator.random() < 0.7:
        return case._replace(content=with_other_head(case.content, generator))
    if isinstance(case.content, bytes):
        return case._replace(content=mutate(case.content, generator))
    assert isinstance(case.content, dict)
    name = generator.choice(sorted(case.content))
    return case._replace(content={**case.content, name: mutate(case.content[name], generator)})


def with_other_head(content: bytes, generator: random.Random) -> bytes:
    """Return a table with changes in the text of its head and a checksum that fits it."""
    length = int.from_bytes(content[20:24], "little")
    if length > len(content):
        return mutate(content, generator)
    text = mutate(content[START : START + length], generator)
    start = content[:20] + len(text).to_bytes(4, "little")
    block = start + hashlib.sha256(start + text).digest() + text
    return block + content[max(len(block), START + length) :]


def run(folder: Path, seconds: float, seed: int) -> dict[str, str]:
    """Read mutated files for a time.

    Returns:
        The finds: the path of each kept file, and what was wrong.
    """
    generator, given, finds = random.Random(seed), seeds(), {}
    end, done = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        case = mutated(generator.choice(given), generator)
        own = folder / str(done)
        own.mkdir()
        path, start = case.write(own), cpu_seconds()
        wrong, used = outcome(case, path).get("wrong", "read as"), cpu_seconds() - start
        done += 1
        # A changed file may still be valid.
        if wrong.startswith("read as") and used <= CPU_SECONDS:
            remove(own)
        else:
            finds[str(path)] = f"{wrong} in {used:.1f} s"
    print(f"{done:,} files read in {seconds:.0f} s, {len(finds)} finds", file=sys.stderr)
    return finds


def remove(folder: Path) -> None:
    """Remove a folder that holds files, and perhaps one folder of files."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    arguments = [float(argument) for argument in sys.argv[1:]] + [60, 0][len(sys.argv) - 1 :]
    found = run(Path(tempfile.mkdtemp(prefix="fuzz-")), arguments[0], int(arguments[1]))
    print(json.dumps(found, indent=2))
    sys.exit(bool(found))
