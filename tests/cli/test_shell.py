"""Messages of the library in the words of the command line."""

import pytest

from splitembed.cli.commands import main
from splitembed.cli.shell import in_shell_words


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        (
            "build",
            "`trainable_tokens` and `min_count` need `counts`; `fallbacks` and `other` do not.",
            "--train and --min-count need --counts; --fallback and `other` do not.",
        ),
        (
            "export",
            "Pass skip_unwritable=True to leave such words out.",
            "Pass --skip-unwritable to leave such words out.",
        ),
        (
            "coverage",
            "found rows of dim 2; expected dim=3. Pass dim=2.",
            "found rows of dim 2; expected --dim 3. Pass --dim 2.",
        ),
        ("coverage", "because of member='a b', format=\"text\".", "because of --member a b, --format text."),
        ("convert", "Pass datasets=('words', 'rows').", "Pass --dataset words --dataset rows."),
        ("build", "read_vocabulary(path, keep_lines=True) reads it.", "--keep-lines reads it."),
        (
            "build",
            "`dtype` must be float16, because of `vocabulary`.",
            "--frozen-dtype must be float16, because of VOCABULARY.",
        ),
        (
            "build",
            "`source` must be a path; spaCy's `vectors` are read.",
            "VECTORS must be a path; spaCy's `vectors` are read.",
        ),
        ("convert", "Pass (words, matrix).", "Pass the matrix with --words FILE."),
        ("inspect", "Two\nlines, datasets=None.", "Two lines, datasets=None."),
    ],
)
def test_python_becomes_what_is_typed(command, message, expected):
    assert in_shell_words(message, main.commands[command]) == expected
