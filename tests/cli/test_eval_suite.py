"""``tinyllm eval --suite``: a manifest's rows, the same as pytest's."""

import json

import pytest
from tests.plugin.toys import SUITE, TEST_ENTRY, Reported, entry


@pytest.fixture
def suite(here):
    """Write evals/zoo.toml."""

    def write(text):
        (here / "evals/zoo.toml").write_text(text)

    return write


def test_rows_and_items_are_the_same_bytes_as_pytests(tinyllm, suite, here, pytester, monkeypatch):
    monkeypatch.chdir(here)
    suite(SUITE)
    assert tinyllm("eval", "--suite", "zoo").status == 1
    (here / "evals/test_zoo.py").write_text(TEST_ENTRY)
    (here / "tox.ini").write_text("[pytest]\n")
    pytester.runpytest_inprocess("-n0", "-pno:cacheprovider", "evals", "--tinyllm-report=by-pytest")
    ours, theirs = Reported(here / "eval-report"), Reported(here / "by-pytest")
    assert ours.row_bytes == theirs.row_bytes
    assert ours.item_bytes == theirs.item_bytes
    assert ours.report["run"]["base_key"] == theirs.report["run"]["base_key"]


def test_the_table_and_the_reports_place_are_printed(tinyllm, suite):
    suite(entry("a", max=8.5) + entry("b", "half"))
    done = tinyllm("eval", "--suite", "zoo")
    assert done.status == 0
    assert done.out.splitlines() == [
        "row  task  metric   value  95% interval       n  gate",
        "a    t     bpb     8.0000  8.0000 – 8.0000  199  max 8.5  pass",
        "b    t     bpb     5.0173  4.4571 – 5.5774  199",
        "report: eval-report/report.json",
    ]


def test_json_is_the_report(tinyllm, suite, here):
    suite(entry("a"))
    done = tinyllm("eval", "--suite", "zoo", "--json", "--report", "r")
    assert json.loads(done.out) == Reported(here / "r").report


@pytest.mark.parametrize("name", ["zoo", "evals/zoo.toml"])
def test_a_suite_is_named_or_is_a_path(tinyllm, suite, name):
    suite(entry("a"))
    assert tinyllm("eval", "--suite", name).status == 0


@pytest.mark.parametrize(
    ("text", "undecided", "status"),
    [
        (entry("a", max=8), "fail", 0),
        (entry("a", max=7), "fail", 1),
        (entry("a", max=7), "warn", 1),
        (entry("a", "half", max=5.2), "fail", 1),
        (entry("a", "half", max=5.2), "warn", 0),
        (entry("a", "broken"), "warn", 1),
        (entry("a", "weird"), "fail", 0),
        (entry("a", "weird", max=9), "fail", 1),
        (entry("a", stide=1), "fail", 1),
    ],
)
def test_fault_row_72_the_exit_status_is_what_pytests_would_be(tinyllm, suite, text, undecided, status):
    suite(text)
    assert tinyllm("eval", "--suite", "zoo", "--undecided", undecided).status == status


@pytest.mark.parametrize(("args", "seed"), [((), 5), (("--seed", "0"), 0), (("--seed", "9"), 9)])
def test_the_seed_is_the_manifests_unless_given(tinyllm, suite, here, args, seed):
    suite("[suite]\nseed = 5\n" + entry("a"))
    tinyllm("eval", "--suite", "zoo", *args)
    assert Reported(here / "eval-report").report["seed"] == seed


def test_a_suite_that_is_not_there(refused):
    assert "evals/zoos.toml: the manifest must be a readable file" in refused("eval", "--suite", "zoos")


def test_a_manifests_own_fault_is_exit_status_4_and_writes_nothing(refused, suite, here):
    suite(entry("a") + entry("a"))
    assert "entry[1].name: must be unique, got 'a' again" in refused("eval", "--suite", "zoo")
    assert not (here / "eval-report").exists()


