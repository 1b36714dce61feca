"""The regression gate on rows worked by hand; its two claims: unchanged is green, only worse is red."""

import math

import numpy as np
import pytest

from tinyllm.eval.baseline import RED, hold_against, summary_lines
from tinyllm.formats.report import check_report
from tinyllm.report.assemble import report_document
from tinyllm.report.baselines import StoredRun
from tinyllm.report.rows import blank_row, failed_row, missing_row
from tinyllm.result import Result
from tinyllm.rng import PCG32

SHA = {"name": "d", "sha256": "ab" * 32}


def row(name="r", metric="acc", **keys):
    known = {"kind": "lm", "metric": metric, "unit": "u", "status": "ok", "error": None, "data": SHA}
    return blank_row(name) | known | {"value": 0.5, "n": 1, "settings": {"max_len": 8}} | keys


def scored(scores, ids=None):
    return Result(0.5, -math.inf, math.inf, len(scores), np.asarray(scores, np.float64), ids)


def stored(**rows):
    """A baseline of (row, result or None) by name."""
    return StoredRun("main/0001", {n: r for n, (r, _) in rows.items()}, {n: s for n, (_, s) in rows.items() if s})


def one(before, now, *, margin=None, metric="acc", ids=None, before_ids=None, was=None, **keys):
    """The verdict on a single row, from its scores in the baseline and now."""
    baseline = stored(r=(row(metric=metric) | (was or {}), scored(before, before_ids or ids)))
    now_row = row(metric=metric, **keys)
    return hold_against(baseline, [now_row], {"r": scored(now, ids)}, {"r": margin})["r"]


RIGHT = [1.0] * 40


def test_an_unchanged_row_has_no_difference_and_p_one():
    verdict = one(RIGHT, RIGHT)
    assert (verdict["answer"], verdict["delta"], verdict["p"], verdict["p_holm"]) == ("pass", 0.0, 1.0, 1.0)
    assert (verdict["n"], verdict["margin"], verdict["items"]) == (40, 0.0, [])


def test_a_row_that_lost_ten_of_forty_is_worse_and_says_which():
    ids = tuple(f"q{i}" for i in range(40))
    verdict = one(RIGHT, [0.0] * 12 + [1.0] * 28, ids=ids)
    assert verdict["answer"] == "worse"
    assert verdict["delta"] == -0.3
    assert verdict["p"] == verdict["p_holm"] == 2**-12  # all twelve signs one way: one pattern of 2¹²
    assert verdict["items"] == [{"item": f"q{i}", "before": 1.0, "now": 0.0} for i in range(10)]
    assert verdict["message"] == (
        "r: worse than baseline main/0001: acc 0.5 → 0.5, delta -0.3 an item (margin 0), one-sided p = 0.0002441, "
        "0.0002441 by Holm over 1 row, n = 40; 12 right there and wrong here, 0 the other way: "
        "q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, …"
    )


def test_only_items_that_were_right_and_are_wrong_are_named():
    before, now = [1, 0, 1, 1, 1, 1, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0]
    verdict = one(before, now, ids=tuple("abcdefghi"))
    assert [item["item"] for item in verdict["items"]] == list("acdefgh")
    assert (verdict["answer"], verdict["p"]) == ("worse", 9 / 2**8)  # 7 of 8 one way: (1 + 8) / 256
    assert verdict["message"].endswith("; 7 right there and wrong here, 1 the other way: a, c, d, e, f, g, h")


def test_a_row_that_got_better_passes_however_much():
    verdict = one([0.0] * 40, RIGHT)
    assert (verdict["answer"], verdict["delta"], verdict["p"]) == ("pass", 1.0, 1.0)
    nll = one([3.0] * 40, [1.0] * 40, metric="bpb")
    assert (nll["answer"], nll["delta"], nll["p"]) == ("pass", -2.0, 1.0)


