"""Every row of CASES.md's "Reading vector files", in every format that it can occur in.

The rows of a case are written in each format, and must be read back equal from all of them.
"""

import tracemalloc
import warnings

import numpy as np
import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import read_vectors
from tests.helpers.packings import PACKERS, Delivery, zipped
from tests.helpers.reference import table_of

TEXT = ("glove", "word2vec", "fasttext-vec")
BINARY = tuple(f"{dtype}{end}" for dtype in ("float32", "float16", "float64") for end in ("", "-lf"))
FORMATS = TEXT + BINARY
HEADERS = FORMATS[1:]

GOOD = {f"word{number}": [0.25, number] for number in range(10)}
ROWS = {"the": [0.1, 0.2], "of": [0.3, 0.4], "to": [-0.5, 1.25]}


def encode(format, rows, num_rows=None, dim=2):  # noqa: A002
    """Return a dict or a list of pairs as a file. Values that are exact in float16 are the same in all formats."""
    pairs = list(rows.items()) if isinstance(rows, dict) else list(rows)
    pairs = [(word if isinstance(word, bytes) else word.encode(), values) for word, values in pairs]
    header = b"%d %d\n" % (len(pairs) if num_rows is None else num_rows, dim)
    if format in TEXT:
        end = b" \n" if format == "fasttext-vec" else b"\n"
        lines = [b" ".join((word, *(repr(float(value)).encode() for value in values))) + end for word, values in pairs]
        return b"".join(lines if format == "glove" else [header, *lines])
    dtype, _, end = format.partition("-")
    end = b"\n" if end else b""
    with np.errstate(over="ignore"):
        rows = [np.array(values, dtype).astype("<" + np.dtype(dtype).str[1:]).tobytes() for _, values in pairs]
    return header + b"".join(word + b" " + row + end for (word, _), row in zip(pairs, rows, strict=True))


def stored(format, rows):  # noqa: A002
    """Return the expected rows: the values, rounded to the dtype of the format and then to float32."""
    dtype = "float64" if format in TEXT else format.partition("-")[0]
    pairs = rows.items() if isinstance(rows, dict) else rows
    return {word: np.array(values, dtype).astype(np.float32).tolist() for word, values in pairs}


def check(deliver, content, expected, **options):
    """Assert the rows of a reading of all words, and of a reading for a vocabulary."""
    assert table_of(read_vectors(deliver(content), **options)) == expected
    wanted = [*list(expected)[1:], "unknown word"]
    assert table_of(read_vectors(deliver(content), wanted, **options)) == dict(list(expected.items())[1:])


@pytest.mark.parametrize("format", ["word2vec", "float32"])
def test_every_packing_gives_the_same_rows(packed, format):  # noqa: A002
    content, texts = suspicious(format)
    check(packed, encode(format, ROWS), stored(format, ROWS), strict=True)
    with pytest.warns(VectorFileWarning) as caught:
        vectors = read_vectors(packed(content), non_finite="zero")
    assert all(each in str(caught[0].message) for each in texts)
    assert table_of(vectors) == {"the": [1, 0], "of": [3, 4], "\udcff": [7, 0], **GOOD}


