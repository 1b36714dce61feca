"""``tinyllm compare A B``: stored runs, on the same items or not at all."""

import hashlib
import json
import shutil
from itertools import product

import numpy as np
import pytest
from tests.plugin.toys import entry

from tinyllm.formats.tokens import write_tokens

FILES = ("items.safetensors", "report.json")


@pytest.fixture
def stored(tinyllm, here):
    """Run a suite and store its report under a name."""

    def run(name, text):
        (here / "evals/zoo.toml").write_text(text)
        tinyllm("eval", "--suite", "zoo", "--report", name)

    return run


@pytest.fixture
def two(stored):
    """Reports a and b: in both a row "lm" (uniform, half), a row "same" and rows of their own."""
    stored("a", entry("lm") + entry("same", "half") + entry("only-a"))
    stored("b", entry("lm", "half") + entry("same", "half") + entry("only-b", "weird"))


def test_rows_that_both_have_are_compared(tinyllm, two):
    done = tinyllm("compare", "a", "b")
    assert (done.status, done.err) == (0, "")
    lm, same, *_ = done.out.splitlines()
    assert lm.startswith("lm: bpb 8.0000 and 5.0173, mean item difference +2.06")
    assert lm.endswith("n = 199: B is better")
    assert same == "same: bpb 5.0173 and 5.0173, mean item difference +0, p = 1, n = 199: equal"


def test_a_difference_that_may_be_chance_is_called_noise(tinyllm, stored, here):
    # exact by hand: NLLs of 3 tokens all better flip to 2 of 2³ sign patterns as extreme: p = 0.25
    write_tokens(here / "evals/four.bin", np.frombuffer(b"xxxx", np.uint8), vocab_size=256, n_bytes=3)
    stored("a", entry("lm", data="four.bin"))
    stored("b", entry("lm", "half", data="four.bin"))
    assert tinyllm("compare", "a", "b").out.splitlines()[0].endswith("p = 0.25, n = 3: B is better, within item noise")


@pytest.mark.parametrize(("a", "b"), [("a", "b"), ("a/report.json", "b"), ("a/", "b/report.json")])
def test_a_report_is_its_folder_or_its_file(tinyllm, two, a, b):
    assert tinyllm("compare", a, b).out == tinyllm("compare", "a", "b").out != ""


def test_one_row_of_each_may_be_named(tinyllm, two):
    done = tinyllm("compare", "a:lm", "b/report.json:same")
    assert done.status == 0
    assert done.out.startswith("lm − same: bpb 8.0000 and 5.0173")
    assert tinyllm("compare", "a:lm", "a:same").out == done.out


def test_json_has_the_four_facts_of_each(tinyllm, two):
    found = json.loads(tinyllm("compare", "a", "b", "--json").out)
    assert found.keys() == {"lm", "same"}
    assert found["same"] == {"delta": 0.0, "p": 1.0, "n": 199, "better": "neither"}
    assert found["lm"]["better"] == "b"
    # ln 256 less half's: 99 times ln 2, 100 times ln 510
    assert found["lm"]["delta"] == pytest.approx(8 * np.log(2) - (99 * np.log(2) + 100 * np.log(510)) / 199, abs=1e-6)


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        (entry("lm", metric="ppl"), "the same metric, got 'bpb' for lm and 'ppl' for lm"),
        (entry("lm", data="other.bin"), "the same data, got "),
        (entry("lm", "half", choices="c.jsonl"), "the same metric, got 'bpb' for lm and 'acc' for lm"),
    ],
)
def test_rows_of_another_metric_or_other_data_are_refused(refused, stored, here, other, fault):
    write_tokens(here / "evals/other.bin", np.frombuffer(b"yx" * 100, np.uint8), vocab_size=256, n_bytes=199)
    stored("a", entry("lm"))
    stored("b", other)
    assert refused("compare", "a", "b").startswith(f"tinyllm: a paired comparison needs {fault}")


def test_rows_of_other_items_are_refused(refused, stored, here):
    stored("a", entry("task", "half", choices="c.jsonl"))
    items = (here / "evals/c.jsonl").read_text().splitlines(keepends=True)
    (here / "evals/fewer").mkdir()
    (here / "evals/fewer/c.jsonl").write_text("".join(items[1:]))
    stored("b", entry("task", "half", choices="fewer/c.jsonl"))
    line = refused("compare", "a", "b")
    assert line.startswith("tinyllm: a paired comparison needs the same ")


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        ("a:lm", "b", "name a row of both reports (A:ROW B:ROW) or of neither"),
        ("a", "b:lm", "name a row of both reports (A:ROW B:ROW) or of neither"),
        ("a:sane", "b:lm", "a has no scored row 'sane'; did you mean 'same'?"),
        ("a:lm", "b:only-b", "b has no scored row 'only-b'; known are lm, same"),  # skipped: without a number
        ("a", "nowhere", "nowhere: must be a readable file, got 'No such file or directory'"),
        ("a", "evals/gpt", "evals/gpt/report.json: must be a readable file, got 'No such file or directory'"),
        ("evals/t.bin", "b", "evals/t.bin: *"),
    ],
)
def test_what_was_asked_wrongly_is_exit_status_4_and_one_line(refused, two, a, b, sentence):
    line = refused("compare", a, b)
    assert line.startswith(f"tinyllm: {sentence.removesuffix('*')}")
    assert sentence.endswith("*") or line == f"tinyllm: {sentence}"


