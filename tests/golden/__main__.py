"""`make golden`: write the golden files of the present format version."""

from tests import golden

golden.write_all()
