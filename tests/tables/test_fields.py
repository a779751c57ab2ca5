"""The errors for a file that is damaged or was changed."""

from splitembed.tables.fields import changed, damaged


def test_the_errors_name_the_file_and_what_to_do():
    assert str(damaged("a.h5", "no rows.")) == "a.h5 is damaged: no rows. Write it again, or use another copy."
    assert str(changed("a.h5", "no rows.")).startswith("a.h5 is not as splitembed wrote it: no rows. Use another copy.")
