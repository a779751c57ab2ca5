"""Who traces: whether what is being traced is to become an ONNX or a TFLite model, which have no dynamic lookup."""

import sys
from types import FrameType

# Keras's exporters, and the converters' own doors: each calls the model itself, to trace what it then converts.
_EXPORTERS = {"keras.src.export.onnx", "keras.src.export.litert", "tensorflow.lite.python.lite", "tf2onnx.convert"}


def exports_fixed_shapes() -> bool:
    """Whether this call comes from an exporter to a format that needs the static form; a SavedModel does not."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") not in _EXPORTERS:
        frame = frame.f_back
    return frame is not None