WORDS = {
    "T1": [".\xa0.\xa0.", "a\u2003b", "\u200b", "\x85"],
    "T3": ["\u2028", "a\rb", "a\u2029", "\x0b", "\x0c", "\ra"],
    "T5": ["\u3000", "\xa0x", "x\xa0", "\ufeffx", '"', "#"],
    "N5": ["null", "NA", '"', "nan", "-inf", "1_0", "1", "2"],
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", WORDS)
def test_words_are_kept_as_they_are(deliver, case, format):  # noqa: A002
    rows = {**ROWS, **{word: [number, 0.5] for number, word in enumerate(WORDS[case], 1)}, "end": [0.25, 3]}
    check(deliver, encode(format, rows), stored(format, rows))


@pytest.mark.parametrize("format", TEXT)
def test_T2_words_with_spaces(deliver, format):  # noqa: A002
    rows = {**ROWS, "at me@x.org": [0.5, 0.6], "New  York": [1, 2], "in 1984": [3, 4], "at": [5, 6]}
    check(deliver, encode(format, rows), stored(format, rows))


@pytest.mark.parametrize("format", TEXT)
@pytest.mark.parametrize("change", [(b" ", b"\t"), (b"\n", b" \n"), (b"\n", b"\t\r\n")])
def test_T7_separators(deliver, format, change):  # noqa: A002
    check(deliver, encode(format, ROWS).replace(*change), stored(format, ROWS))


@pytest.mark.parametrize("format", FORMATS)
def test_H1_B1_the_same_rows_from_every_format(deliver, format):  # noqa: A002
    check(deliver, encode(format, ROWS), stored(format, ROWS), strict=True)
    exact = {"the": [1, 2], "of": [3, 4]}
    assert table_of(read_vectors(deliver(encode(format, exact)), dim=2)) == exact


@pytest.mark.parametrize("format", HEADERS)
@pytest.mark.parametrize("num_rows", [0, 2, 4, 10**15])
def test_H2_a_wrong_header_count_gives_a_warning(deliver, format, num_rows):  # noqa: A002
    content = encode(format, ROWS, num_rows)
    message = rf"header says {num_rows} rows, the file holds 3 \(first: line 1\)\. read_vectors"
    with pytest.warns(VectorFileWarning, match=message) as caught:
        check(deliver, content, stored(format, ROWS))
    # One for each reading.
    assert len(caught) == 2
    for vocabulary in (None, ["of"]):
        with pytest.raises(VectorFormatError, match=f"line 1: found header says {num_rows} rows"):
            read_vectors(deliver(content), vocabulary, strict=True)


@pytest.mark.parametrize("format", HEADERS)
@pytest.mark.parametrize("dim", [10**5, 10**9, 10**17])
def test_a_header_is_never_trusted_with_an_allocation(deliver, format, dim):  # noqa: A002
    content = encode(format, ROWS, 10**15, dim)
    tracemalloc.start()
    with pytest.raises(VectorFormatError, match=r"header .* dim|cut short"):
        read_vectors(deliver(content))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Bytes of buffers.
    assert peak < 12_000_000


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("vocabulary", [None, ["of"]])
def test_H5_another_dim_is_refused(deliver, format, vocabulary):  # noqa: A002
    with pytest.raises(VectorFormatError, match=": found rows of dim 2; expected dim=3"):
        read_vectors(deliver(encode(format, ROWS)), vocabulary, dim=3)


def test_N1_exponents(deliver):
    check(deliver, b"of 1 2\nthe 1e-05 -3.2E+1\n", {"of": [1, 2], "the": [float(np.float32(1e-05)), -32]})


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_N3_values_that_are_not_finite(deliver, format, value):  # noqa: A002
    rows = {**ROWS, "bad": [5, value], "at": [7, 8]}
    content = encode(format, rows)
    good = {word: row for word, row in stored(format, rows).items() if word != "bad"}
    assert table_of(read_vectors(deliver(content), list(good))) == good
    with pytest.raises(VectorFormatError, match=r"(line|byte) \d+: found \S+ in the row of 'bad'"):
        read_vectors(deliver(content))
    with pytest.warns(VectorFileWarning, match=r"not finite, replaced by 0: 1 \(first: (line|byte) \d+\)"):
        assert table_of(read_vectors(deliver(content), ["bad"], non_finite="zero")) == {"bad": [5, 0]}


@pytest.mark.parametrize("format", FORMATS)
def test_B3_words_that_are_not_utf8(deliver, format):  # noqa: A002
    raw = [b"\xd0\xbf\xd1", b"\xd0\xbf\xd2", *(word.encode() for word in GOOD)]
    rows = [(word.decode("utf-8", "surrogateescape"), [number, 0.5]) for number, word in enumerate(raw, 1)]
    content = encode(format, list(zip(raw, [row for _, row in rows], strict=True)))
    with pytest.warns(VectorFileWarning, match=r"not valid UTF-8, kept with their bytes escaped: \d"):
        check(deliver, content, stored(format, rows))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_X4_byte_order_mark_and_crlf(deliver, format, end):  # noqa: A002
    content = encode(format, ROWS)
    # Of a binary file, only the header is a line.
    content = content.replace(b"\n", end, -1 if format in TEXT else 1)
    check(deliver, b"\xef\xbb\xbf" + content, stored(format, ROWS))


@pytest.mark.parametrize("format", FORMATS)
def test_Y1_the_first_of_two_wins(deliver, format):  # noqa: A002
    content = encode(format, [*ROWS.items(), ("the", [3, 3])])
    for vocabulary in (None, list(ROWS)):
        with pytest.warns(VectorFileWarning) as caught:
            assert table_of(read_vectors(deliver(content), vocabulary)) == stored(format, ROWS)
        assert len(caught) == 1 and ": duplicate words, first row kept: 1 (first: " in str(caught[0].message)
        assert "header" not in str(caught[0].message)


@pytest.mark.parametrize("format", FORMATS)
def test_X1_chosen_by_dim_or_member(tmp_path, monkeypatch, format):  # noqa: A002
    three = {word: [*row, 7] for word, row in ROWS.items()}
    members = {"v.2d.txt": encode(format, ROWS), "v.3d.txt": encode(format, three, dim=3), "__MACOSX/._v": b"\0\5"}
    path = tmp_path / "vectors.zip"
    path.write_bytes(zipped(**members))
    assert (
        table_of(read_vectors(path, dim=2)) == table_of(read_vectors(path, member="v.2d.txt")) == stored(format, ROWS)
    )
    assert table_of(read_vectors(path, dim=3)) == stored(format, three)
    with pytest.raises(VectorFormatError, match=r"member`: 'v\.2d\.txt' \(\d+ bytes, dim 2\); 'v\.3d\.txt'"):
        read_vectors(path)


NUM_ROWS = 100_000


def many_rows(format):  # noqa: A002
    """Return 100,000 rows of dim 50, a hundred of them distinct, and the expected rows of these."""
    values = np.round(np.random.default_rng(0).normal(0, 0.4, (100, 50)), 3).tolist()
    rows = [encode(format, [("@", row)], dim=50).partition(b"@")[2] for row in values]
    header = b"" if format == "glove" else b"%d 50\n" % NUM_ROWS
    content = header + b"".join(b"word%d" % number + rows[number % 100] for number in range(NUM_ROWS))
    return content, [stored(format, {"@": row})["@"] for row in values]


@pytest.mark.parametrize("format", FORMATS)
def test_M1_peak_memory_follows_the_vocabulary(tmp_path, monkeypatch, format):  # noqa: A002
    content, values = many_rows(format)
    numbers = range(7, NUM_ROWS, 991)
    source = Delivery("plain", tmp_path, monkeypatch)(content)
    tracemalloc.start()
    vectors = read_vectors(source, [f"word{number}" for number in numbers])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table_of(vectors) == {f"word{number}": values[number % 100] for number in numbers}
    assert len(content) > 10_000_000 and peak < 8_000_000


# Truncation


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("vocabulary", [None, ["the"]])
def test_a_file_cut_short_at_any_byte_gives_an_error_a_warning_or_whole_rows(tmp_path, monkeypatch, format, vocabulary):  # noqa: A002
    deliver = Delivery("plain", tmp_path, monkeypatch)
    content, whole = encode(format, ROWS), stored(format, ROWS)
    records = [len(encode(format, dict(list(ROWS.items())[:number]), 3)) for number in range(len(ROWS))]
    for num_bytes in range(len(content) - 1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = table_of(read_vectors(deliver(content[:num_bytes]), vocabulary))
            except VectorFormatError:
                continue
        # The end of a row, with or without its LF.
        is_end = num_bytes in records or num_bytes + 1 in records
        if format == "glove" and num_bytes in records:
            # Undetectable: there is no header, and every line is complete.
            assert not caught
        else:
            assert caught, content[:num_bytes]
        if is_end or format in BINARY:
            assert all(whole[word] == row for word, row in found.items())


@pytest.mark.parametrize("format", TEXT)
def test_a_last_line_without_its_end_gives_a_warning(tmp_path, monkeypatch, format):  # noqa: A002
    content = encode(format, ROWS)[: -3 if format == "fasttext-vec" else -2]
    deliver = Delivery("plain", tmp_path, monkeypatch)
    for vocabulary in (None, ["the"]):
        line = 3 + (format != "glove")
        with pytest.warns(VectorFileWarning, match=rf"without its line end, perhaps cut short \(first: line {line}\)"):
            read_vectors(deliver(content), vocabulary)
        with pytest.raises(VectorFormatError, match=rf"line {line}: found a last line without its line end"):
            read_vectors(deliver(content), vocabulary, strict=True)
    # These packings detect missing content.
    for packing in ("gzip", "bzip2", "xz", "Zstandard", "zip"):
        assert len(read_vectors(Delivery(packing, tmp_path, monkeypatch)(content), strict=True)) == 3


@pytest.mark.parametrize("format", ["word2vec", "float32"])
@pytest.mark.parametrize("packing", [*PACKERS][1:])
def test_packed_data_cut_short_at_any_byte_is_refused(tmp_path, monkeypatch, format, packing):  # noqa: A002
    packed = PACKERS[packing](encode(format, ROWS))
    path = tmp_path / "vectors"
    for num_bytes in range(1, len(packed)):
        path.write_bytes(packed[:num_bytes])
        with pytest.raises(VectorFormatError):
            read_vectors(path)


# Warnings


def suspicious(format):  # noqa: A002
    """Return content with every kind of suspicious content twice or more, and the expected text of each warning."""
    pairs = [("the", [1, np.nan]), ("of", [3, 4]), ("the", [5, 6]), (b"\xff", [7, np.inf]), ("of", [8, 9])]
    content = encode(format, [*pairs, *GOOD.items()], 9)
    the = content.index(b"the ")
    positions = [f"byte {position}" for position in (the, content.index(b"the ", the + 1), content.index(b"\xff "))]
    first = 1 if format == "glove" else 2
    if format in TEXT:
        content = content.replace(b"the ", b"\nthe ")
        positions = [f"line {first + 1}", f"line {first + 4}", f"line {first + 5}"]
    texts = [
        f"duplicate words, first row kept: 2 (first: {positions[1]})",
        f"words that are not valid UTF-8, kept with their bytes escaped: 1 (first: {positions[2]})",
        f"values that are not finite, replaced by 0: 2 (first: {positions[0]})",
    ]
    if format in TEXT:
        texts.append(f"blank lines, skipped: 2 (first: line {first})")
    if format != "glove":
        texts.append("header says 9 rows, the file holds 15 (first: line 1)")
    return content, texts


@pytest.mark.parametrize("format", FORMATS)
def test_one_warning_lists_each_kind_with_its_count_and_first_position(deliver, format):  # noqa: A002
    content, texts = suspicious(format)
    with pytest.warns(VectorFileWarning) as caught:
        vectors = read_vectors(deliver(content), non_finite="zero")
    assert len(caught) == 1 and caught[0].filename == __file__
    message = str(caught[0].message)
    assert all(f": {each}" in message or f"; {each}" in message for each in texts), message
    assert message.count(" (first: ") == len(texts) and message.endswith(
        ". read_vectors(..., strict=True) refuses each."
    )
    assert table_of(vectors) == {"the": [1, 0], "of": [3, 4], "\udcff": [7, 0], **GOOD}


KINDS = {"duplicate": FORMATS, "UTF-8": FORMATS, "finite": FORMATS, "blank": TEXT, "header": HEADERS}


@pytest.mark.parametrize(("kind", "format"), [(kind, each) for kind, formats in KINDS.items() for each in formats])
def test_each_kind_of_suspicious_content_is_an_error_when_strict(deliver, format, kind):  # noqa: A002
    suspicious_row = {"duplicate": ("the", [5, 6]), "UTF-8": (b"\xff", [5, 6]), "finite": ("at", [5, np.nan])}.get(kind)
    pairs = [*ROWS.items(), *GOOD.items(), *([suspicious_row] if suspicious_row else [])]
    content = encode(format, pairs, 9 if kind == "header" else None)
    if kind == "blank":
        content = content.replace(b"of ", b" \nof ")
    with pytest.raises(VectorFormatError, match=rf"(line|byte) \d+: found .*{kind}.*; expected none"):
        read_vectors(deliver(content), strict=True, non_finite="zero")
