"""The main job on the embedded sample, offline: real vectors and reviews in, two tables and a trained model out."""

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


def run_demo(directory: str | os.PathLike[str], say: Callable[[str], Any] = print) -> None:
    """Trains a review classifier on a split, saves its tables, opens them again, and says what it did.

    Args:
        directory: where frozen.h5 and trainable.h5 are left.
        say: called with each line of the account.
    """
    import keras

    from splitembed.layers.embedding import SplitEmbedding

    keras.utils.set_random_seed(0)
    texts, scores = sample_reviews()
    order = np.random.default_rng(0).permutation(len(texts))
    test, train = order[:_NUM_TEST], order[_NUM_TEST:]
    labels = (scores > 0).astype(np.float32)

    vectorize = keras.layers.TextVectorization()
    vectorize.adapt([texts[place] for place in train])
    ids = vectorize(texts).numpy()
    split = build_split(vectorize, sample_vectors_path(), counts=np.bincount(ids[train].ravel()), seed=0)
    say(f"{len(train)} product reviews to learn from, {len(test)} to test on; GloVe vectors of {split.dim} numbers.")
    say(f"{split.coverage}")
    say(f"{split}")

    def classifier(split: SplitTable) -> tuple[Any, SplitEmbedding]:
        layer = SplitEmbedding(split, mask_zero=True)
        tokens = keras.Input((None,), dtype="int32")
        pooled = keras.layers.GlobalAveragePooling1D()(layer(tokens))
        return keras.Model(tokens, keras.layers.Dense(1, activation="sigmoid")(pooled)), layer

    model, layer = classifier(split)
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(ids[train], labels[train], epochs=_EPOCHS, verbose=0)
    accuracy = model.evaluate(ids[test], labels[test], verbose=0)[1]
    trained = layer.to_split()
    say(f"Trained {split.num_trainable:,} of {split.num_tokens:,} rows; accuracy on unseen reviews {accuracy:.0%}.")
    moved = trained.frozen.tobytes() != split.frozen.tobytes()
    say(f"Frozen rows {'MOVED' if moved else 'are the same to the bit'} after training.")

    trained.save(directory)
    for name in ("frozen.h5", "trainable.h5"):
        path = Path(directory) / name
        say(f"Saved {path} ({path.stat().st_size / 1e3:,.0f} kB).")
    rebuilt, _ = classifier(SplitTable.open(directory))
    rebuilt.layers[-1].set_weights(model.layers[-1].get_weights())
    equal = np.array_equal(rebuilt.predict(ids[test], verbose=0), model.predict(ids[test], verbose=0))
    say(f"Opened them again: predictions {'equal to the bit' if equal else 'DIFFER'}.")
    if moved or not equal:
        raise AssertionError("The demo's tables did not come back as they were: please report this.")
