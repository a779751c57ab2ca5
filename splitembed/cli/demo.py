"""The demo: a review classifier on the embedded sample, offline."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from splitembed.data import sample_reviews, sample_vectors_path
from splitembed.split.build import build_split
from splitembed.split.table import SplitTable

_NUM_TEST = 100
_EPOCHS = 30


def run_demo(directory: str | os.PathLike[str], echo: Callable[[str], Any] = print) -> None:
    """Train a review classifier on a split, save its tables, reopen them and compare.

    Args:
        directory: where to write frozen.h5 and trainable.h5.
        echo: a function that prints a line of text.

    Raises:
        AssertionError: training changed a frozen row, or the reopened tables predict something else.
    """
    import keras

    keras.utils.set_random_seed(0)
    texts, scores = sample_reviews()
    order = np.random.default_rng(0).permutation(len(texts))
    test, train = order[:_NUM_TEST], order[_NUM_TEST:]
    labels = (scores > 0).astype(np.float32)

    vectorize = keras.layers.TextVectorization()
    vectorize.adapt([texts[review] for review in train])
    ids = vectorize(texts).numpy()
    split = build_split(vectorize, sample_vectors_path(), counts=np.bincount(ids[train].ravel()), seed=0)
    echo(f"{len(train)} product reviews for training, {len(test)} for testing; GloVe vectors of dim {split.dim}.")
    echo(f"{split.coverage}")
    echo(f"{split}")

    model, layer = _classifier(split)
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(ids[train], labels[train], epochs=_EPOCHS, verbose=0)
    accuracy = model.evaluate(ids[test], labels[test], verbose=0)[1]
    trained = layer.to_split()
    echo(f"Trained {split.num_trainable:,} of {split.num_tokens:,} rows; accuracy on unseen reviews {accuracy:.0%}.")
    is_changed = trained.frozen.tobytes() != split.frozen.tobytes()
    echo(f"Frozen rows {'CHANGED' if is_changed else 'are the same to the bit'} after training.")

    trained.save(directory)
    for name in ("frozen.h5", "trainable.h5"):
        path = Path(directory) / name
        echo(f"Saved {path} ({path.stat().st_size / 1e3:,.0f} kB).")
    reopened, _ = _classifier(SplitTable.open(directory))
    reopened.layers[-1].set_weights(model.layers[-1].get_weights())
    is_equal = np.array_equal(reopened.predict(ids[test], verbose=0), model.predict(ids[test], verbose=0))
    echo(f"Reopened them: predictions {'are equal to the bit' if is_equal else 'DIFFER'}.")
    if is_changed or not is_equal:
        raise AssertionError("The demo's tables changed in training or saving. Please report this.")


def _classifier(split: SplitTable) -> tuple[Any, Any]:
    """Return a model of reviews and its split embedding."""
    import keras

    from splitembed.layers.embedding import SplitEmbedding

    layer = SplitEmbedding(split, mask_zero=True)
    ids = keras.Input((None,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(layer(ids))
    return keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(pooled)), layer
