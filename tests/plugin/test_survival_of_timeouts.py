"""A row that does not end: pytest-timeout by signal and by thread, and pytest's own faulthandler."""

import pytest
from tests.plugin.survival import LOST, check, doom, run, run_mode
from tests.plugin.toys import entry

THREE = entry("a") + entry("b") + entry("c")
NO_CACHE = "-pno:cacheprovider"


FAULTHANDLER = ("-ofaulthandler_timeout=3", "-ofaulthandler_exit_on_timeout=true")
WORKER_ENDED = ("error", "WorkerCrashed", "the worker process ended while this row's test ran: exit status 1")
BY_SIGNAL = ("error", "Failed", "Timeout (>1.0s) from pytest-timeout.")


def test_a_row_timed_out_by_signal_says_so_and_the_run_goes_on(project):
    project.manifest(THREE)
    doom(project, b="hang-signal")
    ended = run_mode(project, "-n0", NO_CACHE)
    check(ended, lost={"b"})
    assert ended.reason("b") == BY_SIGNAL
    assert ended.status == 1


def test_in_a_worker_too_a_row_timed_out_by_signal_says_so_and_the_run_goes_on(every_fate):
    check(every_fate, lost=LOST)
    assert every_fate.reason("hangs_signal") == BY_SIGNAL
    assert every_fate.status == 1


def test_a_worker_ended_by_pytest_timeout_loses_its_row_alone(every_fate):
    check(every_fate, lost=LOST)
    assert every_fate.reason("hangs_thread") == WORKER_ENDED
    assert every_fate.status == 1


def test_a_worker_ended_by_faulthandler_loses_its_row_alone(project):
    project.manifest(THREE)
    doom(project, warm=True, b="hang")
    ended = run(project, "-n1", NO_CACHE, *FAULTHANDLER)
    check(ended, lost={"b"})
    assert ended.reason("b") == WORKER_ENDED
    assert ended.status == 1


@pytest.mark.parametrize(("how", "args"), [("hang-thread", ()), ("hang", FAULTHANDLER)])
def test_the_only_process_ended_for_a_timeout_leaves_its_report(project, how, args):
    project.manifest(THREE)
    doom(project, warm=how == "hang", b=how)
    ended = run(project, "-n0", NO_CACHE, *args)
    check(ended, lost={"b", "c"})
    assert (ended.reason("b")[1], ended.reason("c")[1]) == ("Interrupted", "NotRun")
    assert ended.status == 1
