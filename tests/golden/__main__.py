"""`make golden`: write the golden files of the present format version."""

from tests import golden
from tests.golden import keras_model

golden.write_all()
keras_model.write_model()
