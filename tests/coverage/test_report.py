"""The report as text, line by line, and as JSON."""

import json
import math

import pytest

from splitembed.coverage import RankPoint, RuleCoverage, Suggestion, TableSizes
from splitembed.coverage.report import CoverageReport

FULL = CoverageReport(
    num_tokens=20_000,
    num_matched=19_996,
    running_tokens=1_234_567,
    running_matched=1_234_321,
    oov=(("Zzz", 200), ("teh", 40), ("a b", 5)),
    rules=(RuleCoverage("exact", 15_000, 1_200_000), RuleCoverage("lower", 4_996, 34_321)),
    suggestions=(Suggestion("zzz", "lower"), Suggestion("the"), None),
    sizes=TableSizes(num_tokens=20_002, dim=300, num_frozen=15_001, num_trainable=5, frozen_bytes=18_001_200),
    curve=(RankPoint(1, 1, 50_000, 50_000), RankPoint(20_000, 19_996, 1_234_567, 1_234_321)),
)


def test_a_full_report_as_text():
    assert str(FULL).splitlines() == [
        "                  matched         of    share",
        "types              19,996     20,000  100.0 %",
        "  exact            15,000     20,000   75.0 %",
        "  lower             4,996     20,000   25.0 %",
        "running tokens  1,234,321  1,234,567  100.0 %",
        "  exact         1,200,000  1,234,567   97.2 %",
        "  lower            34,321  1,234,567    2.8 %",
        "                 rows   memory  with Adam",
        "frozen         15,001  18.0 MB",
        "trainable           5   6.0 kB    18.0 kB",
        "all trainable  20,002  24.0 MB    72.0 MB",
        "out of vocabulary: 4 types, 246 running tokens; 3 of them shown",
        'Zzz                   200  zzz? (by the fallback "lower")',
        "teh                    40  the?",
        "a b                     5",
    ]


def test_unknown_numbers_are_left_out_of_the_text():
    assert str(CoverageReport(2, 1, None, None, (("zzz", None),))).splitlines() == [
        "       matched  of   share",
        "types        1   2  50.0 %",
        "out of vocabulary: 1 type",
        "zzz",
    ]
    assert len(str(CoverageReport(2, 2, None, None, ())).splitlines()) == 2


def test_a_single_rule_has_no_line():
    report = CoverageReport(2, 1, 9, 8, (("zzz", 1),), rules=(RuleCoverage("exact", 1, 8),))
    assert str(report).splitlines() == [
        "                matched  of   share",
        "types                 1   2  50.0 %",
        "running tokens        8   9  88.9 %",
        "out of vocabulary: 1 type, 1 running token",
        "zzz                   1",
    ]


def test_text_escapes_unprintable_tokens():
    tokens = ["a\nb", " lead", "\udcff", "\u2028", "\u3000", "été", "x" * 100]
    text = str(CoverageReport(7, 0, None, None, tuple((token, None) for token in tokens)))
    # A lone surrogate would make this fail.
    assert text.encode()
    assert text.splitlines()[3:] == [
        "'a\\nb'",
        "' lead'",
        "'\\udcff'",
        "'\\u2028'",
        "'\\u3000'",
        "été",
        "x" * 37 + "...",
    ]


def test_a_full_report_as_json(tmp_path):
    text = FULL.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == text + "\n"
    assert json.loads(text) == FULL.to_dict()
    assert json.loads(text) == {
        "num_tokens": 20_000,
        "num_matched": 19_996,
        "num_gaps": 0,
        "num_oov_types": 4,
        "type_share": 0.9998,
        "running_tokens": 1_234_567,
        "running_matched": 1_234_321,
        "oov_running_tokens": 246,
        "running_share": 1_234_321 / 1_234_567,
        "rules": [
            {"name": "exact", "num_types": 15_000, "running_tokens": 1_200_000},
            {"name": "lower", "num_types": 4_996, "running_tokens": 34_321},
        ],
        "oov": [
            {"token": "Zzz", "count": 200, "suggestion": {"word": "zzz", "fallback": "lower"}},
            {"token": "teh", "count": 40, "suggestion": {"word": "the", "fallback": None}},
            {"token": "a b", "count": 5, "suggestion": None},
        ],
        "sizes": {
            "num_tokens": 20_002,
            "dim": 300,
            "num_frozen": 15_001,
            "num_trainable": 5,
            "frozen_bytes": 18_001_200,
            "trainable_bytes": 6_000,
            "trainable_adam_bytes": 18_000,
            "dense_bytes": 24_002_400,
            "dense_adam_bytes": 72_007_200,
        },
        "curve": [
            {"rank": 1, "num_matched": 1, "running_tokens": 50_000, "running_matched": 50_000},
            {"rank": 20_000, "num_matched": 19_996, "running_tokens": 1_234_567, "running_matched": 1_234_321},
        ],
    }


def test_unknown_numbers_and_undefined_shares_are_null_in_json():
    found = json.loads(CoverageReport(0, 0, 0, 0, (), curve=()).to_json())
    assert (found["type_share"], found["running_share"], found["sizes"], found["curve"]) == (None, None, None, [])
    unknown = json.loads(CoverageReport(2, 1, None, None, (("zzz", None),)).to_json())
    assert [unknown[name] for name in ("running_tokens", "running_share", "curve", "oov_running_tokens")] == [None] * 4
    assert unknown["oov"] == [{"token": "zzz", "count": None, "suggestion": None}]


@pytest.mark.parametrize("token", ["\udcff", '"'])
def test_json_keeps_any_token(token):
    text = CoverageReport(1, 0, None, None, ((token, None),)).to_json()
    assert text.isascii()
    assert json.loads(text)["oov"][0]["token"] == token


def test_shares_of_an_empty_vocabulary_are_nan():
    assert math.isnan(CoverageReport(0, 0, 0, 0, ()).type_share)
    assert math.isnan(CoverageReport(0, 0, 0, 0, ()).running_share)
