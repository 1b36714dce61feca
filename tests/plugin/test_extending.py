"""A family, a metric and a task of the user's own, from the manifest's folder or by entry point, without a fork."""

import hashlib
import json
import math

import pytest
from tests.plugin.toys import entry

from tinyllm.eval.comparison import compare_rows
from tinyllm.eval.zoo import run_zoo
from tinyllm.report.store import read_run

# p(x) = 1/4 for every one of four symbols, however it is asked
FAMILY = """
import math
import numpy as np
from tinyllm.formats.checkpoints import check_config, read_config
from tinyllm.formats.config import integer

ARCH, KIND = "coin", "lm"

class Coin:
    vocab_size = 256
    def __init__(self, bits):
        self.bits = bits
    def __call__(self, ids):
        logits = np.full((*ids.shape, 256), -np.inf)
        logits[..., ord("x") : ord("x") + 2**self.bits] = 0
        return logits
    def nll(self, ids):
        return np.full(len(ids) - 1, self.bits * math.log(2))

def load_coin(path):
    config = read_config(path)
    check_config(config, {"bits": integer(1, 8)}, path)
    return Coin(config["bits"])
"""

METRIC = """
from tinyllm.metrics import Metric, mean

def score(sums, n_bytes, answer):
    return -sums[answer] / n_bytes[answer]

METRIC = Metric("answer_nll", "nats/byte", "lower", "lower", "student-t", mean, score)
"""

TASK = """
from tinyllm.tasks import Task

def items():
    for i in range(10):
        yield {"context": f"q{i}", "choices": ("x", "y"), "answer": int(i % 5 == 4), "id": f"made-{i}"}

TASK = Task("made", items)
"""


@pytest.fixture
def extended(project):
    project.file("evals/models/coin.py", FAMILY)
    project.file("evals/metrics/answer_nll.py", METRIC)
    project.file("evals/tasks/made.py", TASK)
    project.file("evals/coin/config.json", json.dumps({"tl_arch": "coin", "bits": 2}))
    (project.path / "evals/coin/model.safetensors").write_bytes(
        (project.path / "evals/half/model.safetensors").read_bytes()
    )
    return project


def errors(rows):
    return {name: row["error"] and (row["error"]["type"], row["error"]["message"]) for name, row in rows.items()}


@pytest.mark.parametrize("mode", ["-n0", "-n1"])
def test_a_family_and_a_metric_in_the_manifests_folder_are_like_any_other(extended, mode):
    quiz = {"choices": "c.jsonl", "metric": "answer_nll"}
    extended.manifest(
        entry("text", "coin")
        + entry("cloze", "coin", choices="c.jsonl")
        + entry("half", "half", **quiz)
        + entry("uniform", "uniform", **quiz)
        + entry("built-in", "half", choices="c.jsonl")
    )
    extended.file(
        "evals/test_better.py",
        "def test_better(evaluate):\n    assert evaluate.compare('half', 'uniform').better == 'a'\n",
    )
    extended.run("evals", mode).assert_outcomes(passed=6)
    rows = extended.reported.rows
    text, row = rows["text"], rows["half"]
    assert (text["arch"], text["kind"], text["value"], text["lo"]) == ("coin", "lm", 2.0, 2.0)
    assert rows["cloze"]["value"] == 0.75  # of equals the first choice, x, which is right 30 times of 40
    assert row["value"] == pytest.approx((30 * math.log(2) + 10 * math.log(510)) / 40)  # x 1/2, y 1/510
    assert (row["metric"], row["unit"], row["interval"]) == ("answer_nll", "nats/byte", "student-t")
    code = hashlib.sha256(METRIC.encode()).hexdigest()  # of the one function that is its own
    directions = {"of": "choices", "better": "lower", "better_item": "lower"}
    assert row["notes"]["metric"] == {**directions, "interval": "student-t", "code_sha256": code}
    assert row["notes"]["predicted"] == [40, 0]


