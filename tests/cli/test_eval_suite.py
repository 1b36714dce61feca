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