@pytest.mark.parametrize("metric", ["nll", "bpb", "ppl"])
def test_a_text_is_worse_when_its_nll_grew_and_the_tokens_that_grew_most_are_named(metric):
    grown = np.full(300, 0.01)
    grown[[7, 250]] = 2.0, 3.5
    verdict = one(np.ones(300), np.ones(300) + grown, metric=metric)
    assert verdict["answer"] == "worse"
    assert verdict["delta"] == pytest.approx((5.5 + 2.98) / 300)
    assert verdict["p"] == 1 / 10_001
    assert len(verdict["items"]) == 10
    assert verdict["items"][:2] == [  # token 0 is not scored: score 250 is token 251's
        {"item": "token 251", "before": 1.0, "now": 4.5},
        {"item": "token 8", "before": 1.0, "now": 3.0},
    ]
    assert "nats a token (margin 0.0001)" in verdict["message"]
    assert "NLL grew most at token 251 (+3.5), token 8 (+2), token 1 (+0.01)" in verdict["message"]


@pytest.mark.parametrize(
    ("drop", "margin", "answer"),
    [
        (0.9e-4, None, "pass"),
        (1.1e-4, None, "worse"),
        (1.1e-4, 0.5, "pass"),
        (1e-9, 0.0, "worse"),
        (0.25, 0.25, "pass"),  # a drop of the margin itself is let pass
        (0.25 + 2**-40, 0.25, "worse"),
    ],
)
def test_a_drop_counts_beyond_the_margin(drop, margin, answer):
    verdict = one(np.full(64, 2.0), np.full(64, 2.0) + drop, metric="bpb", margin=margin)
    assert verdict["answer"] == answer
    assert verdict["margin"] == (1e-4 if margin is None else margin)
    assert verdict["p"] < 0.001


def test_right_or_wrong_scores_have_no_margin_unless_they_are_given_one():
    before, now = [1.0] * 1000, [0.0] * 30 + [1.0] * 970
    assert one(before, now)["answer"] == "worse"
    assert one(before, now, margin=0.03)["answer"] == "pass"
    assert one(before, now, margin=0.029)["answer"] == "worse"


@pytest.mark.parametrize(
    ("metric", "before", "now"), [("acc", 0.5, 0.0), ("acc", 1.0, 0.5), ("bpb", 0.0, 1.0), ("acc", 2.0, 1.0)]
)
def test_scores_that_are_not_right_or_wrong_on_both_sides_have_the_default_margin(metric, before, now):
    verdict = one([before] * 40, [now] * 40, metric=metric)
    assert (verdict["answer"], verdict["margin"]) == ("worse", 1e-4)
    assert "right there and wrong here" not in verdict["message"]
    grew = "NLL grew most at token 1" if metric == "bpb" else "lost most item 0"
    assert f"; {grew} ({now - before:+.4g}), " in verdict["message"]


def test_a_drop_that_may_be_chance_passes():
    before, now = [1.0] * 4 + [0.0] * 36, [0.0] * 4 + [0.0] * 36
    verdict = one(before, now)
    assert (verdict["answer"], verdict["p"]) == ("pass", 1 / 16)
    assert verdict["delta"] == -0.1


def test_rows_are_judged_together_by_holm():
    # five of five items lost: p = 1/32 = .03, red alone; of two such rows .06, of one and one that is sure .03 again
    lost = scored([0.0] * 5), scored([1.0] * 5)
    sure = scored([0.0] * 40), scored(RIGHT)

    def answers(*pairs):
        names = [f"r{i}" for i in range(len(pairs))]
        baseline = stored(**{n: (row(n), before) for n, (_, before) in zip(names, pairs, strict=True)})
        results = {n: now for n, (now, _) in zip(names, pairs, strict=True)}
        verdicts = hold_against(baseline, [row(n) for n in names], results, {})
        return [(one["answer"], one["p_holm"]) for one in verdicts.values()]

    assert answers(lost) == [("worse", 1 / 32)]
    assert answers(lost, lost) == [("pass", 2 / 32)] * 2
    assert answers(sure, lost) == [("worse", 2 / 10_001), ("worse", 1 / 32)]
    assert answers(lost, (lost[1], lost[1])) == [("pass", 2 / 32), ("pass", 1.0)]