def test_a_task_of_ones_own_has_its_items_made_by_its_function(extended):
    extended.manifest(
        entry("a", "half", choices="task:made") + entry("b", "uniform", choices="task:made", metric="answer_nll")
    )
    extended.run("evals").assert_outcomes(passed=2)
    report, results = read_run(extended.path / "eval-report")
    rows = {row["name"]: row for row in report["rows"]}
    assert (rows["a"]["task"], rows["a"]["data"]["name"], rows["a"]["value"]) == ("made", "task:made", 0.8)
    assert rows["b"]["value"] == pytest.approx(math.log(256))
    assert list(results["a"].ids) == [f"made-{i}" for i in range(10)]
    before = rows["a"]["data"]["sha256"]
    extended.file("evals/tasks/made.py", TASK.replace("range(10)", "range(9)"))
    extended.run("evals").assert_outcomes(passed=2)
    assert extended.reported.rows["a"]["data"]["sha256"] != before


def test_a_text_metric_of_ones_own_is_made_of_the_nlls(extended):
    text = "from tinyllm.metrics import Metric\n"
    text += "def largest(nlls, n_bytes): return nlls.max(), nlls.min(), nlls.max()\n"
    text += "METRIC = Metric('worst', 'nats', 'lower', 'lower', 'range', largest)\n"
    extended.file("evals/metrics/worst.py", text)
    extended.manifest(
        entry("a", "half", metric="worst")
        + entry("b", "half", metric="answer_nll")
        + entry("c", "half", choices="c.jsonl", metric="worst")
    )
    extended.run("evals").assert_outcomes(passed=1, failed=2)
    rows = extended.reported.rows
    assert rows["a"]["value"] == pytest.approx(math.log(510))
    assert "metric of a text must be one of bpb, nll, ppl, or like them, got 'answer_nll'" in errors(rows)["b"][1]
    assert "got 'worst', which has no score of an item" in errors(rows)["c"][1]


def test_a_baseline_holds_a_metric_of_ones_own_in_its_direction(extended):
    extended.manifest(entry("a", "half", choices="c.jsonl", metric="answer_nll"))
    assert extended.run("evals", "--tinyllm-save-baseline=main").ret == 0
    assert extended.run("evals", "--tinyllm-baseline=main").ret == 0
    extended.manifest(entry("a", "uniform", choices="c.jsonl", metric="answer_nll"))
    result = extended.run("evals", "--tinyllm-baseline=main")
    assert result.ret == 1  # ln 256 for ln 2 thirty times: worse, though ln 256 for ln 510 is better
    assert extended.reported.rows["a"]["baseline"]["answer"] == "worse"


def test_fault_row_57_an_edited_metric_is_another_measurement(extended):
    extended.manifest(entry("a", "half", choices="c.jsonl", metric="answer_nll"))
    assert extended.run("evals", "--tinyllm-save-baseline=main", "--tinyllm-report=before").ret == 0
    extended.file("evals/metrics/answer_nll.py", METRIC.replace("n_bytes[answer]", "n_bytes[answer] * 1.0"))
    result = extended.run_process("evals", "-n0", "--tinyllm-baseline=main")
    assert result.ret == 1
    verdict = extended.reported.rows["a"]["baseline"]
    assert verdict["answer"] == "refused"
    assert "code_sha256 of the metric" in verdict["message"]
    a, b = (read_run(extended.path / folder) for folder in ("before", "eval-report"))
    with pytest.raises(ValueError, match="got two 'answer_nll' that differ in code_sha256"):
        compare_rows(a[0]["rows"][0], a[1]["a"], b[0]["rows"][0], b[1]["a"])


