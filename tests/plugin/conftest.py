"""A project with a toy zoo in its evals/, and one set of runs of it, one a mode, that many tests look at."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.plugin.once import once
from tests.plugin.survival import Ended, Folder, run_every_fate
from tests.plugin.toys import SUITE, Reported, make_zoo

MODES = {"n0": "-n0", "n1": "-n1", "n2": "-n2", "auto": "-nauto", "no-xdist": "-pno:xdist"}

# What happens in each process, a line each. With -n2 the first worker waits in its first row until the other is done
# with its own rows and has stolen those of half.
SPY = """
import os, sys, time
from pathlib import Path
import pytest

def note(*words):
    with open(os.environ["SPY_LOG"], "a") as log:
        log.write(" ".join(map(str, (os.getpid(), *words))) + chr(10))

def pytest_configure(config):
    note("worker" if hasattr(config, "workerinput") else "controller", getattr(config.option, "dist", "absent"))
    replace = os.replace
    def spied_replace(source, target, **keys):
        note("writes", Path(target).name)
        return replace(source, target, **keys)
    os.replace = spied_replace

@pytest.fixture(scope="session", autouse=True)
def spy():
    import torch
    from tinyllm.eval import prepare, zoo
    torch.set_num_threads(3)
    load_model, open_tokens, read_choices = zoo.load_model, prepare.open_tokens, prepare.read_choices
    def spied_load(path):
        note("loads", Path(path).name)
        note("threads-scoring", torch.get_num_threads())
        return load_model(path)
    def spied_open(*args, **keys):
        note("threads-scoring", torch.get_num_threads())
        return open_tokens(*args, **keys)
    def spied_read(*args):
        note("threads-scoring", torch.get_num_threads())
        return read_choices(*args)
    zoo.load_model, prepare.open_tokens, prepare.read_choices = spied_load, spied_open, spied_read
    yield
    note("threads-after", torch.get_num_threads())

def pytest_runtest_call(item):
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw0" and "uniform" in item.name and os.environ["SPY_MODE"] == "n2":
        deadline = time.monotonic() + 60
        while "loads half" not in Path(os.environ["SPY_LOG"]).read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
"""


@pytest.fixture(scope="session")
def zoo_files(tmp_path_factory):
    """The toy zoo, to be copied."""
    folder = tmp_path_factory.mktemp("toys") / "evals"
    make_zoo(folder)
    return folder


class Project(Folder):
    """Run by a pytest inside this one."""

    def __init__(self, pytester: pytest.Pytester, zoo_files: Path) -> None:
        super().__init__(pytester.path, zoo_files)
        self.pytester = pytester
        self.manifest(SUITE)

    def run(self, *args: str | Path) -> pytest.RunResult:
        xdist = () if any(str(arg).startswith(("-n", "-pno:xdist")) for arg in args) else ("-n0",)
        return self.pytester.runpytest_inprocess("-pno:cacheprovider", *xdist, *args)

    def run_process(self, *args: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess("-pno:cacheprovider", *args)

    @property
    def reported(self) -> Reported:
        return Reported(self.path / "eval-report")


@pytest.fixture
def project(pytester, zoo_files):
    return Project(pytester, zoo_files)


@dataclass(frozen=True)
class ModeRun(Reported):
    """One run of the toy zoo in a process of its own."""

    status: int
    output: str

    @property
    def log(self) -> list[list[str]]:
        return [line.split() for line in (self.folder / "spy.log").read_text().splitlines()]

    def noted(self, what: str) -> list[tuple[str, str]]:
        """(process, value) of every line of the log that says `what`."""
        return [(process, value) for process, key, value in self.log if key == what]

    @property
    def junit(self) -> dict[str, dict[str, str]]:
        """Test name → property → value."""
        cases = ElementTree.parse(self.folder / "junit.xml").iter("testcase")  # noqa: S314 (our own file)
        return {case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")} for case in cases}


def _run_mode(project: Path, shared: Path, mode: str) -> None:
    folder = shared / mode
    folder.mkdir()
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    spied = {"SPY_LOG": f"{folder}/spy.log", "SPY_MODE": mode}
    env = outside | spied | {"PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}
    args = [MODES[mode], "-pno:cacheprovider", f"--tinyllm-report={folder}", f"--junitxml={folder}/junit.xml", "evals"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *args], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    (folder / "ran.json").write_text(json.dumps({"status": done.returncode, "output": done.stdout + done.stderr}))


@pytest.fixture(scope="session")
def runs(tmp_path_factory, zoo_files):
    """`ModeRun` by mode: the same project in all five modes."""

    def make(shared: Path) -> None:
        project = Folder(shared / "project", zoo_files)
        project.file("conftest.py", SPY)
        project.manifest(SUITE)
        with ThreadPoolExecutor(2) as two:
            list(two.map(lambda mode: _run_mode(project.path, shared, mode), MODES))

    shared = once(tmp_path_factory, "modes", make)
    return {mode: ModeRun(shared / mode, **json.loads((shared / mode / "ran.json").read_text())) for mode in MODES}


@pytest.fixture(scope="session")
def every_fate(tmp_path_factory, zoo_files) -> Ended:
    """One run with two workers, of items that end in every way there is: `survival.EVERY_FATE`."""

    def make(shared: Path) -> None:
        ended = run_every_fate(Folder(shared / "project", zoo_files))
        (shared / "ran.json").write_text(json.dumps({"status": ended.status, "output": ended.output}))

    shared = once(tmp_path_factory, "every-fate", make)
    return Ended(shared / "project/eval-report", **json.loads((shared / "ran.json").read_text()))