def test_many_rows_are_given_patterns_enough_to_be_red():
    names = [f"r{i}" for i in range(600)]  # 600 times 1/10,001 is above .05
    ones, zeros = scored([1.0] * 20), scored([0.0] * 20)
    baseline = stored(**{name: (row(name), ones) for name in names})
    results = dict.fromkeys(names, ones) | {"r7": zeros}
    verdicts = hold_against(baseline, [row(name) for name in names], results, {})
    assert [name for name, one in verdicts.items() if one["answer"] == "worse"] == ["r7"]


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"metric": "acc_norm"}, "metric 'acc' there and 'acc_norm' here"),
        ({"kind": "mlm"}, "kind 'lm' there and 'mlm' here"),
        ({"data": {"name": "d", "sha256": "cd" * 32}}, f"data of SHA-256 {'ab' * 32} there and {'cd' * 32} here"),
        ({"data": None}, f"data of SHA-256 {'ab' * 32} there and None here"),
        ({"settings": {"max_len": 9}}, "max_len 8 there and 9 here"),
        ({"settings": {}}, "max_len 8 there and absent here"),
        ({"settings": {"max_len": 8, "limit": 10}}, "limit absent there and 10 here"),
        ({"settings": {"max_len": None}}, "max_len 8 there and None here"),
    ],
)
def test_fault_row_57_another_measurement_is_refused_with_what_differs(change, difference):
    baseline = stored(r=(row(), scored(RIGHT)))
    verdict = hold_against(baseline, [row() | change], {"r": scored(RIGHT)}, {})["r"]
    assert verdict["answer"] == "refused"
    assert verdict["message"].startswith(f"r: not the measurement that baseline main/0001 has: {difference};")
    assert verdict["p"] is None


def test_everything_that_differs_is_said():
    verdict = one(RIGHT, RIGHT[1:], settings={"max_len": 4}, was={"metric": "acc_norm"})
    assert (
        "metric 'acc_norm' there and 'acc' here; max_len 8 there and 4 here; 40 items there and 39 here"
        in (verdict["message"])
    )


def test_fault_row_54_other_items_are_refused_by_count_and_by_id():
    assert "40 items there and 39 here" in one(RIGHT, RIGHT[1:])["message"]
    verdict = one([1, 1, 1], [1, 1, 1], ids=("a", "b", "c"), before_ids=("a", "c", "b"))
    assert verdict["answer"] == "refused"
    assert "item 1 is 'c' there and 'b' here" in verdict["message"]


@pytest.mark.parametrize(("there", "here"), [(tuple("abcdef"), None), (None, tuple("abcdef"))])
def test_items_are_called_by_the_ids_that_either_side_has(there, here):
    baseline = stored(r=(row(), scored([1.0] * 6, there)))
    verdict = hold_against(baseline, [row()], {"r": scored([0.0] * 6, here)}, {})["r"]
    assert verdict["answer"] == "worse"
    assert [item["item"] for item in verdict["items"]] == list("abcdef")


def test_a_metric_of_the_baseline_that_is_not_known_is_refused():
    verdict = one(RIGHT, RIGHT, metric="bleu")
    assert verdict["answer"] == "refused"
    assert "metric 'bleu', which is not known here" in verdict["message"]


def test_fault_row_53_a_row_that_lost_its_number_is_red_and_says_why():
    baseline = stored(r=(row(value=0.75), scored(RIGHT)), gone=(row("gone"), scored(RIGHT)))
    failed = failed_row(row(), "error", "CheckpointError", "model.safetensors: cut short")
    verdicts = hold_against(baseline, [failed], {}, {})
    assert [one["answer"] for one in verdicts.values()] == ["lost", "lost"]
    assert verdicts["r"]["message"] == (
        "r: baseline main/0001 has acc 0.75, and this run has no number: "
        "error: CheckpointError: model.safetensors: cut short"
    )
    assert "this run has no such row; put its entry back" in verdicts["gone"]["message"]


def test_a_row_that_had_no_number_cannot_be_lost():
    baseline = stored(r=(row(), scored(RIGHT)), gone=(failed_row(row("gone"), "error", "E", "m"), None))
    assert list(hold_against(baseline, [row()], {"r": scored(RIGHT)}, {})) == ["r"]


