"""Creation of the embedded sample in splitembed/data from real GloVe rows and product reviews.

`make sample` runs this module. From the same archives it writes the same contents.
"""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.corpora import Snippet, glove_50d, read_snippets, words_of, write_text_rows
from splitembed.data.sample import sample_reviews_path, sample_vectors_path

NUM_REVIEWS = 400
NUM_ROWS = 3_000
# Snippets with a clear score, long enough to mean something and short enough to read.
MIN_SCORE = 1.0
WORDS_PER_REVIEW = (6, 24)

REVIEWS = "amazonReviewSnippets"


def choose_reviews(reviews: list[Snippet], count: int = NUM_REVIEWS) -> list[Snippet]:
    """Choose equal numbers of clearly positive and clearly negative snippets, evenly spaced, in the order of the file.

    >>> good = [(f"1_{i}", "2.0", "a really very good little picture") for i in range(3)]
    >>> bad = [("2_1", "-2.0", "a really very bad little picture"), ("2_2", "-0.1", "a picture")]
    >>> [name for name, _, _ in choose_reviews(good + bad, count=2)]
    ['1_0', '2_1']
    """
    shortest, longest = WORDS_PER_REVIEW
    fitting = [index for index, (_, _, text) in enumerate(reviews) if shortest <= len(words_of(text)) <= longest]
    chosen: list[int] = []
    for sign in (1, -1):
        clear = [index for index in fitting if sign * float(reviews[index][1]) >= MIN_SCORE]
        chosen += [clear[i * len(clear) // (count // 2)] for i in range(count // 2)]
    return [reviews[index] for index in sorted(chosen)]


def choose_rows(words: list[str], texts: list[str], count: int = NUM_ROWS) -> NDArray[np.intp]:
    """Choose the rows of words in the texts, then of the most frequent other words, in the order of the table.

    >>> choose_rows(["the", "of", "and", "lens"], ["the lens!"], count=3).tolist()
    [0, 1, 3]

    Args:
        words: the table's words, most frequent first.
        texts: the reviews of the sample.
        count: the number of rows.

    Returns:
        `(count,)` row numbers, ascending.
    """
    used = {word for text in texts for word in words_of(text)}
    is_used = np.fromiter((word in used for word in words), bool, len(words))
    first = np.argsort(~is_used, kind="stable")[:count]
    return np.sort(first)


def write_sample(vectors_path: Path, reviews_path: Path) -> None:
    """Write both files of the sample: gzip GloVe text, and tab-separated id, score and text below a header line."""
    reviews = choose_reviews(read_snippets(REVIEWS))
    words, vectors = glove_50d()
    rows = choose_rows(words, [text for _, _, text in reviews])
    lines = ["id\tscore\ttext", *("\t".join(review) for review in reviews), ""]
    reviews_path.write_bytes("\n".join(lines).encode("ascii"))
    # Without name and time in the header, the same rows make the same file.
    with vectors_path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        write_text_rows(file, [words[row] for row in rows], vectors[rows])


if __name__ == "__main__":
    write_sample(sample_vectors_path(), sample_reviews_path())
    for written in (sample_vectors_path(), sample_reviews_path()):
        print(f"{written}: {written.stat().st_size:,} bytes")
