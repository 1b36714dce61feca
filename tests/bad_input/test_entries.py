"""Everything that can be wrong with an entry, in one manifest: each is its own row, and no other row is lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bad_input.bad_zoo import BAD, HEALTHY, bad_entry
from tests.plugin.toys import TEST_ENTRY, Reported, entry

from tinyllm.cli import main
from tinyllm.eval import zoo
from tinyllm.eval.zoo import load_model, run_zoo
from tinyllm.formats.report import check_report

C_LOCALE = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(scope="session")
def report(bad_zoo):
    return run_zoo(bad_zoo / "zoo.toml", None)


@pytest.fixture(scope="session")
def rows(report):
    return {row["name"]: row for row in report["rows"]}


@pytest.fixture
def project(bad_zoo, tmp_path, monkeypatch):
    """A folder with evals/ of every fault, where a run is started."""
    shutil.copytree(bad_zoo, tmp_path / "evals", symlinks=True)
    (tmp_path / "evals/test_zoo.py").write_text(TEST_ENTRY)
    (tmp_path / "tox.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python(*args: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    env = outside | environment | {"OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", *args], env=env, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("name", BAD)
def test_the_row_says_why_in_one_sentence(rows, bad_zoo, name):
    _, kind, message = BAD[name]
    row = rows[name]
    assert (row["status"], row["value"], row["n"], row["error"]["type"]) == ("error", None, None, kind)
    assert message in row["error"]["message"]
    assert "\n" not in row["error"]["message"]
    assert str(bad_zoo) not in row["error"]["message"]  # a row does not depend on where it was scored


def test_no_other_row_is_lost(rows, bad_zoo):
    (bad_zoo / "healthy.toml").write_text(HEALTHY)
    text, task = run_zoo(bad_zoo / "healthy.toml", None)["rows"]
    assert (text["status"], task["status"]) == ("ok", "ok")
    for part in ("healthy", "again", "last"):
        for healthy in (text, task):
            name = healthy["name"].replace("healthy", part)
            assert rows[name] == {
                **healthy,
                "name": name,
                "gate": rows[name]["gate"] and {**healthy["gate"], "message": rows[name]["gate"]["message"]},
            }
    assert set(rows) == {
        *BAD,
        *(f"{part}-{kind}" for part in ("healthy", "again", "last") for kind in ("text", "task")),
    }


def test_fault_row_65_nothing_of_a_pickle_was_run(rows, bad_zoo):
    assert rows["weights-a-pickle-row-65"]["status"] == "error"
    assert not (bad_zoo / "executed").exists()


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_pytest_has_the_same_rows_and_exit_status_1(project, pytester, monkeypatch, report, workers):
    monkeypatch.chdir(project)
    done = pytester.runpytest_inprocess(workers, "-q", "-p", "no:cacheprovider", "evals")
    output = "\n".join([*done.outlines, *done.errlines])
    assert done.ret == 1, output
    assert "Traceback" not in output
    assert "INTERNALERROR" not in output
    found = Reported(project / "eval-report").report
    assert found["rows"] == report["rows"]
    assert found["complete"] is True


def test_the_command_line_has_the_same_rows_and_exit_status_1(project, report, capsys):
    assert main(["eval", "--suite", "zoo"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert len(out.splitlines()) == 1 + len(report["rows"]) + 1  # a heading, a line a row, the report's place
    assert Reported(project / "eval-report").report["rows"] == report["rows"]


@pytest.mark.parametrize(
    "path",
    [
        *("cut.bin", "stub.bin", "beyond.bin", "torn.jsonl", "torn.jsonl.gz", "bad-line.jsonl", "twice.jsonl"),
        *("beyond.jsonl", "empty-choice.jsonl", "hollow", "config-empty", "config-a-list", "config-without-family"),
        *("weights-empty", "weights-cut-short", "weights-a-pickle", "weights-not-finite", "link-out"),
    ],
)
def test_validate_says_the_same_about_the_file(bad_zoo, monkeypatch, capsys, path):
    monkeypatch.chdir(bad_zoo)
    assert main(["validate", path]) == 1
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert line.startswith("invalid: ")
    assert path in line
    assert out == ""


def test_fault_row_60_a_manifest_with_byte_order_mark_and_crlf_gives_the_same_bytes(project):
    path = project / "evals/zoo.toml"
    assert main(["eval", "--suite", "zoo", "--report", "plain"]) == 1
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert main(["eval", "--suite", "zoo", "--report", "marked"]) == 1
    plain, marked = Reported(project / "plain"), Reported(project / "marked")
    assert marked.row_bytes == plain.row_bytes
    assert marked.item_bytes == plain.item_bytes


@pytest.fixture
def cyrillic(project):
    """Files with names that ASCII does not have, healthy and not."""
    evals = project / "evals"
    shutil.copytree(evals / "half", evals / "модель")
    shutil.copy(evals / "t.bin", evals / "текст.bin")
    shutil.copy(evals / "c.jsonl", evals / "задача.jsonl")
    entries = [
        entry("text", "модель", data="текст.bin", max=8),
        entry("task", "модель", choices="задача.jsonl"),
        entry("emoji", task="emoji").replace('"emoji"\n', '"😀"\n').replace('"😀"', '"emoji"', 1),
        entry("..", "модель", choices="задача.jsonl"),  # a legal name, and no path
        entry("missing", data="нет.bin"),
        entry("typo", модель="x").replace("модель =", '"модель" ='),
    ]
    (evals / "zoo.toml").write_text("".join(entries), encoding="utf-8")
    return project


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_fault_row_61_pytest_in_a_c_locale_gives_the_same_bytes(cyrillic, workers):
    assert main(["eval", "--suite", "zoo", "--report", "utf8"]) == 1
    done = python("pytest", workers, "-q", "-p", "no:cacheprovider", "evals", **C_LOCALE)
    assert done.returncode == 1, done.stdout
    assert b"Traceback" not in done.stdout + done.stderr
    utf8, ascii_ = Reported(cyrillic / "utf8"), Reported(cyrillic / "eval-report")
    assert ascii_.row_bytes == utf8.row_bytes
    assert ascii_.item_bytes == utf8.item_bytes
    status = [row["status"] for row in utf8.rows.values()]
    assert status == ["ok", "ok", "ok", "ok", "error", "error"]
    assert utf8.rows["task"]["data"]["name"] == "задача.jsonl"
    assert utf8.rows["missing"]["error"]["message"].startswith("нет.bin: ")


def test_fault_row_61_the_command_line_in_a_c_locale_loses_no_number(cyrillic):
    assert main(["eval", "--suite", "zoo", "--report", "utf8"]) == 1
    done = python("tinyllm", "eval", "--suite", "zoo", **C_LOCALE)
    assert (done.returncode, done.stderr) == (1, b"")
    assert rb"0.5981 \u2013 0.8581" in done.stdout
    assert Reported(cyrillic / "eval-report").row_bytes == Reported(cyrillic / "utf8").row_bytes
    printed = python("tinyllm", "eval", "--suite", "zoo", "--json", **C_LOCALE)
    assert json.loads(printed.stdout)["rows"] == Reported(cyrillic / "utf8").report["rows"]


def test_a_task_file_of_any_name_can_be_scored(cyrillic, capsys):
    """The suite is called after the file, as far as a suite's name can hold it."""
    assert main(["eval", "--model", "evals/модель", "--task", "evals/задача.jsonl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["suite"], [row["name"] for row in found["rows"]]) == ("task", ["model"])


NO_SLUG = "zoo.toml: entry[0].name: must be a slug of 1 to 64 characters A-Z a-z 0-9 . _ -, got "


@pytest.mark.parametrize("name", ["n" * 300, "модель", "a/b", "", "a\0b"])
def test_a_name_that_is_no_slug_is_exit_status_4(project, capsys, name):
    (project / "evals/zoo.toml").write_text(entry(name), encoding="utf-8")
    assert main(["eval", "--suite", "zoo"]) == 4
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"tinyllm: evals/{NO_SLUG}{name!r}\n")
    assert not (project / "eval-report").exists()


@pytest.mark.parametrize("command", ["tinyllm eval --suite zoo", "pytest -n0 -p no:cacheprovider evals"])
def test_a_name_that_the_terminal_cannot_show_is_exit_status_4_too(project, command):
    (project / "evals/zoo.toml").write_text(entry("модель"), encoding="utf-8")
    done = python(*command.split(), **C_LOCALE)
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.decode("ascii").splitlines() if line.strip()]
    assert line.endswith(NO_SLUG + ascii("модель"))
    assert not (project / "eval-report").exists()


