"""The files of the embedded sample.

- `glove.3k.50d.txt.gz`: 3,000 rows of GloVe 6B of dim 50 as gzip GloVe text, the most frequent word first: every word
  of the reviews that GloVe has, and the most frequent other words. PDDL 1.0, see `LICENSE-glove.txt`.
- `reviews.tsv`: 400 product-review snippets, half positive and half negative, each with its mean human score from -4
  (extremely negative) to 4 (extremely positive). MIT, see `LICENSE-vader.txt`.

Some words of the reviews are out of vocabulary, as in any real text. `make sample` makes both files.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FOLDER = Path(__file__).parent


def sample_vectors_path() -> Path:
    """Return the path of the sample's pretrained vectors, a gzip GloVe text file of 3,000 rows of 50 float32.

    >>> sample_vectors_path().name
    'glove.3k.50d.txt.gz'

    Source: Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation", EMNLP 2014.
    """
    return _FOLDER / "glove.3k.50d.txt.gz"


def sample_reviews_path() -> Path:
    """Return the path of the sample's reviews, a tab-separated file of id, score and text with a header line.

    >>> sample_reviews_path().name
    'reviews.tsv'

    Source: Hutto, Gilbert, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text",
    ICWSM 2014.
    """
    return _FOLDER / "reviews.tsv"


def sample_reviews() -> tuple[list[str], NDArray[np.float32]]:
    """Return the sample's product-review snippets and their scores.

    >>> texts, scores = sample_reviews()
    >>> len(texts), scores.shape, scores.dtype.name, int((scores > 0).sum())
    (400, (400,), 'float32', 200)

    Returns:
        texts: 400 lower-case strings with punctuation; scores: `(400,)` float32 from -4 to 4, none between -1 and 1.
    """
    lines = sample_reviews_path().read_text(encoding="ascii").rstrip("\n").split("\n")[1:]
    rows = [line.split("\t") for line in lines]
    return [text for _, _, text in rows], np.array([score for _, score, _ in rows], dtype=np.float32)
