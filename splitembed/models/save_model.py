"""Saving a whole model so that a crash leaves the old file or the new one."""

import os
from typing import Any

from splitembed.errors import SplitError
from splitembed.tables.atomic_files import replacing

_SUFFIX = ".keras"


def save_model(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a model as `model.save(path)` does, but beside the file first, and rename it once it is on the disk.

    Keras writes a `.keras` file in place: a process that is killed while it saves over an older file, as
    `ModelCheckpoint` does after each epoch, mostly leaves one that cannot be loaded. In a callback:

        keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: se.save_model(model, "model.keras"))

    >>> import tempfile, keras
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model.keras")
    ...     os.listdir(folder)
    ['model.keras']

    Args:
        model: any Keras model.
        path: the file to make or replace; its name ends in `.keras`.
        **options: of `model.save`, such as `include_optimizer=False`.

    Raises:
        SplitError: another name.
        OSError: the folder cannot be written, or the disk is full; an older file is still there.
    """
    if not os.fspath(path).endswith(_SUFFIX):
        raise SplitError(f"`path` must end in {_SUFFIX}. Received: {os.fspath(path)!r}.")
    with replacing(path, _SUFFIX) as temporary:
        model.save(temporary, **options)