def test_reports_that_share_no_row_are_refused(refused, stored):
    stored("a", entry("x"))
    stored("b", entry("y"))
    assert refused("compare", "a", "b") == "tinyllm: a and b share no scored row; name one of each as a:ROW b:ROW"


def test_a_report_without_its_items_is_refused(refused, two, here):
    (here / "b/items.safetensors").unlink()
    assert "items.safetensors" in refused("compare", "a", "b")


@pytest.mark.parametrize(("first", "second"), list(product("ab", repeat=2)))
def test_the_answer_turns_round_with_the_question(tinyllm, two, first, second):
    found = json.loads(tinyllm("compare", first, second, "--json").out)["lm"]
    back = json.loads(tinyllm("compare", second, first, "--json").out)["lm"]
    assert found["delta"] == -back["delta"]
    assert found["p"] == back["p"]
    assert {found["better"], back["better"]} == ({"neither"} if first == second else {"a", "b"})


def test_a_row_that_cannot_be_compared_is_named_and_the_others_are(tinyllm, stored, here):
    stored("a", entry("lm") + entry("same", "half"))
    stored("b", entry("lm", metric="ppl") + entry("same", "half"))
    done = tinyllm("compare", "a", "b")
    assert done.status == 1
    assert done.out.startswith("same: bpb 5.0173 and 5.0173")
    assert (
        done.err == "lm: not compared: a paired comparison needs the same metric, got 'bpb' for lm and 'ppl' for lm\n"
    )
    assert tinyllm("compare", "a", "b", "--json").status == 1


# B against A as its baseline


def test_two_reports_are_told_what_the_regression_gate_says(tinyllm, two):
    held = tinyllm("compare", "a", "b")
    assert held.out.splitlines()[2:4] == [
        "against baseline a: 2 held, 1 lost, 1 new",
        "only-a: baseline a has a number for this row, and this run has no such row; "
        "put its entry back, or save a new baseline",
    ]
    worse = tinyllm("compare", "b", "a")
    assert worse.status == 0
    assert worse.out.splitlines()[2] == "against baseline b: 1 held, 1 worse, 1 new"
    line = worse.out.splitlines()[3]
    assert line.startswith("lm: worse than baseline b: bpb 5.01726")  # (100·log2 510 + 99) / 199
    assert " → 8.0, delta +2.06748 nats a token (margin 0.0001), one-sided p = 9.999e-05, " in line
    assert "0.0002 by Holm over 2 rows, n = 199; NLL grew most at token 2 (+4.852)" in worse.out


def test_fault_row_72_gate_makes_the_verdict_the_exit_status(tinyllm, stored):
    stored("a", entry("lm") + entry("same", "half"))
    stored("b", entry("lm", "half") + entry("same", "half"))
    assert tinyllm("compare", "a", "b", "--gate").status == 0
    done = tinyllm("compare", "b", "a", "--gate")
    assert done.status == 1
    assert "\nFAILED lm: worse than baseline b: " in done.out
    verdicts = json.loads(tinyllm("compare", "b", "a", "--gate", "--json").out)
    assert {name: one["answer"] for name, one in verdicts.items()} == {"lm": "worse", "same": "pass"}
    assert tinyllm("compare", "b", "a", "--gate", "--margin", "3").status == 0


def test_a_baseline_is_compared_by_its_newest_number_or_by_one(tinyllm, stored, here):
    stored("a", entry("lm"))
    stored("b", entry("lm", "half"))
    for name, number in (("a", "0001"), ("b", "0002")):
        shutil.copytree(here / name, here / "evals/baselines/main" / number)
        sums = [f"{hashlib.sha256((here / name / f).read_bytes()).hexdigest()}  {f}" for f in FILES]
        (here / "evals/baselines/main" / number / "SHA256SUMS").write_text("\n".join(sums))
    assert tinyllm("compare", "evals/baselines/main", "a", "--gate").status == 1
    assert tinyllm("compare", "evals/baselines/main/0002", "a", "--gate").status == 1
    assert tinyllm("compare", "evals/baselines/main/0001", "a", "--gate").status == 0
    (here / "evals/baselines/main/0001/SHA256SUMS").write_text("")
    assert tinyllm("compare", "evals/baselines/main/0001", "a", "--gate").status == 4


def test_a_harmed_baseline_is_refused(refused, stored, here):
    stored("a", entry("lm"))
    shutil.copytree(here / "a", here / "main/0001")
    assert refused("compare", "main", "a").startswith("tinyllm: main/0001/SHA256SUMS: must be a readable file")


@pytest.mark.parametrize("option", [["--gate"], ["--margin", "0"]])
def test_the_gate_is_for_whole_reports(refused, two, option):
    assert refused("compare", "a:lm", "b:lm", *option).endswith("are for two whole reports; name no row")


@pytest.mark.parametrize("margin", ["-1", "nan", "inf"])
def test_a_margin_is_a_number_of_at_least_zero(refused, two, margin):
    assert f"must be a number of at least 0, got '{margin}'" in refused("compare", "a", "b", f"--margin={margin}")