DISTRIBUTION = {
    "own.dist-info/METADATA": "Metadata-Version: 2.1\nName: own\nVersion: 1\n",
    "own.dist-info/entry_points.txt": "[tinyllm.models]\ncoin = ownpack.coin\ngpt = ownpack.coin\n"
    "[tinyllm.metrics]\nanswer_nll = ownpack.answer_nll\n[tinyllm.tasks]\nmade = ownpack.made\n",
    "ownpack/__init__.py": "",
    "ownpack/coin.py": FAMILY,
    "ownpack/answer_nll.py": METRIC,
    "ownpack/made.py": TASK,
}


def test_all_three_are_found_by_entry_point_and_none_takes_a_built_in_name(project, monkeypatch):
    for name, text in DISTRIBUTION.items():
        project.file(f"site/{name}", text)
    monkeypatch.setenv("PYTHONPATH", f"{project.path}/site", prepend=":")
    project.file("evals/coin/config.json", json.dumps({"tl_arch": "coin", "bits": 3}))
    (project.path / "evals/coin/model.safetensors").write_bytes(
        (project.path / "evals/half/model.safetensors").read_bytes()
    )
    project.manifest(
        entry("family", "coin") + entry("both", "half", choices="task:made", metric="answer_nll") + entry("gpt", "gpt")
    )
    result = project.run_process("evals", "-n0")
    result.assert_outcomes(passed=2, failed=1)
    rows = project.reported.rows
    assert rows["family"]["value"] == 3
    assert rows["both"]["value"] == pytest.approx((8 * math.log(2) + 2 * math.log(510)) / 10)
    assert errors(rows)["gpt"] == (
        "ExtensionError",
        "entry point tinyllm.models: gpt = ownpack.coin: 'gpt' is the name of one of the built-in models; rename yours",
    )


