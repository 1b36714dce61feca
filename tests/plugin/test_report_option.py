"""--tinyllm-report and its ini twin: one report, what is in it, and when there is none."""

import pytest
from tests.plugin.toys import HALF_BPB, N_TOKENS, WILSON_30_OF_40, entry

from tinyllm.report.store import read_run

A_AND_B = entry("a") + entry("b", "half")


def test_the_report_lies_in_eval_report_under_the_root_folder(project, monkeypatch):
    project.manifest(A_AND_B)
    monkeypatch.chdir(project.path / "evals")
    result = project.run()
    assert sorted(path.name for path in (project.path / "eval-report").iterdir()) == [
        "items.safetensors",
        "report.json",
    ]
    result.stdout.fnmatch_lines(["report: ../eval-report/report.json"])


def test_the_option_is_relative_to_where_pytest_was_started_and_folders_are_made(project, monkeypatch):
    project.manifest(A_AND_B)
    monkeypatch.chdir(project.path / "evals")
    project.run("--tinyllm-report=../deep/er").assert_outcomes(passed=2)
    assert (project.path / "deep/er/report.json").is_file()
    assert not (project.path / "eval-report").exists()


def test_the_ini_value_is_relative_to_the_root_folder_and_yields_to_the_option(project, monkeypatch):
    project.manifest(A_AND_B)
    project.ini("tinyllm_report = out")
    monkeypatch.chdir(project.path / "evals")
    project.run().assert_outcomes(passed=2)
    assert (project.path / "out/report.json").is_file()
    project.run("--tinyllm-report=here").assert_outcomes(passed=2)
    assert (project.path / "evals/here/report.json").is_file()


def test_the_numbers_in_the_report_are_those_worked_by_hand(project):
    project.manifest(A_AND_B + entry("c", "half", choices="c.jsonl"))
    project.run("evals").assert_outcomes(passed=3)
    rows = project.reported.rows
    a, b, c = rows["a"], rows["b"], rows["c"]
    assert (a["value"], a["lo"], a["hi"], a["n"]) == (8, 8, 8, N_TOKENS)
    assert b["value"] == pytest.approx(HALF_BPB, abs=1e-6)
    assert (c["value"], c["n"]) == (0.75, 40)
    assert (c["lo"], c["hi"]) == pytest.approx(WILSON_30_OF_40, abs=1e-6)
    assert [(row["metric"], row["task"], row["arch"]) for row in (a, c)] == [
        ("bpb", "t", "bigram"),
        ("acc", "c", "bigram"),
    ]


def test_a_report_reads_back_with_its_items(project):
    project.manifest(A_AND_B + entry("c", "half", choices="c.jsonl"))
    project.run("evals")
    report, results = read_run(project.path / "eval-report")
    assert [row["name"] for row in report["rows"]] == ["a", "b", "c"]
    assert results["c"].per_item.tolist() == [1.0, 1.0, 1.0, 0.0] * 10
    assert results["c"].ids[0].startswith("0:")
    assert (
        results["b"].value
        == report["rows"][1]["value"]
        == pytest.approx(results["b"].per_item.mean() / 0.6931471805599453)
    )


def test_the_run_is_described_beside_the_rows(project):
    project.manifest(A_AND_B)
    project.run("evals")
    run = project.reported.report["run"]
    assert (run["manifest"], run["workers"], run["threads"]) == ("evals/zoo.toml", 0, 1)
    assert run["duration_s"] >= 0
    assert {"torch", "numpy", "pytest"} <= set(run["versions"])


def test_the_table_is_printed_with_a_line_for_every_entry(project):
    project.manifest(entry("a", max=8.5) + entry("weird", "weird"))
    result = project.run("evals")
    result.stdout.fnmatch_lines(
        [
            "=* zoo =*",
            "row * task *metric * value * 95% interval * n * gate",
            "a * t * bpb * 8.0000 * 8.0000 – 8.0000 * 199 * max 8.5 * pass",
            "weird * skipped: unknown family 'rwkv'; known are *",
            "report: eval-report/report.json",
        ]
    )


