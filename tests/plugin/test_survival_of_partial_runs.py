"""Runs that end early or run a part: interrupts, -x, --maxfail, -k, --lf, deselection, broken files and fixtures."""

import pytest
from tests.plugin.survival import LOST, check, doom, run, run_mode
from tests.plugin.toys import TEST_ENTRY, entry

from tinyllm.report.store import read_run

MODES = ["-n0", "-n1"]
THREE = entry("a") + entry("b") + entry("c")
NO_CACHE = "-pno:cacheprovider"
NOT_SELECTED = ("skipped", "NotSelected", "this run did not select the row")


def says_what_kept_it(ended, setup_fails, skipped, fails, broken):
    assert ended.reason(setup_fails) == ("error", "OSError", "setup: no such disk")
    assert ended.reason(skipped) == ("skipped", "Skipped", "setup: not today")
    assert ended.reason(fails) == ("error", "Failed", "as told")
    assert {ended.reason(name)[1] for name in broken} == {"CheckpointError"}
    assert ended.status == 1
    assert ended.report["complete"] is True


def test_each_row_says_what_kept_it_from_being_scored(project):
    broken = [f"broken-{i}" for i in range(4)]
    project.manifest(THREE + entry("d") + entry("e") + "".join(entry(name, "broken") for name in broken))
    doom(project, b="setup", c="skip", d="fail")
    project.file("evals/test_syntax.py", "def test_(:\n")
    ended = run_mode(project, "-n0", NO_CACHE)
    check(ended, lost={"b", "c", "d", *broken})
    says_what_kept_it(ended, "b", "c", "d", broken)


def test_with_workers_too_each_row_says_what_kept_it_from_being_scored(every_fate):
    check(every_fate, lost=LOST)
    says_what_kept_it(every_fate, "setup_fails", "skipped", "fails", [f"broken_{i}" for i in range(4)])


@pytest.mark.parametrize("mode", MODES)
def test_entries_whose_own_file_cannot_be_collected_say_so(project, mode):
    project.manifest(THREE)
    project.file("evals/test_zoo.py", "def test_(:\n")
    ended = run_mode(project, mode, NO_CACHE)
    check(ended, lost={"a", "b", "c"})
    for name in "abc":
        assert ended.reason(name) == (
            "error",
            "NotRun",
            "the run ended before this row was scored: evals/test_zoo.py could not be collected",
        )
    assert ended.status == 1


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_ctrl_c_leaves_the_row_it_met_interrupted_and_the_others_not_run(project, mode):
    project.manifest("".join(entry(name) for name in "abcdef"))
    started = project.path / "started"
    project.file(
        "evals/conftest.py",
        "import pathlib, time\n"
        "def pytest_runtest_call(item):\n"
        f"    if '[b]' in item.name: pathlib.Path({str(started)!r}).touch(); time.sleep(100)\n",
    )
    ended = run(project, mode, NO_CACHE, interrupt_when=started)
    check(ended, lost={"a", "b", "c", "d", "e", "f"} - set(ended.scored))
    assert ended.reason("b")[:2] == ("error", "Interrupted")
    assert ended.status == 2
    assert ended.report["complete"] is False
    if mode == "-n0":
        assert ended.reason("c") == ("error", "NotRun", "the run ended before this row was scored: keyboard interrupt")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stop", ["-x", "--maxfail=2"])
def test_rows_after_the_last_failure_that_was_allowed_are_not_run_and_say_what_stopped_it(project, mode, stop):
    names = [f"r{i}" for i in range(8)]
    project.manifest("".join(entry(name) for name in names))
    doom(project, **dict.fromkeys(names, "fail"))
    ended = run_mode(project, mode, NO_CACHE, stop)
    check(ended, lost=set(names))
    reasons = [ended.reason(name) for name in names]
    failures = 1 if stop == "-x" else 2
    assert [error for _, error, _ in reasons].count("Failed") >= failures
    not_run = {message for _, error, message in reasons if error == "NotRun"}
    assert not_run <= {f"the run ended before this row was scored: stopping after {failures} failures"}
    assert {error for _, error, _ in reasons} <= {"Failed", "NotRun", "Interrupted"}
    if mode == "-n0":
        assert [error for _, error, _ in reasons] == ["Failed"] * failures + ["NotRun"] * (8 - failures)
    assert ended.status == (1 if mode == "-n0" else 2)


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_were_not_selected_say_so(project, mode):
    project.manifest(THREE)
    ended = run_mode(project, mode, NO_CACHE, "-k", "[a] or [b]", "--deselect", "evals/test_zoo.py::test_entry[a]")
    check(ended, lost={"a", "c"})
    assert ended.reason("a") == NOT_SELECTED  # by --deselect
    assert ended.reason("c") == NOT_SELECTED  # by -k
    assert ended.status == 0
    assert ended.report["complete"] is False


@pytest.mark.parametrize("mode", MODES)
def test_lf_runs_the_row_that_failed_beside_the_complete_report(project, mode):
    project.manifest(entry("a") + entry("b"))
    doom(project, b="fail")
    assert run_mode(project, "-n0").status == 1
    complete = (project.path / "eval-report/report.json").read_bytes()
    doom(project)
    ended = run_mode(project, mode, "--lf")
    assert ended.status == 0
    assert (project.path / "eval-report/report.json").read_bytes() == complete
    report, results = read_run(project.path / "eval-report/report.partial.json")
    assert [(row["name"], row["status"]) for row in report["rows"]] == [("a", "skipped"), ("b", "ok")]
    assert set(results) == {"b"}