def test_a_row_that_is_skipped_or_never_ran_is_lost_too():
    baseline = stored(r=(row(), scored(RIGHT)))
    skipped = failed_row(row(), "skipped", "UnknownFamilyError", "unknown family 'rwkv'")
    for now in (skipped, missing_row("r", selected=True)):
        assert hold_against(baseline, [now], {}, {})["r"]["answer"] == "lost"


def test_a_row_that_was_not_selected_is_neither_red_nor_held():
    baseline = stored(r=(row(), scored(RIGHT)), gone=(row("gone"), scored(RIGHT)))
    verdicts = hold_against(baseline, [missing_row("r", selected=False)], {}, {})
    assert [one["answer"] for one in verdicts.values()] == ["not-selected"] * 2


@pytest.mark.parametrize("was", [None, failed_row(row(), "error", "E", "m")])
def test_a_row_that_the_baseline_has_no_number_for_is_new(was):
    baseline = stored(**({} if was is None else {"r": (was, None)}))
    verdict = hold_against(baseline, [row()], {"r": scored(RIGHT)}, {})["r"]
    assert verdict["answer"] == "new"
    assert verdict["message"].startswith("r: new row, nothing to compare: baseline main/0001 has no ")


def test_the_summary_counts_the_answers_and_prints_what_is_red_before_what_is_new():
    baseline = stored(a=(row("a"), scored(RIGHT)), b=(row("b"), scored(RIGHT)), gone=(row("gone"), scored(RIGHT)))
    rows = [row("new"), row("a"), row("b")]
    results = {"new": scored(RIGHT), "a": scored(RIGHT), "b": scored([0.0] * 40)}
    lines = list(summary_lines(hold_against(baseline, rows, results, {}), "main/0001"))
    assert lines[0] == "against baseline main/0001: 1 held, 1 worse, 1 lost, 1 new"
    assert [line[:13] for line in lines[1:]] == ["FAILED b: wor", "FAILED gone: ", "new: new row,"]


def test_ids_that_do_not_print_are_written_as_escapes():
    verdict = one([1.0] * 6, [0.0] * 6, ids=("a\n", "\x1b[31m", "é", "\ud800", "", "f"))
    assert "'a\\n', '\\x1b[31m', é, '\\ud800', , f" in verdict["message"]


def test_every_verdict_is_what_the_report_schema_has():
    baseline = stored(a=(row("a"), scored(RIGHT)), b=(row("b", "bpb"), scored([2.0] * 40)), c=(row("c"), scored([1])))
    rows = [row("a"), row("b", "bpb"), row("c"), row("d"), missing_row("e", selected=False)]
    results = {"a": scored([0.0] * 40), "b": scored([1.0] * 40), "c": scored([1, 1]), "d": scored([1])}
    verdicts = hold_against(baseline, rows, results, {})
    assert [one["answer"] for one in verdicts.values()] == ["worse", "pass", "refused", "new", "not-selected"]
    held = {name: one | {"baseline": verdicts[name]} for name, one in ((r["name"], r) for r in rows)}
    run = {"base_key": "0" * 16}
    check_report(report_document(suite="s", seed=0, names=list(held), rows=held, run=run), "report")


def test_an_equal_model_that_answers_by_chance_is_red_in_at_most_one_run_of_twenty():
    # twelve rows a run, both sides right with probability .6 item by item: no row is worse, all differ
    red = 0
    names = [f"r{i}" for i in range(12)]
    for seed in range(150):
        rng = PCG32(seed)
        draws = [rng.random_array(60) < 0.6 for _ in range(24)]
        baseline = stored(**{n: (row(n), scored(draws[2 * i])) for i, n in enumerate(names)})
        results = {n: scored(draws[2 * i + 1]) for i, n in enumerate(names)}
        verdicts = hold_against(baseline, [row(n) for n in names], results, {})
        red += any(one["answer"] in RED for one in verdicts.values())
    assert red <= 14  # of 150 at .05: P(more than 14) = .01
