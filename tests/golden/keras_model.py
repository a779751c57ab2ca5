"""A small trained model with every registered layer of the package, and the numbers that it predicts."""

from pathlib import Path

import keras
import numpy as np

import splitembed as se
from splitembed.gradients import GradientGate, PartialEmbedding

FOLDER = Path(__file__).parent
MODEL, PREDICTIONS = FOLDER / "model-v1.keras", FOLDER / "model-v1.json"
IDS, MASK = np.array([[1, 2, 3], [4, 0, 1]]), np.array([[1.0], [0.0]])


def make_model() -> keras.Model:
    """Build a model of ids and a mask of samples, compiled with LazyAdam."""
    matrices = [np.random.default_rng(seed).normal(size=(5, 2)).astype(np.float32) for seed in range(3)]
    matrices[0][0] = 0
    words = ["", "[UNK]", "the", "cat", "sat"]
    split = se.SplitTable.from_matrix(matrices[0], [1, 3], vocabulary=words, padding=0)
    reversible = se.SplitReversibleEmbedding(se.SplitTable.from_matrix(matrices[1], [2, 4]), name="reversible")
    ids, mask = keras.Input((None,), dtype="int32", name="ids"), keras.Input((1,), name="mask")
    gated = GradientGate(name="gate")([se.SplitEmbedding(split, name="split")(ids), mask])
    partial = PartialEmbedding(5, [matrices[2]], [0, 1], name="partial")(ids)
    states = keras.layers.Add()([gated, partial, reversible(ids)])
    model = keras.Model([ids, mask], reversible(states, reverse=True))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(se.LazyAdam(0.1), loss)
    return model


def write_model(folder: Path = FOLDER) -> None:
    """Train one step, and write the model and its predictions."""
    keras.utils.set_random_seed(0)
    model = make_model()
    model.train_on_batch([IDS, MASK], IDS)
    model.save(folder / MODEL.name)
    predictions = model.predict([IDS, MASK], verbose=0)
    (folder / PREDICTIONS.name).write_text(f"{predictions.round(6).tolist()}\n", encoding="utf-8")