def test_a_partial_run_says_where_it_reported_and_a_complete_one_takes_its_place(project):
    project.manifest(THREE)
    project.run("evals")
    folder = project.path / "eval-report"
    before = (folder / "report.json").read_bytes(), (folder / "items.safetensors").read_bytes()
    project.run("evals", "-k", "b").stdout.fnmatch_lines(
        ["report: eval-report/report.partial.json", "this run is not complete, and eval-report/report.json is: *"]
    )
    assert ((folder / "report.json").read_bytes(), (folder / "items.safetensors").read_bytes()) == before
    project.run("evals").stdout.fnmatch_lines(["report: eval-report/report.json"])
    assert {path.name for path in folder.iterdir()} == {"report.json", "items.safetensors"}
    assert (folder / "report.json").read_bytes() != before[0]


def test_a_complete_report_stays_while_a_complete_run_goes_on(project):
    project.manifest(THREE)
    project.run("evals")
    before = (project.path / "eval-report/report.json").read_bytes()
    project.file(
        "evals/conftest.py",
        "from pathlib import Path\n"
        "def pytest_runtest_teardown():\n"
        f"    assert Path('eval-report/report.json').read_bytes() == {before!r}\n"
        "    assert Path('eval-report/report.partial.json').is_file()\n",
    )
    project.run("evals").assert_outcomes(passed=3)
    assert (project.path / "eval-report/report.json").read_bytes() != before


@pytest.mark.parametrize("by", ["option", "ini"])
def test_overwrite_lets_a_partial_run_replace_a_complete_report(project, by):
    project.manifest(THREE)
    project.run("evals")
    if by == "ini":
        project.ini("tinyllm_overwrite = true")
    project.run("evals", "-k", "b", *(["--tinyllm-overwrite"] if by == "option" else []))
    assert project.reported.report["complete"] is False
    assert not (project.path / "eval-report/report.partial.json").exists()


def test_a_report_that_is_not_complete_is_replaced_by_any_run(project):
    project.manifest(THREE)
    project.run("evals/test_zoo.py::test_entry[a]")
    project.run("evals", "-k", "b")
    assert {name: row["status"] for name, row in project.reported.rows.items()} == {
        "a": "skipped",
        "b": "ok",
        "c": "skipped",
    }


def test_fault_row_57_what_an_earlier_run_left_in_the_journal_is_not_taken_for_this_ones(project):
    project.manifest(entry("a") + entry("b"))
    doom(project, b="KILL")
    project.file("evals/test_zz.py", "import os, signal\ndef test_zz():\n    os.kill(os.getppid(), signal.SIGKILL)\n")
    killed = run(project, "-n1", NO_CACHE)
    assert killed.status == -9
    journal = project.path / "eval-report/journal"
    assert "a.json" in {path.name for path in journal.iterdir()}
    (project.path / "evals/test_zz.py").unlink()
    doom(project, a="exit")
    ended = run(project, "-n1", NO_CACHE)
    check(ended, lost={"a"})
    assert ended.reason("a")[1] == "WorkerCrashed"
    assert not journal.exists()


def test_fault_row_57_a_journal_knows_the_records_of_its_own_run(tmp_path):
    from tinyllm.plugin.journal import Journal
    from tinyllm.report.rows import blank_row

    first, second = Journal(tmp_path, "first", "gw0"), Journal(tmp_path, "second", "gw0")
    first.began("a")
    first.finished(blank_row("b"), None)
    first.collected({"test_zoo.py::test_entry[a]": "a"})
    assert [name for name, _, _ in first.marks()] == ["a"]
    assert [row["name"] for row, _ in first.rows()] == ["b"]
    assert list(second.rows()) == list(second.marks()) == []
    assert second.entries() == {}


@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_fault_row_58_a_torn_record_of_the_journal_costs_its_row_alone(tmp_path, kept):
    from tinyllm.plugin.journal import Journal
    from tinyllm.report.rows import blank_row

    journal = Journal(tmp_path, "run", "gw0")
    for name in "abc":
        journal.began(name)
    for name in "ab":
        journal.finished(blank_row(name), None)
    journal.collected({"test_zoo.py::test_entry[a]": "a"})
    for file in ("b.json", "c.gw0.mark", "gw0.items"):
        (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:kept])
    assert [row["name"] for row, _ in journal.rows()] == ["a"]
    assert list(journal.marks()) == []
    assert journal.entries() == {}


def test_fault_row_58_a_row_that_comes_twice_and_out_of_order_is_one_row():
    from tinyllm.plugin.ledger import Ledger
    from tinyllm.report.rows import blank_row

    ledger = Ledger()
    ledger.collected(["t[a]", "t[b]"])
    for item, name in (("t[a]", "a"), ("t[b]", "b")):
        ledger.stands_for(item, name)
    done = {
        name: blank_row(name) | {"status": "ok", "error": None, "value": value} for name, value in (("a", 1), ("b", 2))
    }
    for name in "babb":  # by report and by journal, before and after its worker is said to have died
        ledger.arrived(done[name], None)
        ledger.ended("b", "error", "WorkerCrashed", "killed")
    assert ledger.rows(["a", "b"]) == done


def test_entries_of_two_tests_are_lost_only_when_both_fail(project):
    project.manifest(THREE)
    project.file(
        "evals/test_more.py", TEST_ENTRY.replace("test_entry", "test_more") + "    raise OSError(zoo_entry.name)\n"
    )
    result = project.run("evals")
    result.assert_outcomes(passed=3, failed=3)
    assert {row["status"] for row in project.reported.rows.values()} == {"ok"}
