"""A process dies: by os._exit, a segmentation fault, or SIGKILL, which is also what the kernel does out of memory."""

import pytest
from tests.plugin.survival import LOST, UNHARMED, check, doom, run
from tests.plugin.toys import entry

from tinyllm.report.store import read_run

FIVE = "".join(entry(name, model) for name, model in zip("abcde", ["uniform", "half"] * 3, strict=False))
NO_CACHE = "-pno:cacheprovider"


def test_fault_row_70_workers_that_die_lose_the_rows_that_they_were_at_and_no_other(every_fate):
    check(every_fate, lost=LOST)
    how = "the worker process ended while this row's test ran: "
    assert every_fate.reason("exits") == ("error", "WorkerCrashed", how + "exit status 7")
    assert every_fate.reason("segfaults") == ("error", "WorkerCrashed", how + "killed by SIGSEGV")
    assert every_fate.reason("killed") == (
        "error",
        "WorkerCrashed",
        how + "killed by SIGKILL, as when memory runs out",
    )
    assert every_fate.status == 1
    assert "11 failed" in every_fate.output  # exits, dies_scored, segfaults, killed, two that hang, fails, broken
    assert every_fate.report["complete"] is True
    assert set(read_run(every_fate.folder)[1]) == UNHARMED


def test_fault_row_70_a_worker_that_dies_in_a_plain_eval_keeps_the_rows_it_scored(project):
    project.manifest(FIVE)
    project.file("evals/test_zoo.py", "")
    project.file(
        "evals/test_plain.py",
        "import os\n"
        "def test_two(evaluate, monkeypatch):\n"
        "    evaluate('a')\n"
        "    monkeypatch.setattr('tinyllm.eval.zoo.evaluate_entry', lambda *args, **keys: os._exit(3))\n"
        "    evaluate('b')\n",
    )
    ended = run(project, "-n1", NO_CACHE)
    check(ended, lost={"b", "c", "d", "e"})
    assert ended.reason("b")[1:] == (
        "WorkerCrashed",
        "the worker process ended while this row's test ran: exit status 3",
    )
    assert ended.reason("c")[:2] == ("skipped", "NotAsked")
    assert ended.status == 1


def test_fault_row_70_a_run_whose_every_row_crashes_has_every_row(project):
    names = [f"r{i}" for i in range(6)]  # with -n1 xdist by itself replaces four workers
    project.manifest("".join(entry(name) for name in names))
    doom(project, **dict.fromkeys(names, "exit"))
    ended = run(project, "-n1", NO_CACHE)
    check(ended, lost=set(names))
    assert {ended.reason(name)[1] for name in names} == {"WorkerCrashed"}
    assert ended.status == 1


@pytest.mark.parametrize(("how", "status"), [("exit", 7), ("SEGV", -11), ("KILL", -9)])
def test_the_only_process_that_dies_leaves_a_report_of_the_rows_it_had(project, how, status):
    project.manifest(FIVE)
    doom(project, c=how)
    ended = run(project, "-n0", NO_CACHE)
    assert ended.status == status
    check(ended, lost={"b", "c", "d", "e"} - set(ended.scored))
    assert ended.reason("c") == ("error", "Interrupted", "the run ended while this row was being scored")
    assert ended.reason("d") == ("error", "NotRun", "the run ended before this row was scored")
    assert "a" in ended.scored
    assert ended.report["complete"] is False
    assert ended.report["run"]["finished"] is None
    assert set(read_run(ended.folder)[1]) == set(ended.scored)


def test_the_only_process_that_dies_after_scoring_keeps_the_row(project):
    project.manifest(entry("a") + entry("b"))
    doom(project, late_a="exit")
    ended = run(project, "-n0", NO_CACHE)
    assert ended.status == 7
    check(ended, lost={"b"})


@pytest.mark.parametrize("mode", ["-n0", "-n1"])
def test_a_process_that_dies_while_it_collects_leaves_rows_that_say_they_were_not_run(project, mode):
    project.manifest(entry("a"))
    project.file("evals/test_zoo.py", "import os\nos._exit(5)\n")
    ended = run(project, mode, NO_CACHE, "--max-worker-restart=1")
    check(ended, lost={"a"})
    assert ended.reason("a")[1] == "NotRun"
    assert ended.status != 0
