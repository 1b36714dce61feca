"""Where the report goes is missing, read-only or full: a sentence, the right exit status, and no number is lost."""

import ctypes
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.plugin.toys import TEST_ENTRY, Reported, entry, make_zoo

from tinyllm.cli import main

PYTEST = {workers: ["pytest", workers, "-p", "no:cacheprovider", "evals"] for workers in ("-n0", "-n1")}
COMMANDS = {"eval": ["tinyllm", "eval", "--suite", "zoo"], **PYTEST}
REPORT = {"tinyllm": "--report", "pytest": "--tinyllm-report"}


@pytest.fixture
def project(tmp_path):
    make_zoo(tmp_path / "evals")
    (tmp_path / "evals/zoo.toml").write_text(entry("a", max=9) + entry("b", "half") + entry("c", choices="c.jsonl"))
    (tmp_path / "evals/test_zoo.py").write_text(TEST_ENTRY)
    (tmp_path / "tox.ini").write_text("[pytest]\n")
    return tmp_path


def run(project: Path, command: str, report: str, limit) -> subprocess.CompletedProcess[str]:
    tool, *rest = COMMANDS[command]
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-B", "-m", tool, *rest, f"{REPORT[tool]}={report}"],
        cwd=project,
        env=outside | {"OMP_NUM_THREADS": "1"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def run_here(project, pytester, monkeypatch, capsys):
    """`run` without a process of its own; xdist's worker is one."""

    def run_command(command: str, report: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(project)
        tool, *rest = COMMANDS[command]
        if tool == "tinyllm":
            status = main([*rest, f"--report={report}"])
            return subprocess.CompletedProcess(command, status, *capsys.readouterr())
        done = pytester.runpytest_inprocess(*rest, f"--tinyllm-report={report}")
        return subprocess.CompletedProcess(command, done.ret, done.stdout.str(), done.stderr.str())

    return run_command


def without_root() -> None:
    """Root writes where it may not; a process that starts without CAP_DAC_OVERRIDE does not."""
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
        os._exit(99)


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@pytest.mark.parametrize("command", ["eval", "-n1"])
def test_a_missing_folder_is_made_with_its_parents(project, run_here, command):
    done = run_here(command, "some/new/folder")
    assert done.returncode == 0, done.stderr
    assert [row["status"] for row in Reported(project / "some/new/folder").report["rows"]] == ["ok"] * 3


@pytest.mark.parametrize(("command", "report"), [("eval", "shut"), ("eval", "shut/new"), ("-n0", "shut")])
def test_a_read_only_folder_is_exit_status_4_before_anything_is_scored(project, command, report):
    (project / "shut").mkdir(mode=0o555)
    done = run(project, command, report, without_root)
    assert done.returncode == 4, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.strip()]
    assert "shut" in line
    assert "the report folder must be writable, got 'Permission denied'" in line
    assert list((project / "shut").iterdir()) == []
    assert "8.0000" not in done.stdout


def first_report(project: Path, folder: Path) -> bytes:
    """The report of a run when there was still room."""
    assert main(["eval", "--suite", str(project / "evals/zoo.toml"), "--report", str(folder)]) == 0
    return (folder / "report.json").read_bytes()


def says_why(done: subprocess.CompletedProcess[str], reason: str) -> None:
    """Exit status 4, the table with every number, one sentence, no traceback."""
    output = done.stdout + done.stderr
    assert done.returncode == 4, output
    assert "Traceback" not in output
    assert "INTERNALERROR" not in output
    table = [line.split() for line in done.stdout.splitlines() if line[:2] in ("a ", "b ", "c ")]
    assert [(line[0], line[3]) for line in table] == [("a", "8.0000"), ("b", "5.0173"), ("c", "0.7500")]
    assert f"must be writable, got '{reason}'" in output


def left_whole(folder: Path, before: bytes) -> None:
    """The old report is as it was, and no half-written file lies beside it."""
    assert (folder / "report.json").read_bytes() == before
    assert not [path.name for path in folder.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.parametrize("command", ["eval", "-n0"])
def test_a_disk_that_takes_no_more_leaves_the_table_and_the_old_report(project, command):
    """A limit on the size of a file stands for the full disk where none can be mounted."""
    before = first_report(project, project / "r")
    says_why(run(project, command, "r", small_files), "File too large")
    left_whole(project / "r", before)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_leaves_the_table_and_the_old_report(project, run_here, capsys, small_disk, command):
    before = first_report(project, small_disk / "r")
    with (small_disk / "filler").open("ab", buffering=0) as filler:
        while True:
            try:
                filler.write(bytes(1024))
            except OSError:
                break
    capsys.readouterr()  # of the first report
    says_why(run_here(command, str(small_disk / "r")), "No space left on device")
    left_whole(small_disk / "r", before)
