"""A row that does not end: pytest-timeout by signal and by thread, and pytest's own faulthandler."""

import pytest
from tests.plugin.survival import check, doom, run
from tests.plugin.toys import entry

THREE = entry("a") + entry("b") + entry("c")
NO_CACHE = "-pno:cacheprovider"


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_row_timed_out_by_signal_says_so_and_the_run_goes_on(project, mode):
    project.manifest(THREE)
    doom(project, b="hang-signal")
    ended = run(project, mode, NO_CACHE)
    check(ended, project, lost={"b"})
    assert ended.reason("b") == ("error", "Failed", "Timeout (>1.0s) from pytest-timeout.")
    assert ended.status == 1


TIMEOUTS = {
    "pytest-timeout": ("hang-thread", ()),
    "faulthandler": ("hang", ("-ofaulthandler_timeout=5", "-ofaulthandler_exit_on_timeout=true")),
}


@pytest.mark.parametrize("by", TIMEOUTS)
def test_a_worker_ended_for_a_timeout_loses_its_row_alone(project, by):
    how, args = TIMEOUTS[by]
    project.manifest(THREE)
    doom(project, b=how)
    ended = run(project, "-n2", NO_CACHE, *args)
    check(ended, project, lost={"b"})
    assert ended.reason("b") == (
        "error",
        "WorkerCrashed",
        "the worker process ended while this row's test ran: exit status 1",
    )
    assert ended.status == 1


@pytest.mark.parametrize("by", TIMEOUTS)
def test_the_only_process_ended_for_a_timeout_leaves_its_report(project, by):
    how, args = TIMEOUTS[by]
    project.manifest(THREE)
    doom(project, b=how)
    ended = run(project, "-n0", NO_CACHE, *args)
    check(ended, project, lost={"b", "c"})
    assert (ended.reason("b")[1], ended.reason("c")[1]) == ("Interrupted", "NotRun")
    assert ended.status == 1