# --- what only a model can do


class EveryThird:
    """A model that fails on every third item."""

    vocab_size = 256

    def __init__(self, model):
        self.model, self.calls = model, 0

    def __call__(self, ids):
        self.calls += 1
        if self.calls % 3 == 0:
            raise RuntimeError(f"call {self.calls} failed")
        return self.model(ids)


def test_fault_row_53_a_task_whose_model_fails_on_some_items_has_no_score_over_the_others(bad_zoo, monkeypatch):
    monkeypatch.setattr(zoo, "load_model", lambda path: EveryThird(load_model(path)))
    (bad_zoo / "third.toml").write_text(entry("third", "half", choices="c.jsonl", min=0.1))
    (row,) = run_zoo(bad_zoo / "third.toml", None)["rows"]
    assert (row["status"], row["value"], row["n"]) == ("error", None, None)
    assert row["error"]["type"] == "RuntimeError"
    assert "call 3 failed" in row["error"]["message"]
    assert row["gate"]["answer"] == "not-evaluated"


class Constant:
    """The same logit everywhere."""

    vocab_size = 256
    ctx_len = 16

    def __init__(self, value):
        self.value = value

    def __call__(self, ids):
        import numpy as np

        return np.full((*ids.shape, 256), self.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("keys", [{}, {"choices": "c.jsonl"}], ids=["text", "task"])
def test_fault_row_62_numbers_that_are_none_make_an_error_row_and_a_valid_report(bad_zoo, monkeypatch, value, keys):
    monkeypatch.setattr(zoo, "load_model", lambda _: Constant(value))
    (bad_zoo / "constant.toml").write_text(entry("bad", "half", **keys))
    report = run_zoo(bad_zoo / "constant.toml", None)
    (row,) = report["rows"]
    assert (row["status"], row["error"]["type"]) == ("error", "ValueError")
    assert repr(value) in row["error"]["message"].lower()
    check_report(report, "report")
    json.dumps(report, allow_nan=False)


def test_each_fault_alone_is_the_same_row(rows, bad_zoo):
    """So that none is hidden by another's checkpoint or text, remembered from a row before."""
    for name in ("weights-a-pickle-row-65", "ids-beyond-the-vocabulary", "pinned-to-another-hash"):
        path = Path(bad_zoo / "alone.toml")
        path.write_text(bad_entry(name))
        assert run_zoo(path, None)["rows"] == [rows[name]]
