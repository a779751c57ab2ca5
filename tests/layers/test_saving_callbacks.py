"""Models, weights and checkpoints saved during training: each continues training exactly."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import splitembed as se
from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.layers.spec import LIVE
from tests.helpers.bits import same_bits
from tests.helpers.models import IDS, TARGETS, embeddings_in, functional, make_split

EPOCHS = 4
OPTIMIZERS = {"Adam": lambda: keras.optimizers.Adam(0.1), "LazyAdam": lambda: LazyAdam(0.1)}


def compiled(optimizer: str, **options) -> keras.Model:
    model = functional(SplitEmbedding(make_split(), mask_zero=True, name="tokens", **options))
    model.compile(OPTIMIZERS[optimizer](), "mse")
    return model


def fit(model: keras.Model, *callbacks: keras.callbacks.Callback, epochs: int = EPOCHS, start: int = 0) -> list[float]:
    options = {"batch_size": 1, "shuffle": False, "verbose": 0, "callbacks": list(callbacks)}
    return model.fit(IDS, TARGETS, epochs=epochs, initial_epoch=start, **options).history["loss"]


def state(model: keras.Model) -> list[np.ndarray]:
    return [np.asarray(variable) for variable in (*model.weights, *model.optimizer.variables)]


def assert_same_state(model: keras.Model, expected: keras.Model) -> None:
    for found, wanted in zip(state(model), state(expected), strict=True):
        same_bits(found, wanted)


class InterruptionError(Exception):
    """An interruption of training."""


class Interrupt(keras.callbacks.Callback):
    """Interrupts training in the middle of an epoch."""

    def __init__(self, epoch: int, batch: int) -> None:
        super().__init__()
        self.epoch, self.batch, self.now = epoch, batch, -1

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_end(self, batch, logs=None):
        if (self.now, batch) == (self.epoch, self.batch):
            raise InterruptionError


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_interrupted_training_continues_from_its_backup(optimizer, tmp_path):
    uninterrupted = compiled(optimizer)
    losses = fit(uninterrupted)
    with pytest.raises(InterruptionError):
        fit(compiled(optimizer), keras.callbacks.BackupAndRestore(tmp_path / "backup"), Interrupt(2, 1))
    resumed = compiled(optimizer)
    assert fit(resumed, keras.callbacks.BackupAndRestore(tmp_path / "backup")) == losses[2:]
    assert_same_state(resumed, uninterrupted)


def test_a_backup_of_another_split_is_refused(tmp_path):
    with pytest.raises(InterruptionError):
        fit(compiled("LazyAdam"), keras.callbacks.BackupAndRestore(tmp_path / "backup"), Interrupt(1, 0))
    other = functional(SplitEmbedding(make_split(seed=1), mask_zero=True, name="tokens"))
    other.compile(LazyAdam(0.1), "mse")
    with pytest.raises(ValueError, match="layer 'tokens' belongs to another split: its frozen fingerprint is"):
        fit(other, keras.callbacks.BackupAndRestore(tmp_path / "backup"))


def test_training_continues_from_the_model_of_an_epoch(tmp_path):
    model = compiled("Adam")
    fit(model, keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{epoch + 1}.keras" for epoch in range(EPOCHS)]
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "2.keras")
    fit(again, start=2)
    assert_same_state(again, model)
    same_bits(embeddings_in(again)[0].to_split().combine(), embeddings_in(model)[0].to_split().combine())


def test_training_continues_from_the_weights_of_an_epoch(tmp_path):
    model = compiled("LazyAdam")
    fit(model, keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.weights.h5", save_weights_only=True))
    again = compiled("LazyAdam")
    # Keras loads no state into an optimizer without variables
    again.optimizer.build(again.trainable_variables)
    again.load_weights(tmp_path / "2.weights.h5")
    fit(again, start=2)
    assert_same_state(again, model)


def test_the_model_of_the_best_epoch_is_saved(tmp_path):
    model = compiled("LazyAdam")
    best = keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="loss", mode="max", save_best_only=True)
    losses = fit(model, best)
    # the loss falls, so the highest is that of the first epoch
    assert np.argmax(losses) == 0
    expected = compiled("LazyAdam")
    fit(expected, epochs=1)
    LIVE.clear()
    assert_same_state(keras.models.load_model(tmp_path / "best.keras"), expected)


def test_models_saved_by_reference_are_small(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITEMBED_PATH", str(tmp_path / "tables"))
    matrix = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
    SplitTable.from_matrix(matrix, range(10)).save(tmp_path / "tables")
    layer = SplitEmbedding(SplitTable.open(tmp_path / "tables"), save_by_reference=True)
    model = functional(layer)
    model.compile(LazyAdam(0.1), "mse")
    fit(model, keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras"), epochs=2)
    for epoch in (1, 2):
        # 4 bytes of remap per token, without the 4 MB of rows
        assert (tmp_path / f"{epoch}.keras").stat().st_size < 200_000
    LIVE.clear()
    assert_same_state(keras.models.load_model(tmp_path / "2.keras"), model)


def test_training_continues_from_a_checkpoint(tmp_path):
    model = compiled("LazyAdam")
    fit(model, epochs=2)
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "checkpoint")
    fit(model, start=2)
    again = compiled("LazyAdam")
    again.optimizer.build(again.trainable_variables)
    tf.train.Checkpoint(model=again, optimizer=again.optimizer).restore(path).assert_consumed()
    fit(again, start=2)
    assert_same_state(again, model)


def test_a_checkpoint_manager_restores_the_last_checkpoint(tmp_path):
    model = compiled("LazyAdam")
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), tmp_path, max_to_keep=2)
    for start in range(3):
        fit(model, start=start, epochs=start + 1)
        manager.save()
    again = compiled("LazyAdam")
    tf.train.Checkpoint(model=again).restore(manager.latest_checkpoint).expect_partial()
    for found, expected in zip(again.weights, model.weights, strict=True):
        same_bits(found, expected)
    assert len(manager.checkpoints) == 2


def test_trainable_tables_saved_between_epochs_open_as_a_split(tmp_path):
    """A callback calls `save_trainable`; the frozen table is written once."""
    model = compiled("LazyAdam")
    (layer,) = embeddings_in(model)
    layer.to_split().save(tmp_path)
    save = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: se.save_trainable(tmp_path / f"{epoch}.h5", layer)
    )
    fit(model, save)
    last = SplitTable.open(tmp_path / f"{EPOCHS - 1}.h5", verify=True)
    same_bits(last.combine(), layer.to_split().combine())
    assert (SplitTable.open(tmp_path / "0.h5").trainable != last.trainable).any()