BROKEN = [
    ("import nosuchthing\n", "must be importable, got ModuleNotFoundError: No module named 'nosuchthing' (line 1)"),
    ("x = 1\n1 / 0\n", "must be importable, got ZeroDivisionError: division by zero (line 2)"),
    ("def (\n", "must be importable, got SyntaxError: "),
    ("raise SystemExit(3)\n", "must be importable, got SystemExit: 3 (line 1)"),
    ("ARCH = 'coins'\n", "ARCH must be 'coin', the name that it is found by, got 'coins'"),
    ("ARCH, KIND = 'coin', 'ml'\n", "KIND must be one of 'lm', got 'ml'"),
    ("ARCH, KIND = 'coin', 'lm'\n", "a family must define load_coin(path)"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_family_that_cannot_be_used_is_the_error_of_its_rows_alone(extended, text, message):
    extended.file("evals/models/coin.py", text)
    extended.manifest(
        entry("a", "coin") + entry("b", "half") + entry("c", "weird") + entry("d", "coin", choices="c.jsonl")
    )
    extended.run("evals").assert_outcomes(passed=1, failed=2, skipped=1)
    found = errors(extended.reported.rows)
    for name in ("a", "d"):
        assert found[name][0] == "ExtensionError"
        assert found[name][1].startswith(f"models/coin.py: {message}")
    assert found["b"] is None
    assert found["c"][0] == "UnknownFamilyError"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0\n", "must be importable, got ZeroDivisionError: division by zero (line 1)"),
        ("", "METRIC must be a tinyllm.metrics.Metric, got None"),
        (METRIC.replace('"answer_nll"', '"mine"'), "METRIC.name must be 'answer_nll', as it is found by, got 'mine'"),
        (
            METRIC.replace('"lower", "lower"', '"lower", "down"'),
            "must be importable, got ValueError: better_item of a metric must be 'lower' or 'higher', got 'down'",
        ),
        (
            METRIC.replace("mean, score", "3, score"),
            "must be importable, got ValueError: estimate of a metric must be a function, got 3",
        ),
    ],
)
def test_a_metric_that_cannot_be_used_is_the_error_of_its_rows_alone(extended, text, message):
    extended.file("evals/metrics/answer_nll.py", text)
    extended.manifest(
        entry("a", "half", choices="c.jsonl", metric="answer_nll") + entry("b", "half", choices="c.jsonl")
    )
    extended.run("evals").assert_outcomes(passed=1, failed=1)
    found = errors(extended.reported.rows)
    assert (found["a"][0], found["b"]) == ("ExtensionError", None)
    assert found["a"][1].startswith(f"metrics/answer_nll.py: {message}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mean, score", "lambda scores, n_bytes: 1, score", "must give three numbers, value, lo and hi, got 1"),
        ("mean, score", "lambda scores, n_bytes: (2, 3, 4), score", "with lo <= value <= hi, got (2.0, 3.0, 4.0)"),
        ("mean, score", "lambda scores, n_bytes: (scores[0] * float('nan'), 0, 1), score", "must give a finite value"),
        ("return -sums[answer]", "return sums[answer] * float('inf')", "must give a finite score, got"),
        ("return -sums", "raise ValueError('no')\n    return -sums", "(line 1): no"),
    ],
)
def test_fault_row_62_what_a_metric_computes_is_checked_before_it_is_in_a_report(extended, old, new, message):
    extended.file("evals/metrics/answer_nll.py", METRIC.replace(old, new))
    extended.manifest(entry("a", "half", choices="c.jsonl", metric="answer_nll") + entry("b", "half"))
    extended.run("evals").assert_outcomes(passed=1, failed=1)
    assert message in errors(extended.reported.rows)["a"][1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "return np.zeros(len(ids))",
            "Coin.nll must give one NLL for each token but the first, got shape [200] for 200",
        ),
        ("return -np.ones(len(ids) - 1)", "must give NLLs, in nats and so of at least 0, got -1.0 for token 1"),
        ("return np.full(len(ids) - 1, np.nan)", "got nan for token 1"),
        ("return [0.0] * (len(ids) - 1)", None),  # a list is as good
    ],
)
def test_fault_row_62_what_a_family_computes_is_checked_too(extended, line, message):
    extended.file("evals/models/coin.py", FAMILY.replace("return np.full(len(ids) - 1, self.bits * math.log(2))", line))
    extended.manifest(entry("a", "coin"))
    extended.run("evals")
    found = errors(extended.reported.rows)["a"]
    assert found is None if message is None else message in found[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0\n", "tasks/made.py: must be importable, got ZeroDivisionError"),
        (TASK.replace('Task("made"', 'Task("other"'), "tasks/made.py: TASK.name must be 'made'"),
        (TASK.replace("for i in", "1 / 0\n    for i in"), "task:made: items() must give rows of JSON, got ZeroD"),
        (TASK.replace('"context": f"q{i}"', '"context": {i}'), "task:made: items() must give rows of JSON, got Type"),
        (TASK.replace("int(i % 5 == 4)", "2"), "task:made: line 1: answer: must be an integer from 0 to 1"),
        (TASK.replace("range(10)", "()"), "task:made: must hold at least one row, got none"),
    ],
)
def test_a_task_that_cannot_be_used_is_the_error_of_its_rows_alone(extended, text, message):
    extended.file("evals/tasks/made.py", text)
    extended.manifest(entry("a", "half", choices="task:made") + entry("b", "half", choices="c.jsonl"))
    extended.run("evals").assert_outcomes(passed=1, failed=1)
    assert errors(extended.reported.rows)["a"][1].startswith(message)


def test_unknown_names_come_with_the_nearest_of_the_users_own(extended):
    extended.file("evals/odd/config.json", json.dumps({"tl_arch": "coins"}))
    extended.manifest(
        entry("family", "odd")
        + entry("metric", "half", choices="c.jsonl", metric="answer_nil")
        + entry("task", "half", choices="task:mode")
        + entry("path", "half", choices="task:../made")
    )
    extended.run("evals")
    found = errors(extended.reported.rows)
    assert found["family"][1] == "unknown family 'coins'; did you mean 'coin'?"
    assert "must be one of acc, acc_norm, answer_nll, got 'answer_nil'" in found["metric"][1]
    assert found["task"][1] == "unknown task 'mode'; did you mean 'made'?"
    assert found["path"][0] == "FormatError"


