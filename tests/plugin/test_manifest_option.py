"""--tinyllm-manifest and its ini twin: which manifest, and what becomes of its entries."""

import json

import pytest
from tests.plugin.toys import entry


def outcomes(result):
    return {line.split()[0].partition("[")[2].rstrip("]"): line.split()[1] for line in result.outlines if "[" in line}


def test_an_entry_is_an_item_by_its_name(project):
    project.manifest(entry("one.two-three_4") + entry("5"))
    result = project.run("evals", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["evals/test_zoo.py::test_entry[[]one.two-three_4] PASSED*", "evals/test_zoo.py::test_entry[[]5] PASSED*"]
    )


def test_an_entry_runs_alone_by_its_node_id(project):
    project.manifest(entry("a") + entry("ab") + entry("b"))
    project.run("evals/test_zoo.py::test_entry[a]").assert_outcomes(passed=1)
    assert {name: row["status"] for name, row in project.reported.rows.items()} == {
        "a": "ok",
        "ab": "skipped",
        "b": "skipped",
    }


def test_the_option_is_relative_to_where_pytest_was_started(project, monkeypatch):
    project.file("elsewhere/other.toml", entry("other", "../evals/uniform", data="../evals/t.bin"))
    monkeypatch.chdir(project.path / "elsewhere")
    project.run("--tinyllm-manifest=other.toml", "../evals").assert_outcomes(passed=1)
    assert list(project.reported.rows) == ["other"]
    assert project.reported.report["suite"] == "other"


def test_the_ini_value_is_relative_to_the_root_folder(project, monkeypatch):
    project.file("elsewhere/other.toml", entry("other", "../evals/uniform", data="../evals/t.bin"))
    project.ini("tinyllm_manifest = elsewhere/other.toml")
    monkeypatch.chdir(project.path / "elsewhere")
    project.run("../evals").assert_outcomes(passed=1)
    assert list(project.reported.rows) == ["other"]


def test_the_option_wins_over_the_ini_value(project):
    project.manifest(entry("default"))
    project.file("evals/ini.toml", entry("ini"))
    project.file("evals/option.toml", entry("option"))
    project.ini("tinyllm_manifest = evals/ini.toml")
    project.run("evals", "--tinyllm-manifest=evals/option.toml").assert_outcomes(passed=1)
    assert list(project.reported.rows) == ["option"]
    project.run("evals").assert_outcomes(passed=1)
    assert list(project.reported.rows) == ["ini"]


def test_a_json_manifest_will_do(project):
    document = {"suite": {"name": "j"}, "entry": [{"name": "a", "dir": "uniform", "data": "t.bin"}]}
    project.file("evals/zoo.json", json.dumps(document))
    project.run("evals", "--tinyllm-manifest=evals/zoo.json").assert_outcomes(passed=1)
    assert project.reported.report["suite"] == "j"


def test_entries_that_cannot_be_scored_are_items_beside_those_that_can(project):
    project.manifest(
        entry("good")
        + entry("typo", stide=4)
        + entry("gone", "nowhere")
        + entry("broken", "broken")
        + entry("weird", "weird")
        + entry("family", "uniform", stride=4)
    )
    result = project.run("evals")
    result.assert_outcomes(passed=1, failed=4, skipped=1)
    errors = {name: row["error"] for name, row in project.reported.rows.items()}
    assert errors["good"] is None
    assert "unknown key 'stide'; did you mean 'stride'?" in errors["typo"]["message"]
    assert (errors["gone"]["type"], errors["family"]["type"]) == ("CheckpointError", "ValueError")
    assert errors["gone"]["message"].startswith("nowhere: ")
    assert errors["broken"]["message"].startswith("broken: must hold model.safetensors")
    assert "unknown family 'rwkv'" in errors["weird"]["message"]
    assert project.reported.report["complete"] is True
    for name in ("typo", "gone", "broken", "family"):  # the test's message is the row's, and nothing of pytest's
        result.stdout.fnmatch_lines([f"{name}: error: {errors[name]['type']}: {errors[name]['message']}"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_rows_are_the_same_wherever_the_manifest_is_named_from(project, monkeypatch):
    project.manifest(entry("a") + entry("half", "half"))
    project.run("evals")
    first = project.reported.row_bytes, project.reported.item_bytes
    monkeypatch.chdir(project.path / "evals")
    project.run("--tinyllm-manifest=zoo.toml", "--tinyllm-report=../eval-report")
    assert (project.reported.row_bytes, project.reported.item_bytes) == first


@pytest.mark.parametrize("change", ["reorder", "add", "remove"])
def test_a_row_does_not_depend_on_the_entries_beside_it(project, change):
    a, b, c = entry("a", "gpt"), entry("b", "half", choices="c.jsonl"), entry("c")
    project.manifest(a + b)
    project.run("evals")
    first = project.reported.rows
    project.manifest({"reorder": b + a, "add": c + a + b, "remove": b}[change])
    project.run("evals")
    assert project.reported.rows["b"] == first["b"]