def test_entries_that_were_not_selected_are_skipped_rows_and_the_report_is_incomplete(project):
    project.manifest(A_AND_B + entry("typo", stide=1, max=1))
    project.run("evals", "-k", "test_entry and b").assert_outcomes(passed=1, deselected=2)
    report = project.reported
    assert report.report["complete"] is False
    assert report.rows["b"]["status"] == "ok"
    for name in ("a", "typo"):
        assert (report.rows[name]["status"], report.rows[name]["error"]["type"]) == ("skipped", "NotSelected")


def test_entries_that_were_not_reached_are_error_rows_and_the_report_is_incomplete(project):
    project.manifest(entry("a", max=1) + entry("b", "half"))
    result = project.run("evals", "-x")
    result.assert_outcomes(failed=1)
    report = project.reported
    assert report.report["complete"] is False
    assert (report.rows["a"]["status"], report.rows["a"]["gate"]["answer"]) == ("ok", "fail")
    assert (report.rows["b"]["status"], report.rows["b"]["error"]["type"]) == ("error", "NotRun")
    result.stdout.fnmatch_lines(["b *error: the run ended before this row was scored: stopping after 1 failures"])


def test_an_entry_whose_setup_fails_is_an_error_row(project):
    project.manifest(A_AND_B)
    project.file("evals/conftest.py", "import pytest\n@pytest.fixture(autouse=True)\ndef f(): raise OSError('disk')\n")
    project.run("evals").assert_outcomes(errors=2)
    errors = [row["error"] for row in project.reported.rows.values()]
    assert errors == [{"type": "OSError", "message": "setup: disk"}] * 2


def test_a_run_stopped_by_the_keyboard_still_reports(project):
    project.manifest(A_AND_B)
    project.file(
        "evals/conftest.py", "def pytest_runtest_setup(item):\n    if '[b]' in item.name: raise KeyboardInterrupt\n"
    )
    stopped = project.pytester.inline_run("evals", "-n0", "-pno:cacheprovider", no_reraise_ctrlc=True)
    assert stopped.ret == pytest.ExitCode.INTERRUPTED
    assert {name: row["status"] for name, row in project.reported.rows.items()} == {"a": "ok", "b": "error"}


@pytest.mark.parametrize(
    "dry", ["--collect-only", "--setup-plan", "--setup-only", "--fixtures", "--fixtures-per-test", "--help"]
)
def test_a_run_that_scores_nothing_writes_nothing(project, dry):
    project.manifest(A_AND_B)
    project.run("evals", dry)
    assert not (project.path / "eval-report").exists()


def test_a_run_that_selects_nothing_writes_nothing(project):
    project.manifest(A_AND_B)
    assert project.run("evals", "-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not (project.path / "eval-report").exists()


def test_tests_that_only_look_like_an_entry_do_not_touch_the_report(project):
    project.manifest(A_AND_B)
    project.file(
        "evals/test_more.py", "import pytest\n@pytest.mark.parametrize('x', ['a', 'b'])\ndef test_more(x): pass\n"
    )
    project.run("evals", "-k", "test_more").assert_outcomes(passed=2, deselected=2)
    assert not (project.path / "eval-report").exists()


def test_a_report_that_cannot_be_written_at_the_end_leaves_the_table_and_exit_status_4(project):
    project.manifest(A_AND_B)
    project.file(
        "evals/test_zz.py",
        "import pathlib, shutil\n"
        "def test_zz():\n    shutil.rmtree('eval-report')\n    pathlib.Path('eval-report').write_text('')\n",
    )
    result = project.run("evals")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["a * bpb * 8.0000 *", "the report was not written: *eval-report*"])


def test_fault_row_58_the_old_report_stays_until_the_new_one_is_whole(project, monkeypatch):
    project.manifest(A_AND_B)
    project.run("evals")
    path = project.path / "eval-report/report.json"
    before = path.stat().st_ino
    project.file(
        "evals/conftest.py",
        "from pathlib import Path\ndef pytest_runtest_teardown():\n"
        f"    assert Path({str(path)!r}).stat().st_ino == {before}\n",
    )
    project.run("evals").assert_outcomes(passed=2)
    assert path.stat().st_ino != before
    assert not [path for path in (project.path / "eval-report").iterdir() if path.suffix == ".tmp"]
