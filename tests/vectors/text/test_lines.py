"""Reading some rows of many: memory follows the vocabulary, and every wanted line is found."""

import tracemalloc

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from tests.helpers.reference import table_of

NUM_ROWS, DIM = 300_000, 50


@pytest.fixture(scope="module")
def large_file(tmp_path_factory):
    """300,000 x 50 numbers of GloVe text, 120 MB: few distinct rows, so that it is written in a second."""
    path = tmp_path_factory.mktemp("large") / "large.txt"
    rows = np.random.default_rng(0).normal(0, 0.4, (100, DIM))
    ends = ["".join(f" {value:.5f}" for value in row) + "\n" for row in rows]
    with path.open("w") as file:
        for start in range(0, NUM_ROWS, 10_000):
            file.write("".join(f"word{number}{ends[number % 100]}" for number in range(start, start + 10_000)))
    yield path, rows
    path.unlink()


def test_M1_peak_memory_follows_the_vocabulary(large_file):
    path, rows = large_file
    numbers = range(7, NUM_ROWS, NUM_ROWS // 100)
    tracemalloc.start()
    vectors = read_vectors(path, [f"word{number}" for number in numbers], progress=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    expected = np.array([[float(f"{value:.5f}") for value in rows[number % 100]] for number in numbers], np.float32)
    assert vectors.words == [f"word{number}" for number in numbers]
    assert vectors.vectors.tobytes() == expected.tobytes()
    assert path.stat().st_size > 110_000_000
    # In bytes: the head, a few chunks and their line ends; the rows have 20,000 bytes.
    assert peak < 8_000_000


FIRST_FIELDS = [
    "a", "ab", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgh!", "a" * 300, "é", "\u3000", "\0", "\x1f", "!",
    "a\r", "\r", "\ufffd",
]  # fmt: skip


@pytest.mark.parametrize("wanted", [*FIRST_FIELDS, "", "abcdefgh x", "x y"])
def test_exactly_the_wanted_lines_are_found(write, wanted):
    words = [*FIRST_FIELDS, "", "abcdefgh x", "x y", "x z", "b", "abcdefghj"]
    content = "".join(f"{word} {number} 0.5\n" for number, word in enumerate(words))
    for separator in (" ", "\t"):
        path = write(content.replace(" 0.5", separator + "0.5").encode())
        assert table_of(read_vectors(path, [wanted], dim=2)) == {wanted: [words.index(wanted), 0.5]}


@pytest.mark.parametrize("dim", [2, 256, 300])
@pytest.mark.parametrize("end", [b"\n", b" \n", b"\r\n", b"\t\r\n"])
def test_a_word_merged_with_its_number_is_found_among_other_lines(write, dim, end):
    lines = [b"w%d" % number + b" 0.5" * dim for number in range(2000)]
    # A word with a space hides it in the number of separators.
    lines[1000:1002] = [b"New York" + b" 0.5" * dim, b"w1001" + b"0.5" + b" 0.5" * (dim - 1)]
    with pytest.raises(VectorFormatError, match=f"line 1002: found {dim - 1} numbers in b'w10010.5 0.5"):
        read_vectors(write(end.join(lines) + end), ["w3"], dim=dim)
    del lines[1001]
    assert read_vectors(write(end.join(lines) + end), ["w3"], dim=dim).words == ["w3"]


def test_words_that_cannot_be_encoded_match_nothing(write):
    path = write(b"the 1 2\nof 3 4\n")
    assert read_vectors(path, ["\ud800", "of", "t\nhe", "\ud83d\ude00"]).words == ["of"]


@pytest.mark.parametrize("num_wanted", [0, 1, 1000, 30_000])
def test_any_number_of_wanted_words(write, num_wanted):
    path = write(b"".join(b"w%d 0.5 %d\n" % (number, number) for number in range(20_000)))
    wanted = [f"w{number}" for number in range(0, 3 * num_wanted, 3)]
    assert read_vectors(path, wanted).words == [word for word in wanted if int(word[1:]) < 20_000]