@pytest.mark.parametrize(("kind", "name"), [("models", "bigram"), ("metrics", "acc")])
def test_a_file_with_a_built_in_name_is_an_error_that_says_so(extended, kind, name):
    extended.file(f"evals/{kind}/{name}.py", "raise AssertionError('not to be imported')\n")
    extended.manifest(entry("a", "half", choices="c.jsonl") + entry("b", "gpt"))
    extended.run("evals").assert_outcomes(passed=1, failed=1)
    found = errors(extended.reported.rows)
    assert found == {
        "a": (
            "ExtensionError",
            f"{kind}/{name}.py: {name!r} is the name of one of the built-in {kind}; rename yours",
        ),
        "b": None,
    }


def test_only_the_file_that_is_asked_for_is_imported_and_may_import_its_neighbours(extended):
    extended.file("evals/models/other.py", "raise AssertionError('nobody asked')\n")
    extended.file("evals/models/coin.py", "from .parts import *\nARCH, KIND = 'coin', 'lm'\n")
    extended.file("evals/models/parts.py", FAMILY.replace("ARCH, KIND", "_, _"))
    extended.manifest(entry("a", "coin"))
    extended.run("evals").assert_outcomes(passed=1)


@pytest.mark.parametrize("arch", ["../models/coin", "os", "tinyllm.models.gpt", "models.coin", "__init__", "coin.py"])
def test_fault_row_65_nothing_that_a_checkpoint_says_is_imported(extended, arch):
    extended.file("evals/models/__init__.py", "raise AssertionError('imported')\n")
    extended.file("evals/odd/config.json", json.dumps({"tl_arch": arch}))
    extended.manifest(entry("a", "odd"))
    extended.run("evals").assert_outcomes(skipped=1)
    assert errors(extended.reported.rows)["a"][0] == "UnknownFamilyError"


def test_fault_row_65_no_code_is_looked_for_beside_a_checkpoint_or_in_the_working_folder(extended, monkeypatch):
    """A checkpoint in a folder with models/ is data; so is that folder, for a manifest that is no file."""
    monkeypatch.chdir(extended.path / "evals")
    quiz = {"dir": "half", "choices": "c.jsonl", "metric": "answer_nll"}
    entries = [{"name": "a", "dir": "coin", "data": "t.bin"}, {"name": "b", **quiz}]
    entries.append({"name": "c", "dir": "half", "choices": "task:made"})
    rows = run_zoo({"entry": entries}, None)["rows"]
    assert rows[0]["error"]["type"] == "UnknownFamilyError"
    assert rows[1]["error"]["message"].endswith("must be one of acc, acc_norm, got 'answer_nll'")
    assert rows[2]["error"]["message"] == "unknown task 'made'; a task is a file tasks/NAME.py beside the manifest"
    elsewhere = extended.file("other/zoo.toml", entry("a", "../evals/coin", data="../evals/t.bin"))
    (row,) = run_zoo(elsewhere, None)["rows"]
    assert row["error"]["type"] == "UnknownFamilyError"
    here = extended.manifest(entry("a", "coin"))
    assert run_zoo(here, None)["rows"][0]["value"] == 2


def test_two_manifests_in_one_process_each_have_their_own(extended):
    extended.file("other/models/coin.py", FAMILY.replace("self.bits = bits", "self.bits = 2 * bits"))
    first = extended.manifest(entry("a", "coin"))
    second = extended.file("other/zoo.toml", entry("a", "../evals/coin", data="../evals/t.bin"))
    assert [run_zoo(path, None)["rows"][0]["value"] for path in (first, second, first)] == [2, 4, 2]
