"""The table of rows, as lines."""

import pytest

from tinyllm.report.rows import blank_row, failed_row
from tinyllm.report.table import bound, number, table_lines, verdict

OK = blank_row("gpt") | {
    "task": "stories",
    "metric": "bpb",
    "value": 2.101,
    "lo": 2.087,
    "hi": 2.115,
    "n": 20479,
    "status": "ok",
    "error": None,
}
GATED = OK | {"name": "bigram", "gate": {"min": None, "max": 3.5, "answer": "pass", "message": "m"}}


def test_the_table_has_a_heading_and_a_line_for_every_row_in_order():
    rows = [GATED, OK, failed_row(blank_row("old-ckpt"), "skipped", "UnknownFamilyError", "unknown family 'rwkv'")]
    assert list(table_lines(rows)) == [
        "row       task     metric   value  95% interval          n  gate",
        "bigram    stories  bpb     2.1010  2.0870 – 2.1150  20,479  max 3.5  pass",
        "gpt       stories  bpb     2.1010  2.0870 – 2.1150  20,479",
        "old-ckpt  –        –            –  –                     –           skipped: unknown family 'rwkv'",
    ]


def test_no_rows_are_a_heading():
    assert list(table_lines([])) == ["row  task  metric  value  95% interval  n  gate"]


def test_a_row_without_an_interval_has_a_dash_for_it():
    (_, line) = table_lines([OK | {"lo": None, "hi": None, "n": 1}])
    assert line == "gpt  stories  bpb     2.1010  –             1"


def test_an_error_of_several_lines_is_its_first():
    assert verdict(failed_row(OK, "error", "E", "first of two\nsecond")) == "error: first of two"


def test_an_error_of_one_word_has_its_type_before_it():
    assert verdict(failed_row(OK, "error", "SystemExit", "0")) == "error: SystemExit: 0"


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (None, ""),
        ({"min": None, "max": 2.2}, "max 2.2"),
        ({"min": 0.25, "max": None}, "min 0.25"),
        ({"min": 0.0, "max": 0.5}, "min 0, max 0.5"),
        ({"min": None, "max": None}, ""),  # too broken an entry to say its bounds
    ],
)
def test_a_bound_reads_as_the_manifest_states_it(gate, text):
    assert bound(gate) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0.0000"),
        (2.10096, "2.1010"),
        (-0.5, "-0.5000"),
        (99999.0, "99999.0000"),
        (123456.0, "1.235e+05"),
        (0.00012345, "0.0001234"),
        (1e-9, "1e-09"),
    ],
)
def test_a_number_has_digits_that_can_be_read(value, text):
    assert number(value) == text
