"""``tinyllm eval --model … --task …``: one or two models on a task, without a manifest."""

import json

import numpy as np
import pytest
from tests.plugin.toys import Reported

from tinyllm.models.bigram import BigramLM, save_bigram

TASK = ("--task", "evals/c.jsonl")


@pytest.fixture
def contrary(here):
    """A model that says y where half says x: right where half is wrong."""
    table = np.zeros((256, 256), np.float32)
    table[:, ord("y")] = 5
    save_bigram(here / "contrary", BigramLM(table))
    return "contrary"


def test_one_model_is_one_line_with_an_interval(tinyllm, here):
    done = tinyllm("eval", "--model", "evals/half", *TASK)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "row   task  metric   value  95% interval      n  gate",
        "half  c     acc     0.7500  0.5981 – 0.8581  40",
    ]
    assert not (here / "eval-report").exists()


def test_two_models_are_told_apart_by_the_paired_test(tinyllm, contrary):
    # 30 items for half, 10 for contrary: the exact sign-flip p is 2·P(Binomial(40, ½) ≥ 30) = 0.0022
    done = tinyllm("eval", "--model", "evals/half", "--model", contrary, *TASK)
    assert done.status == 0
    *_, line = done.out.splitlines()
    start, p, end = line.partition("p = ")[0], float(line.split("p = ")[1].split()[0]), line.rpartition("(")[2]
    assert start == "half − contrary: +0.5000, "
    assert p == pytest.approx(0.00222, abs=0.0015)
    assert end == "paired permutation test, n = 40)"


def test_a_model_against_itself_differs_by_nothing(tinyllm):
    done = tinyllm("eval", "--model", "evals/half", "--model", "evals/half", *TASK)
    assert done.out.splitlines()[-1] == "half-1 − half-2: +0.0000, p = 1 (paired permutation test, n = 40)"


def test_a_metric_may_be_chosen(tinyllm):
    report = json.loads(tinyllm("eval", "--model", "evals/gpt", *TASK, "--metric", "acc_norm", "--json").out)
    assert [row["metric"] for row in report["rows"]] == ["acc_norm"]


def test_json_is_the_report_of_both(tinyllm, contrary):
    report = json.loads(tinyllm("eval", "--model", "evals/half", "--model", contrary, *TASK, "--json").out)
    assert {row["name"]: row["value"] for row in report["rows"]} == {"half": 0.75, "contrary": 0.25}
    assert report["suite"] == "c"


def test_a_report_is_written_where_it_is_asked_for(tinyllm, here):
    tinyllm("eval", "--model", "evals/half", *TASK, "--report", "r", "--seed", "4")
    assert Reported(here / "r").rows["half"]["n"] == 40
    assert Reported(here / "r").report["seed"] == 4


def test_a_model_that_cannot_be_scored_is_a_line_and_exit_status_1(tinyllm):
    done = tinyllm("eval", "--model", "evals/broken", "--model", "evals/half", *TASK)
    assert done.status == 1
    assert "broken  c     –" in done.out
    assert "error: evals/broken: must hold model.safetensors" in done.out
    assert "half    c     acc     0.7500" in done.out
    assert "paired" not in done.out


def test_a_faulty_task_is_an_error_that_names_the_line(tinyllm, here):
    (here / "bad.jsonl").write_text('{"context": "a", "choices": ["x"], "answer": 0}\n{"context": "a"}\n')
    done = tinyllm("eval", "--model", "evals/half", "--task", "bad.jsonl")
    assert done.status == 1
    assert "error: bad.jsonl: line 2" in done.out


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (TASK, "--model must be given once or twice, got 0"),
        (("--model", "a", "--model", "b", "--model", "c", *TASK), "--model must be given once or twice, got 3"),
        (("--model", "evals/half", *TASK, "--data", "x"), "tinyllm eval --task does not take --data"),
        (("--model", "evals/half", *TASK, "--stride", "1"), "tinyllm eval --task does not take --stride"),
        (
            ("--model", "evals/half"),
            "tinyllm eval needs ppl with --model and --data, --suite NAME, or --model and --task;*",
        ),
        ((), "tinyllm eval needs ppl with --model and --data, --suite NAME, or --model and --task;*"),
        (("--model", "evals/half", *TASK, "--metric", "bpb"), "argument --metric: invalid choice: 'bpb'*"),
        (("perplexity",), "argument what: invalid choice: 'perplexity'*"),
    ],
)
def test_what_was_asked_wrongly_is_exit_status_4_and_one_line(refused, args, sentence):
    line = refused("eval", *args)
    start = sentence.removesuffix("*")
    assert f": {start}" in line
    assert sentence.endswith("*") or line.endswith(start)
