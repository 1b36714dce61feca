"""Runs that something goes wrong in: a toy project whose items die as told, and what must hold of every report."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.plugin.toys import TEST_ENTRY, Reported, entry

from tinyllm.eval.zoo import evaluate_manifest
from tinyllm.rng import PCG32

LIMIT_S = 150  # of a run that takes 5 s on a quiet machine: a hang, not a slow run, fails a test

# What becomes of an item, by the entry's name: in its call, before the row is scored unless it says "late".
DEATHS = """
import os, signal, time
import pytest

FATES = {fates!r}

def fate(name):
    what = FATES.get(name, "")
    if what == "exit": os._exit(7)
    if what in ("SEGV", "KILL"): os.kill(os.getpid(), getattr(signal, "SIG" + what))
    if what == "interrupt": raise KeyboardInterrupt
    if what == "fail": pytest.fail("as told")
    if what.startswith("hang"): time.sleep(100)

def name_of(item):
    return item.callspec.id if hasattr(item, "callspec") else item.name

def pytest_collection_modifyitems(items):
    for item in items:
        what = FATES.get(name_of(item), "")
        if what in ("hang-signal", "hang-thread"):
            item.add_marker(pytest.mark.timeout(1, method=what.removeprefix("hang-")))
        if what == "skip":
            item.add_marker(pytest.mark.skip("not today"))

@pytest.fixture(autouse=True)
def broken_fixture(request):
    if FATES.get(name_of(request.node)) == "setup": raise OSError("no such disk")

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    fate(name_of(item))

def pytest_runtest_teardown(item):
    fate("late-" + name_of(item))
"""


# What a clock that is set on every item is not to measure: imported in the processes that score, before they do.
WARM = """
def pytest_collection_finish():
    import scipy.stats, tinyllm.eval.zoo
"""


class Folder:
    """A folder with the toy zoo in its evals/, and evals/test_zoo.py that scores each entry of a manifest."""

    def __init__(self, path: Path, zoo_files: Path) -> None:
        self.path = path
        shutil.copytree(zoo_files, path / "evals", copy_function=os.link)
        self.ini("")
        self.file("evals/test_zoo.py", TEST_ENTRY)

    def file(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def manifest(self, text: str) -> Path:
        return self.file("evals/zoo.toml", text)

    def ini(self, text: str) -> None:
        self.file("tox.ini", f"[pytest]\n{text}\n")


def doom(project: Folder, *, warm: bool = False, **fates: str) -> None:
    """Have items end so: ``exit``, ``SEGV``, ``KILL``, ``interrupt``, ``fail``, ``setup``, ``skip``, ``hang-…``.

    A name beginning with ``late_`` dies when its row has been scored; with ``warm`` torch is there before any item.
    """
    named = {name.replace("late_", "late-"): what for name, what in fates.items()}
    project.file("evals/conftest.py", DEATHS.replace("{fates!r}", repr(named)) + (WARM if warm else ""))


@dataclass(frozen=True)
class Ended(Reported):
    """A run that has ended, somehow."""

    status: int
    output: str

    def reason(self, name: str) -> tuple[str, str, str]:
        row = self.rows[name]
        return row["status"], row["error"]["type"], row["error"]["message"]

    @property
    def scored(self) -> dict:
        return {name: row for name, row in self.rows.items() if row["status"] == "ok"}


def run(project, *args: str, interrupt_when: Path | None = None) -> Ended:
    """pytest in a process group of its own; with `interrupt_when` the group gets Ctrl-C once that file is there."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "evals", *args],
        cwd=project.path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        if interrupt_when is not None:
            _wait_for(interrupt_when, process)
            os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=LIMIT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Ended(project.path / "eval-report", process.returncode, output)


def run_mode(project, mode: str, *args: str) -> Ended:
    """A run that no process dies in: the only one, or the controller, is this process."""
    result = project.pytester.runpytest_inprocess("evals", mode, *args)
    return Ended(project.path / "eval-report", int(result.ret), result.stdout.str())


def _wait_for(path: Path, process: subprocess.Popen) -> None:
    for _ in range(LIMIT_S * 20):
        if path.exists() or process.poll() is not None:
            return
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue


# Name → fate, in the order of the run with their checkpoint; a worker's death leaves the rest to its replacement.
EVERY_FATE = {
    "uniform": {"first": "", "exits": "exit", "second": "", "late_dies_scored": "exit"}
    | {"segfaults": "SEGV", "killed": "KILL", "hangs_thread": "hang-thread", "third": ""},
    "half": {"fourth": "", "hangs_signal": "hang-signal", "setup_fails": "setup", "skipped": "skip", "fails": "fail"},
    "broken": dict.fromkeys(["broken_0", "broken_1", "broken_2", "broken_3"], ""),
}
UNHARMED = {"first", "second", "dies_scored", "third", "fourth"}
LOST = {name for fates in EVERY_FATE.values() for name in fates} - UNHARMED - {"late_dies_scored"}


def run_every_fate(project: Folder) -> Ended:
    """The run of `EVERY_FATE` with two workers, beside a file that cannot be collected."""
    named = [(name, model) for model, fates in EVERY_FATE.items() for name in fates]
    project.manifest("".join(entry(name.removeprefix("late_"), model) for name, model in named))
    doom(project, **{name: fate for fates in EVERY_FATE.values() for name, fate in fates.items() if fate})
    project.file("evals/test_syntax.py", "def test_(:\n")
    return run(project, "-n2", "-pno:cacheprovider")


def healthy_rows(manifest: Path) -> dict:
    """The rows of a run that nothing happens to, scored in this process without the plugin."""
    report, _ = evaluate_manifest(manifest, PCG32(0))
    return {row["name"]: row for row in json.loads(json.dumps(report["rows"]))}


def check(ended: Ended, *, lost: set[str]) -> None:
    """Every entry has its row; exactly `lost` have no number and say why; the others are those of the healthy run."""
    healthy = healthy_rows(ended.folder.parent / "evals/zoo.toml")
    rows = ended.rows
    assert list(rows) == list(healthy), ended.output
    assert {name for name, row in rows.items() if row["status"] != "ok"} == lost, ended.output
    for name, row in rows.items():
        if name in lost:
            assert row["value"] is None
            assert row["error"]["message"]
        else:
            assert row == healthy[name]
