"""Gates: three answers, on the interval and never on the point."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.eval.gate import judge
from tinyllm.report.rows import blank_row, failed_row


def row(value, lo, hi, n=100):
    numbers = {"metric": "bpb", "value": value, "lo": lo, "hi": hi, "n": n, "status": "ok", "error": None}
    return {**blank_row("gpt"), **numbers}


@pytest.mark.parametrize(
    ("lo", "value", "hi", "answer"),
    [
        (2.0, 2.1, 2.2, "pass"),  # an end on the bound is within it
        (2.0, 2.1, 2.3, "undecided"),  # the point is within, the interval not: never a pass
        (2.1, 2.3, 2.5, "undecided"),
        (2.2, 2.3, 2.4, "undecided"),  # the near end on the bound: not beyond it
        (2.3, 2.4, 2.5, "fail"),
    ],
)
def test_a_max_holds_for_the_whole_interval(lo, value, hi, answer):
    assert judge(row(value, lo, hi), None, 2.2)["answer"] == answer
    assert judge(row(-value, -hi, -lo), -2.2, None)["answer"] == answer  # and a min is its mirror image


def test_no_bound_is_no_gate():
    assert judge(row(1, 0, 2), None, None) is None


@pytest.mark.parametrize(
    ("minimum", "maximum", "answer"),
    [(0.0, 3.0, "pass"), (1.5, 3.0, "undecided"), (0.0, 1.5, "undecided"), (2.5, 3.0, "fail"), (2.1, 0.5, "fail")],
)
def test_two_bounds_take_the_worse_answer(minimum, maximum, answer):
    assert judge(row(1.5, 1.0, 2.0), minimum, maximum)["answer"] == answer


def test_the_message_says_row_metric_value_interval_n_and_bound():
    message = judge(row(2.4, 2.3, 2.5, n=1234), None, 2.2)["message"]
    for part in ("gpt", "bpb 2.4", "[2.3, 2.5]", "n = 1,234", "max 2.2", "beyond the bound, by 0.1"):
        assert part in message


def test_an_undecided_gate_says_how_many_items_would_decide_it():
    """Half-width 0.25 at n = 100, and 0.125 away from the bound: four times the items halve the width."""
    message = judge(row(2.0, 1.75, 2.25, n=100), None, 2.125)["message"]
    assert "about 400 items would decide it" in message


def test_a_value_on_the_bound_is_decided_by_no_number_of_items():
    assert "which no number of items decides" in judge(row(2.0, 1.9, 2.1), None, 2.0)["message"]


def test_a_value_next_to_the_bound_is_decided_by_no_practical_number_of_items():
    assert "no practical number of items" in judge(row(0.0, -1.0, 1.0), None, 1e-205)["message"]


def test_one_item_has_no_interval_and_so_decides_nothing():
    gate = judge(row(2.0, None, None, n=1), None, 5.0)
    assert gate["answer"] == "undecided"
    assert "no interval" in gate["message"]


@pytest.mark.parametrize("status", ["error", "skipped"])
def test_a_row_without_a_number_is_not_evaluated(status):
    gate = judge(failed_row(blank_row("gpt"), status, "X", "why"), None, 2.0)
    assert gate == {"min": None, "max": 2.0, "answer": "not-evaluated", "message": gate["message"]}
    assert status in gate["message"]


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(0, 5), st.floats(-20, 20))
def test_the_three_answers_are_exhaustive_and_exclusive(value, below, above, bound):
    lo, hi = value - below, value + above
    answer = judge(row(value, lo, hi), None, bound)["answer"]
    assert answer == ("pass" if hi <= bound else "fail" if lo > bound else "undecided")


@given(st.integers(2, 10_000), st.floats(0.01, 1), st.floats(0.001, 0.9))
def test_the_items_needed_bring_the_end_to_the_bound(n, half, share):
    """At the stated n the half-width, which falls as 1/√n, is at most the distance to the bound; at n − 1 not."""
    distance = half * share
    message = judge(row(0.0, -half, half, n=n), None, distance)["message"]
    needed = int(message.split("about ")[1].split(" ")[0].replace(",", ""))
    assert half * math.sqrt(n / needed) <= distance * (1 + 1e-9)
    assert needed == 1 or half * math.sqrt(n / (needed - 1)) > distance * (1 - 1e-9)
