"""An entry for which the suite has no test says so, and is red where something was asked of it."""

import pytest
from tests.plugin.toys import entry

ONE = "def test_one(evaluate):\n    assert evaluate('a').value == 8\n"


@pytest.fixture
def uncovered(project):
    project.file("evals/test_zoo.py", ONE)
    return project


def test_its_row_says_that_no_test_asks_for_it(uncovered):
    uncovered.manifest(entry("a") + entry("b"))
    assert uncovered.run("evals").ret == 0
    row = uncovered.reported.rows["b"]
    assert (row["status"], row["error"]["type"]) == ("skipped", "NotAsked")
    assert uncovered.reported.report["complete"] is True
    assert uncovered.run("evals", "-k", "one").ret == 0  # deselected, for all anybody knows
    assert uncovered.run("evals/test_zoo.py").ret == 0
    uncovered.file("eval-report/report.json", "")
    uncovered.run("evals", "-k", "one")
    assert uncovered.reported.rows["b"]["error"]["type"] == "NotSelected"


def test_with_a_gate_it_is_red(uncovered):
    uncovered.manifest(entry("a") + entry("b", max=9))
    result = uncovered.run("evals")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED b: it has a gate, and no test of the suite asks for this row"])
    assert uncovered.run("evals", "-k", "one").ret == 0


def test_against_a_baseline_that_has_its_number_it_is_red(project):
    project.manifest(entry("a") + entry("b"))
    assert project.run("evals", "--tinyllm-save-baseline=main").ret == 0
    project.file("evals/test_zoo.py", ONE)
    result = project.run("evals", "--tinyllm-baseline=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED b: baseline main/0001 has bpb 8.0, and this run has no number: *NotAsked*"])


@pytest.mark.parametrize("option", ["manifest", "report", "baseline", "save-baseline", "limit"])
def test_an_option_that_is_empty_is_refused(project, option):
    result = project.run("evals", f"--tinyllm-{option}=")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*--tinyllm-{option} must not be empty: *variable that is not set*"])
