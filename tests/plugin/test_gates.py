"""A gate is judged on the interval: pass, fail or undecided, with a sentence a person can act on."""

import math

import numpy as np
import pytest
from tests.plugin.toys import entry

from tinyllm.eval.gate import judge
from tinyllm.metrics import METRICS
from tinyllm.report.rows import blank_row, failed_row


def row(value, lo, hi, n=100):
    return blank_row("gpt") | {
        "metric": "bpb",
        "status": "ok",
        "error": None,
        "value": value,
        "lo": lo,
        "hi": hi,
        "n": n,
    }


@pytest.mark.parametrize(
    ("bounds", "answer"),
    [  # of the interval [2, 3] around 2.5
        ((None, 3.5), "pass"),
        ((None, 3.0), "pass"),  # the bound itself is within
        ((None, 2.999), "undecided"),
        ((None, 2.0), "undecided"),
        ((None, 1.999), "fail"),
        ((1.5, None), "pass"),
        ((2.0, None), "pass"),
        ((2.001, None), "undecided"),
        ((3.0, None), "undecided"),
        ((3.001, None), "fail"),
        ((1.5, 3.5), "pass"),
        ((2.4, 3.5), "undecided"),
        ((2.4, 2.6), "undecided"),
        ((3.1, 3.5), "fail"),
        ((2.4, 1.9), "fail"),  # one side fails, whatever the other says
    ],
)
def test_the_answer_is_by_the_intervals_far_end(bounds, answer):
    gate = judge(row(2.5, 2.0, 3.0), *bounds)
    assert gate["answer"] == answer
    assert (gate["min"], gate["max"]) == bounds


def test_a_row_without_bounds_has_no_gate():
    assert judge(row(2.5, 2.0, 3.0), None, None) is None


@pytest.mark.parametrize(
    ("value", "lo", "hi", "n", "bounds", "needed"),
    [  # n · (half-width / distance)², rounded up
        (2.0, 1.5, 2.5, 100, (None, 2.25), "400"),  # 100 · (0.5 / 0.25)²
        (2.0, 1.5, 2.5, 10, (None, 2.375), "18"),  # 10 · (0.5 / 0.375)² = 17.8
        (0.75, 0.5, 0.875, 40, (0.625, None), "160"),  # 40 · (0.25 / 0.125)²: the far end of a min is lo
        (0.75, 0.5, 0.875, 40, (None, 0.8125), "160"),  # 40 · (0.125 / 0.0625)²: and of a max hi
        (2.0, 1.5, 2.5, 1000, (None, 1.75), "4,000"),  # the value is beyond the bound: as many would show that
        (2.0, 1.5, 2.5, 1000, (2.25, None), "4,000"),
    ],
)
def test_an_undecided_gate_says_how_many_items_would_decide_it(value, lo, hi, n, bounds, needed):
    assert f"about {needed} items would decide it" in judge(row(value, lo, hi, n), *bounds)["message"]


def test_the_needed_items_do_decide_it():
    rng = np.random.default_rng(0)
    scores = rng.normal(2.0, 1.0, 400)
    value, lo, hi = METRICS["nll"].estimate(scores, None)
    bound = value + (hi - value) / 2  # half the half-width away: four times the items
    assert "about 1,600 items" in judge(row(value, lo, hi, 400), None, bound)["message"]
    four_times = METRICS["nll"].estimate(np.tile(scores, 4), None)
    assert judge(row(*four_times, 1600), None, bound)["answer"] == "pass"
    three_times = METRICS["nll"].estimate(np.tile(scores, 3), None)
    assert judge(row(*three_times, 1200), None, bound)["answer"] == "undecided"


def test_a_value_on_the_bound_is_decided_by_no_number_of_items():
    assert "which no number of items decides" in judge(row(2.0, 1.5, 2.5), None, 2.0)["message"]


@pytest.mark.parametrize(
    ("bounds", "end"),
    [
        ((None, 1.5), "max 1.5: the whole interval lies beyond the bound, by 0.5 at its near end"),
        ((3.25, None), "min 3.25: the whole interval lies beyond the bound, by 0.25 at its near end"),
        ((None, 3.5), "max 3.5: the whole interval lies within the bound"),
    ],
)
def test_the_sentence_has_row_metric_value_interval_n_and_bound(bounds, end):
    gate = judge(row(2.5, 2.0, 3.0, 12345), *bounds)
    assert gate["message"] == f"gpt: bpb 2.5, 95% interval [2.0, 3.0], n = 12,345, {end}"


