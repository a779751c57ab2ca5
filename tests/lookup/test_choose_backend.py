"""The implementation is the one for the backend that Keras runs on, and has every method of the interface."""

import keras

from splitembed.lookup.backend import Backend
from splitembed.lookup.backend_keras import KerasBackend
from splitembed.lookup.backend_tensorflow import TensorFlowBackend
from splitembed.lookup.choose_backend import choose_backend


def test_the_choice_follows_keras():
    expected = TensorFlowBackend if keras.backend.backend() == "tensorflow" else KerasBackend
    assert type(choose_backend()) is expected and choose_backend() is choose_backend()


def test_both_implementations_have_the_methods_of_the_interface_and_no_others():
    methods = {name for name in vars(Backend) if not name.startswith("_")}
    for kind in (TensorFlowBackend, KerasBackend):
        assert {name for name in vars(kind) if not name.startswith("_")} == methods
