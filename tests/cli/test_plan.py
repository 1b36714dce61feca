"""``tinyllm plan MANIFEST``: its counts are what a run then reports and reads; its times come from a probe."""

import json
import re

import numpy as np
import pytest
from tests.plugin.toys import SUITE, entry

from tinyllm.cli.plan import plan_lines
from tinyllm.eval.plan import RowPlan, plan_entry
from tinyllm.eval.zoo import evaluate_entry, load_model
from tinyllm.formats.manifest import load
from tinyllm.formats.tokens import write_tokens
from tinyllm.models.bigram import BigramLM
from tinyllm.rng import PCG32

LONG = [{"context": "q" * i, "choices": ["x", "yyy"], "answer": 0} for i in range(20, 44)]

ROWS = (
    entry("windows", "gpt", ctx_len=16, stride=5)
    + entry("whole-context", "gpt")
    + entry("every-token", "gpt", ctx_len=3, stride=1)
    + entry("whole-text", "half")
    + entry("cloze", "half", choices="c.jsonl")
    + entry("cut", "gpt", choices="long.jsonl")
    + entry("cut-more", "gpt", choices="long.jsonl", max_len=25, metric="acc_norm")
)


@pytest.fixture
def suite(here):
    """Write evals/zoo.toml, and items longer than the toy gpt's context."""

    def write(text):
        (here / "evals/zoo.toml").write_text(text)
        (here / "evals/long.jsonl").write_text("".join(json.dumps(item) + "\n" for item in LONG))

    return write


@pytest.fixture
def planned(tinyllm):
    """The plan of evals/zoo.toml, by row name."""

    def plan(*args) -> dict:
        return {row["name"]: row for row in json.loads(tinyllm("plan", "zoo", "--json", *args).out)["rows"]}

    return plan


class Counted:
    """A model that counts the tokens it reads, and for which a clock goes one second a token."""

    def __init__(self, model):
        self._model, self.lengths = model, []
        for name in ("vocab_size", "ctx_len"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "nll"):
            self.nll = self._nll

    def __call__(self, ids):
        self.lengths.append(np.shape(ids)[1])
        out = self._model(ids)
        logits = out[0] if isinstance(out, tuple) else out
        return logits.detach().numpy() if hasattr(logits, "detach") else logits

    def _nll(self, ids):
        self.lengths.append(len(ids))
        return self._model.nll(ids)

    def clock(self):
        return float(sum(self.lengths))


def run_counted(one):
    """An entry's row, and the calls that scoring it made."""
    models = []

    def counting(path):
        models.append(Counted(load_model(path)))
        return models[0]

    row = evaluate_entry(one, PCG32(0), load=counting).row
    return row, models[0].lengths


@pytest.fixture
def entries(suite, here):
    suite(ROWS)
    return {one.name: one for one in load(here / "evals/zoo.toml").entries}


@pytest.mark.parametrize("name", [line.split('"')[1] for line in ROWS.splitlines() if line.startswith("name")])
def test_counts_are_what_a_run_reports_and_reads(entries, planned, name):
    row, lengths = run_counted(entries[name])
    plan = planned()[name]
    assert row["status"] == plan["status"] == "ok"
    assert (plan["calls"], plan["tokens"], plan["longest"]) == (len(lengths), sum(lengths), max(lengths))
    for key in ("arch", "task", "metric", "settings", "n"):
        assert plan[key] == row[key]
    for key in ("n_truncated", "n_merged"):
        assert plan[key] == row["notes"].get(key)


def test_the_truncations_by_hand(suite, planned):
    # contexts of 20 … 43 bytes before choices of 1 and 3: an item is cut when its context and 3 exceed the limit
    suite(ROWS)
    plans = planned()
    assert plans["cut"]["n_truncated"] == 43 - 29
    assert plans["cut-more"]["n_truncated"] == 43 - 22
    assert plans["cut-more"]["tokens"] == sum(min(n + k, 25) for n in range(20, 44) for k in (1, 3))
    assert plans["cut"]["n_merged"] == 0


def test_a_token_that_spans_the_join_is_counted_as_a_run_counts_it(entries):
    class Pairs:
        """Bytes, but every ``qx`` is one token."""

        vocab_size, bos_id, eos_id = 257, None, None

        def encode(self, text):
            return [256 if piece == "Q" else ord(piece) for piece in text.replace("qx", "Q")]

        def decode(self, ids):
            return "".join("qx" if i == 256 else chr(i) for i in ids)

    def pairs(_path):
        model = BigramLM(np.zeros((257, 257), np.float32))
        model.tokenizer = Pairs()
        return model

    row = evaluate_entry(entries["cut"], PCG32(0), load=pairs).row
    plan = plan_entry(entries["cut"], load=pairs)
    assert row["notes"]["n_merged"] == plan.n_merged == 24


@pytest.mark.parametrize("name", ["windows", "every-token", "cloze", "cut", "whole-text"])
@pytest.mark.parametrize("calls", [1, 3, 10_000])
def test_where_cost_is_linear_the_time_is_exactly_what_the_run_takes(entries, name, calls):
    model = Counted(load_model(entries[name].dir))
    plan = plan_entry(entries[name], load=lambda _: model, probe_calls=calls, clock=model.clock)
    _, lengths = run_counted(entries[name])
    assert plan.time_s == pytest.approx(sum(lengths), rel=1e-12)
    assert len(model.lengths) <= 1 + min(calls, len(lengths))  # one warms up


