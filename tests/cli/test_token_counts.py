"""Token counts of running text and of lines of a token and its count."""

import io

import click
import pytest

from splitembed.cli.token_counts import count_tokens


@pytest.mark.parametrize(
    "text", ["the of the\nin 1984\n", "the\t2\nof 1\nin 1\n1984 1\n", "the 1\r\nthe 1\nof 1\nin 1\n1984 1"]
)
def test_running_text_and_counts_are_distinguished(tmp_path, text):
    (tmp_path / "counts.txt").write_bytes(text.encode())
    assert count_tokens(tmp_path / "counts.txt") == {"the": 2, "of": 1, "in": 1, "1984": 1}


def test_without_a_file_there_are_no_counts(tmp_path):
    assert count_tokens(None) is None


def test_a_file_without_tokens_is_refused(tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(click.ClickException, match="empty.txt: found no tokens, expected running text"):
        count_tokens(tmp_path / "empty.txt")


def test_standard_input_is_counted(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the of the\n")))
    assert count_tokens("-") == {"the": 2, "of": 1}


def test_one_line_without_a_count_among_the_first_makes_it_running_text(tmp_path):
    (tmp_path / "text.txt").write_text("the 2\nthe\n")
    assert count_tokens(tmp_path / "text.txt") == {"the": 2, "2": 1}


def test_a_later_line_without_a_count_is_refused(tmp_path):
    (tmp_path / "broken.txt").write_text("".join(f"w{number} 1\n" for number in range(200)) + "the\n")
    with pytest.raises(
        click.ClickException, match="broken.txt, line 201: found 'the.n', expected a token and its count"
    ):
        count_tokens(tmp_path / "broken.txt")


def test_bytes_that_are_not_utf8_are_tokens(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 caf\xe9\n")
    assert count_tokens(tmp_path / "latin.txt") == {"caf\udce9": 2}