def test_one_observation_is_undecided_and_says_so():
    gate = judge(row(2.5, None, None, 1), None, 100.0)
    assert (gate["answer"], "1 item has no interval; score more items" in gate["message"]) == ("undecided", True)


@pytest.mark.parametrize("status", ["error", "skipped"])
def test_a_row_without_a_number_is_not_evaluated(status):
    gate = judge(failed_row(blank_row("gpt"), status, "E", "why"), None, 3.0)
    assert (gate["answer"], gate["max"]) == ("not-evaluated", 3.0)
    assert status in gate["message"]


def alarms(metric, draw, bound, repeats=1000):
    """Shares of the gate's answers for an unchanged model whose true value is the bound: its worst case."""
    rng = np.random.default_rng(7)
    answers = []
    for _ in range(repeats):
        scores = draw(rng)
        value, lo, hi = METRICS[metric].estimate(scores, None)
        answers.append(judge(row(value, lo, hi, len(scores)), *bound)["answer"])
    return {answer: answers.count(answer) / repeats for answer in ("pass", "fail", "undecided")}


@pytest.mark.parametrize("bound", [(None, 2.0), (2.0, None)])
def test_an_unchanged_model_at_its_bound_fails_at_most_as_often_as_the_level_says(bound):
    found = alarms("nll", lambda rng: rng.normal(2.0, 1.0, 60), bound)
    noise = 3 * math.sqrt(0.025 * 0.975 / 1000)
    assert found["fail"] <= 0.025 + noise  # one end of a 95% interval
    assert found["fail"] + found["pass"] <= 0.05 + 2 * noise
    assert found["fail"] > 0  # the simulation can see an alarm


@pytest.mark.parametrize(("bound", "p"), [((None, 0.5), 0.5), ((0.8, None), 0.8)])
def test_an_unchanged_accuracy_at_its_bound_fails_at_most_as_often_as_the_level_says(bound, p):
    found = alarms("acc", lambda rng: (rng.random(200) < p).astype(float), bound)
    assert 0 < found["fail"] <= 0.035 + 3 * math.sqrt(0.025 * 0.975 / 1000)  # Wilson's ends are 2.5% on average over p


def test_a_model_within_its_bound_by_twice_the_interval_never_fails():
    found = alarms("nll", lambda rng: rng.normal(2.0, 1.0, 60), (None, 3.0))
    assert found == {"pass": 1.0, "fail": 0.0, "undecided": 0.0}


def test_gates_decide_the_items_and_the_exit_status(project):
    project.manifest(
        entry("within", max=8)  # 8 [8, 8]
        + entry("above", min=7.5)
        + entry("beyond", max=7.5)
        + entry("below", "half", choices="c.jsonl", min=0.9)  # 0.75 [0.598, 0.858]
        + entry("straddles", "half", choices="c.jsonl", min=0.5, max=0.8)
        + entry("free", "half")
    )
    result = project.run("evals")
    result.assert_outcomes(passed=3, failed=3)
    answers = {name: row["gate"] and row["gate"]["answer"] for name, row in project.reported.rows.items()}
    assert answers == {
        "within": "pass",
        "above": "pass",
        "beyond": "fail",
        "below": "fail",
        "straddles": "undecided",
        "free": None,
    }
    result.stdout.fnmatch_lines(
        [
            "gate fail: beyond: bpb 8.0, 95% interval [[]8.0, 8.0], n = 199, max 7.5: "
            "the whole interval lies beyond the bound, by 0.5 at its near end"
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "gate undecided: straddles: acc 0.75, 95% interval [[]0.59*, 0.85*], n = 40, max 0.8: "
            # 40 · ((0.858129 − 0.75) / 0.05)² = 187.07
            "the interval straddles the bound; about 188 items would decide it, should the value stay"
        ]
    )
    assert all(row["status"] == "ok" for row in project.reported.rows.values())


@pytest.mark.parametrize("model", ["weird", "broken"])
def test_a_gated_row_without_a_number_fails_and_says_that_it_has_a_gate(project, model):
    project.manifest(entry("a", model, max=9))
    result = project.run("evals", "--tinyllm-undecided=warn")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a: *(and it carries a gate)"])


def test_fault_row_72_a_gate_that_holds_is_exit_status_0_of_the_process(project):
    project.manifest(entry("a", max=8))
    assert project.run_process("evals", "-n0").ret == 0


def test_fault_row_72_a_gate_that_does_not_hold_is_exit_status_1_of_the_process(project):
    project.manifest(entry("a", max=7))
    assert project.run_process("evals", "-n0").ret == 1