def test_a_report_folder_that_cannot_be_written_is_refused_before_anything_is_scored(refused, suite, here, monkeypatch):
    suite(entry("a"))
    (here / "r").write_text("")
    monkeypatch.setattr("tinyllm.eval.zoo.evaluate_manifest", lambda *_, **__: pytest.fail("scored"))
    line = refused("eval", "--suite", "zoo", "--report", "r")
    assert line == "tinyllm: r: the report folder must be writable, got 'Not a directory'"


@pytest.mark.parametrize("option", ["model", "data", "task", "ctx-len", "stride", "max-len", "metric"])
def test_options_of_other_forms_are_refused(refused, suite, option):
    suite(entry("a"))
    value = {"metric": "acc"}.get(option, "1")
    line = refused("eval", "--suite", "zoo", f"--{option}", value)
    assert line == f"tinyllm: tinyllm eval --suite does not take --{option}"


def test_a_run_that_is_broken_off_keeps_its_rows_and_says_what_it_was_at(tinyllm, suite, here, monkeypatch):
    from tinyllm.eval import zoo

    suite(entry("a", max=9) + entry("b", "half", max=9) + entry("c", max=9))
    load_model = zoo.load_model

    def interrupted(path):
        if path.name == "half":
            raise KeyboardInterrupt
        return load_model(path)

    monkeypatch.setattr(zoo, "load_model", interrupted)
    assert tinyllm("eval", "--suite", "zoo").status == 130
    rows = Reported(here / "eval-report").rows
    assert [(row["value"], (row["error"] or {}).get("type")) for row in rows.values()] == [
        (8.0, None),
        (None, "Interrupted"),
        (None, "NotRun"),
    ]
    assert [row["gate"]["answer"] for row in rows.values()] == ["pass", "not-evaluated", "not-evaluated"]
    assert Reported(here / "eval-report").report["complete"] is False
    monkeypatch.setattr(zoo, "load_model", load_model)
    assert tinyllm("eval", "--suite", "zoo").status == 0
    assert Reported(here / "eval-report").report["complete"] is True


def test_a_complete_report_is_not_lost_to_a_run_that_is_broken_off(tinyllm, suite, here, monkeypatch):
    from tinyllm.eval import zoo

    suite(entry("a") + entry("b", "half"))
    tinyllm("eval", "--suite", "zoo")
    before = (here / "eval-report/report.json").read_bytes()

    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(zoo, "load_model", interrupt)
    assert tinyllm("eval", "--suite", "zoo").status == 130
    assert (here / "eval-report/report.json").read_bytes() == before
    partial = json.loads((here / "eval-report/report.partial.json").read_text())
    assert [row["error"]["type"] for row in partial["rows"]] == ["Interrupted", "NotRun"]
    assert tinyllm("eval", "--suite", "zoo", "--overwrite").status == 130
    assert json.loads((here / "eval-report/report.json").read_text())["complete"] is False


def test_a_limit_takes_the_items_that_pytest_takes(tinyllm, suite, here, pytester, monkeypatch):
    monkeypatch.chdir(here)
    suite(SUITE)
    tinyllm("eval", "--suite", "zoo", "--limit", "7")
    (here / "evals/test_zoo.py").write_text(TEST_ENTRY)
    (here / "tox.ini").write_text("[pytest]\n")
    pytester.runpytest_inprocess(
        "-n0", "-pno:cacheprovider", "evals", "--tinyllm-report=by-pytest", "--tinyllm-limit=7"
    )
    ours, theirs = Reported(here / "eval-report"), Reported(here / "by-pytest")
    assert ours.rows["cloze"]["n"] == 7
    assert (ours.row_bytes, ours.item_bytes) == (theirs.row_bytes, theirs.item_bytes)
    assert ours.report["run"]["limit"] == theirs.report["run"]["limit"] == "7"


def test_a_limit_that_is_none_is_refused(refused, suite):
    suite(entry("a"))
    line = refused("eval", "--suite", "zoo", "--limit", "0")
    assert line == "tinyllm: a limit must be a number of items of at least 1, or a share such as 0.1, got '0'"
