"""--tinyllm-undecided and its ini twin: what becomes of a gate whose interval straddles its bound."""

import pytest
from tests.plugin.toys import entry

UNDECIDED = entry("a", "half", choices="c.jsonl", min=0.7)  # 0.75 [0.598, 0.858]


@pytest.mark.parametrize(
    ("ini", "args", "status"),
    [
        ("", (), 1),
        ("", ("--tinyllm-undecided=fail",), 1),
        ("", ("--tinyllm-undecided=warn",), 0),
        ("tinyllm_undecided = warn", (), 0),
        ("tinyllm_undecided = fail", ("--tinyllm-undecided=warn",), 0),
        ("tinyllm_undecided = warn", ("--tinyllm-undecided=fail",), 1),
    ],
)
def test_an_undecided_gate_fails_the_run_unless_told_to_warn(project, ini, args, status):
    project.ini(ini)
    project.manifest(UNDECIDED)
    assert project.run("evals", *args).ret == status
    assert project.reported.rows["a"]["gate"]["answer"] == "undecided"  # in either case


def test_the_warning_is_in_the_summary_with_the_gates_sentence(project):
    project.manifest(UNDECIDED)
    result = project.run("evals", "--tinyllm-undecided=warn")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*UndecidedGateWarning: gate undecided: a: acc 0.75, 95% interval *, n = 40, min 0.7: *straddles the bound*"]
    )


def test_warn_is_a_warning_where_warnings_are_errors(project):
    project.ini("filterwarnings = error")
    project.manifest(UNDECIDED)
    project.run("evals", "--tinyllm-undecided=warn").assert_outcomes(passed=1, warnings=1)


def test_warn_does_not_spare_a_gate_that_fails(project):
    project.manifest(entry("a", "half", choices="c.jsonl", min=0.9))
    project.run("evals", "--tinyllm-undecided=warn").assert_outcomes(failed=1)


def test_in_a_worker_too_a_warning_is_all_there_is(project, monkeypatch):
    project.file("evals/other.toml", UNDECIDED + entry("b", max=1) + entry("c"))
    monkeypatch.chdir(project.path / "evals")
    result = project.run("-n1", "--tinyllm-manifest=other.toml", "--tinyllm-undecided=warn", "-k", "not b]")
    result.assert_outcomes(passed=2, warnings=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*UndecidedGateWarning: gate undecided: a: acc 0.75*"])
    rows = project.reported.rows
    assert [(row["status"], row["error"] and row["error"]["type"]) for row in rows.values()] == [
        ("ok", None),
        ("skipped", "NotSelected"),
        ("ok", None),
    ]
    assert project.reported.report["complete"] is False