def test_a_long_text_scored_whole_is_probed_on_its_beginning(here, suite):
    write_tokens(here / "evals/long.bin", np.zeros(10_000, np.uint8), vocab_size=256, n_bytes=9_999)
    suite(entry("long", "half", data="long.bin"))
    (one,) = load(here / "evals/zoo.toml").entries
    model = Counted(load_model(one.dir))
    plan = plan_entry(one, load=lambda _: model, clock=model.clock)
    assert plan.time_s == pytest.approx(10_000)
    assert model.lengths == [4096, 4096]


def test_without_a_probe_nothing_is_scored_and_no_time_is_given(suite, planned, monkeypatch):
    suite(ROWS)
    monkeypatch.setattr("tinyllm.scoring.forward.logits", lambda *_: pytest.fail("scored"))
    monkeypatch.setattr("tinyllm.models.bigram.BigramLM.nll", lambda *_: pytest.fail("scored"))
    assert {row["time_s"] for row in planned("--probe", "0").values()} == {None}


def test_a_row_that_cannot_be_scored_says_what_its_row_will_say(tinyllm, suite, planned, here):
    write_tokens(here / "evals/one.bin", np.zeros(1, np.uint8), vocab_size=256, n_bytes=0)
    (here / "evals/unfit.jsonl").write_text(json.dumps({"context": "q", "choices": ["x" * 40], "answer": 0}) + "\n")
    suite(
        SUITE
        + entry("no-token", data="one.bin")
        + entry("no-file", data="none.bin")
        + entry("unfit", "gpt", choices="unfit.jsonl")
        + entry("bad-stride", "gpt", stride=32)
        + entry("bad-ctx", "gpt", ctx_len=64)
        + entry("bad-metric", metric="acc")
    )
    assert tinyllm("plan", "zoo").status == 1
    plans = planned()
    tinyllm("eval", "--suite", "zoo")
    rows = json.loads((here / "eval-report/report.json").read_text())["rows"]
    assert list(plans) == [row["name"] for row in rows]
    for row in rows:
        told = None if row["error"] is None else f"{row['error']['type']}: {row['error']['message']}"
        assert (plans[row["name"]]["status"], plans[row["name"]]["error"]) == (row["status"], told)
    assert sum(row["status"] == "error" for row in rows) == 11


def test_a_skipped_row_is_no_failure(tinyllm, suite):
    suite(entry("a") + entry("w", "weird"))
    done = tinyllm("plan", "zoo", "--probe", "0")
    assert done.status == 0
    assert done.out.splitlines() == [
        "row  metric    n  calls  tokens read  cut  memory  time",
        "a    bpb     199      1          200    –   2 MiB     –",
        "w    –         –      –            –    –       –     –  skipped: UnknownFamilyError: unknown family 'rwkv'; "
        "known are bigram, gpt, ngram, stories",
        "1 of 2 rows can be scored: 200 tokens, at most 2 MiB a row besides Python and torch",
    ]


def test_each_checkpoint_is_loaded_once(tinyllm, suite, monkeypatch):
    loaded = []
    monkeypatch.setattr("tinyllm.eval.zoo.load_model", lambda path: loaded.append(path.name) or load_model(path))
    suite(entry("a") + entry("h", "half") + entry("b") + entry("c", metric="nll"))
    assert tinyllm("plan", "zoo").status == 0
    assert loaded == ["uniform", "half"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.01, "< 0.1 s"), (0.06, "0.1 s"), (119, "119.0 s"), (1800, "30 min"), (9000, "2.5 h")],
)
def test_times_are_told_in_a_unit_that_fits(seconds, shown):
    plan = RowPlan("a", metric="bpb", n=1, calls=1, tokens=1, longest=1, memory_bytes=3 << 20, time_s=seconds)
    assert re.split(r" {2,}", list(plan_lines([plan]))[1])[-2:] == ["3 MiB", shown]


def test_what_was_asked_wrongly_is_exit_status_4(refused, suite):
    assert "evals/zoos.toml: the manifest must be a readable file" in refused("plan", "zoos")
    suite(entry("a") + entry("a"))
    assert "must be unique" in refused("plan", "zoo")
    suite(entry("a"))
    assert refused("plan", "zoo", "--probe", "-1") == "tinyllm: --probe must be at least 0, got -1"


@pytest.mark.parametrize("limit", ["5", "0.3"])
def test_a_plan_of_a_part_has_the_counts_of_that_run(planned, tinyllm, suite, here, limit):
    suite(ROWS)
    tinyllm("eval", "--suite", "zoo", "--limit", limit)
    rows = {row["name"]: row for row in json.loads((here / "eval-report/report.json").read_text())["rows"]}
    plan = planned("--limit", limit)
    for name, row in rows.items():
        assert (plan[name]["n"], plan[name]["settings"]) == (row["n"], row["settings"])
        assert plan[name]["n_truncated"] == row["notes"].get("n_truncated")
    assert plan["windows"]["n"] == {"5": 5, "0.3": 60}[limit]  # 199 tokens
    assert plan["windows"]["calls"] == {"5": 1, "0.3": 10}[limit]  # 61 tokens: 16, then 9 windows of 5 new ones


def test_a_limit_that_is_none_is_refused(refused, suite):
    suite(ROWS)
    assert "a limit must be a number of items of at least 1, or a share such as 0.1" in refused(
        "plan", "zoo", "--limit", "nan"
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (entry("a") + entry("b", "weird"), 0),
        (entry("a") + entry("b", "weird", max=9), 1),
        (entry("b", "weird"), 1),
        (entry("a") + entry("b", "broken"), 1),
    ],
)
def test_the_exit_status_is_what_a_runs_would_be_and_1_where_nothing_can_be_scored(tinyllm, suite, text, status):
    suite(text)
    assert tinyllm("plan", "zoo").status == status
