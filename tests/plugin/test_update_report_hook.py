"""pytest_tinyllm_update_report: facts may be added to a finished report; numbers and rows stay what they are."""

import pytest
from tests.plugin.toys import entry

SUITE = entry("a") + entry("b", "half", choices="c.jsonl")


def implement(project, body):
    project.manifest(SUITE)
    project.file("evals/conftest.py", f"import pytest\ndef pytest_tinyllm_update_report(config, report):\n    {body}\n")


@pytest.mark.parametrize("mode", ["-n0", "-n1"])
def test_what_it_adds_is_in_the_report_once(project, mode):
    body = "report['run']['commit'] = report['run'].get('commit', '') + config.rootpath.name"
    implement(project, f"{body}\n    report['rows'][1]['notes']['owner'] = {{'team': ['x', 1, None]}}")
    result = project.run("evals", mode)
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    assert project.reported.report["run"]["commit"] == project.path.name
    assert project.reported.rows["b"]["notes"]["owner"] == {"team": ["x", 1, None]}
    assert project.reported.report["complete"] is True


def test_a_baseline_is_saved_with_it(project):
    implement(project, "report['run']['commit'] = 'abc'")
    assert project.run("evals", "--tinyllm-save-baseline=main").ret == 0
    assert '"commit": "abc"' in (project.path / "evals/baselines/main/0001/report.json").read_text()


def test_it_sees_a_finished_report_also_of_a_run_that_failed(project):
    implement(project, "report['run']['seen'] = [report['complete'], [row['status'] for row in report['rows']]]")
    project.manifest(SUITE + entry("c", "broken"))
    assert project.run("evals").ret == 1
    assert project.reported.report["run"]["seen"] == [True, ["ok", "ok", "error"]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("report['rows'][0]['value'] = 7.9", "another rows[0].value"),
        ("report['rows'][0]['n'] = float(report['rows'][0]['n'])", "another rows[0].n"),
        ("report['rows'].pop()", "another number of rows"),
        ("report['rows'][0]['note'] = 1", "another rows[0].note"),
        ("del report['rows'][1]['notes']['predicted']", "another rows[1].notes.predicted"),
        ("report['rows'][0] = None", "another rows[0].arch"),
        ("del report['run']['base_key']", "another run.base_key"),
        ("report['run']['workers'] = 9", "another run.workers"),
        ("report['complete'] = False", "another complete"),
        ("report['extra'] = 1", "another extra"),
        ("report.clear()", "another complete"),
        ("report['run']['x'] = float('nan')", "run.x: must be a finite number or null, got nan"),
        ("report['run']['x'] = {1, 2}", "run.x: must be plain JSON, got {1, 2} of type set"),
        ("report['run']['x'] = report", "RecursionError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("pytest.fail('no')", "Failed: no"),
        ("raise SystemExit(5)", "SystemExit: 5"),
    ],
)
def test_what_breaks_its_rule_costs_no_row_and_fails_the_run(project, body, message):
    project.manifest(SUITE)
    project.run("evals")
    rows = project.reported.row_bytes
    implement(project, body)
    result = project.run("evals")
    assert result.ret == 1
    result.assert_outcomes(passed=2)
    line = next(line for line in result.outlines if line.startswith("FAILED pytest_tinyllm_update_report: "))
    assert message in line
    assert project.reported.row_bytes == rows
    assert project.reported.report["complete"] is True


def test_it_is_not_called_for_a_run_without_evaluations(project):
    implement(project, "1 / 0")
    project.file("tests/test_plain.py", "def test_plain(): pass\n")
    assert project.run("tests").ret == 0
    assert project.run("evals", "--collect-only").ret == 0
