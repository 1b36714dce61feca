"""Rows: how one begins, how one fails, and what a run may be green with."""

import numpy as np
import pytest

from tinyllm.formats.report import check_report
from tinyllm.report.assemble import report_document
from tinyllm.report.rows import blank_row, failed_row, missing_row, passes, result_of

OK = blank_row("a") | {"metric": "acc", "value": 0.5, "lo": 0.25, "hi": 0.75, "n": 2, "status": "ok", "error": None}


def document(*names, **rows):
    run = {"base_key": "0" * 16}
    return report_document(suite="s", seed=1, names=names, rows=rows, run=run)


@pytest.mark.parametrize(
    "row",
    [
        blank_row("a"),
        missing_row("a", selected=True),
        missing_row("a", selected=False),
        failed_row(OK, "error", "ValueError", "why"),
        failed_row(OK, "skipped", "UnknownFamilyError", ""),  # an exception may have no message; a row must
        OK,
    ],
)
def test_every_kind_of_row_is_valid_in_a_report(row):
    check_report(document("a", a=row), "report")


def test_a_failed_row_keeps_what_is_known_and_has_no_number():
    row = failed_row(OK, "error", "ValueError", "why")
    assert row["metric"] == "acc"
    assert [row[key] for key in ("value", "lo", "hi", "n")] == [None] * 4
    assert row["error"] == {"type": "ValueError", "message": "why"}


def test_rows_are_in_the_order_of_the_names_and_others_follow_by_name():
    rows = {name: blank_row(name) for name in ("z", "b", "a", "y")}
    assert [row["name"] for row in document("b", "a", **rows)["rows"]] == ["b", "a", "y", "z"]


@pytest.mark.parametrize(
    ("row", "complete"),
    [
        (OK, True),
        (failed_row(OK, "error", "ValueError", "why"), True),
        (failed_row(OK, "skipped", "UnknownFamilyError", "why"), True),
        (missing_row("a", selected=True), False),
        (missing_row("a", selected=False), False),
    ],
)
def test_a_report_is_complete_when_every_row_was_given_its_chance(row, complete):
    assert document("b", "a", b=OK | {"name": "b"}, a=row)["complete"] is complete


@pytest.mark.parametrize(
    ("status", "answer", "fail", "warn"),
    [
        ("ok", None, True, True),
        ("ok", "pass", True, True),
        ("ok", "undecided", False, True),
        ("ok", "fail", False, False),
        ("skipped", None, True, True),
        ("skipped", "not-evaluated", False, False),
        ("error", None, False, False),
        ("error", "not-evaluated", False, False),
    ],
)
def test_what_a_run_may_be_green_with(status, answer, fail, warn):
    row = OK | {"status": status, "gate": answer and {"answer": answer, "message": "m"}}
    assert (passes(row, undecided="fail"), passes(row, undecided="warn")) == (fail, warn)


def test_an_end_that_a_report_has_as_null_is_infinite_again():
    result = result_of(OK | {"lo": None, "hi": None}, np.array([0.0, 1.0]), ["x", "y"])
    assert (result.lo, result.hi, result.ids) == (-np.inf, np.inf, ("x", "y"))
