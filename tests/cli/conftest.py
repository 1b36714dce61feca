"""The command line in this process, in a folder with the toy zoo of tests/plugin in its evals/."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.plugin.toys import make_zoo

from tinyllm.cli import main


@pytest.fixture(scope="session")
def zoo_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toys") / "evals"
    make_zoo(folder)
    return folder


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    status: int
    out: str
    err: str


@pytest.fixture
def here(tmp_path, zoo_files, monkeypatch) -> Path:
    """The working directory: evals/ with the toy zoo, and nothing else."""
    shutil.copytree(zoo_files, tmp_path / "evals", copy_function=os.link)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tinyllm(here, capsys):
    """``tinyllm("eval", "ppl", …)`` runs the command line."""

    def run(*args) -> Done:
        try:
            status = main([str(arg) for arg in args])
        except SystemExit as stop:
            status = stop.code
        return Done(status, *capsys.readouterr())

    return run


@pytest.fixture
def refused(tinyllm):
    """Run what must be refused: exit status 4, nothing on standard output; the last line of standard error."""

    def run(*args) -> str:
        done = tinyllm(*args)
        assert (done.status, done.out) == (4, "")
        assert "Traceback" not in done.err
        *usage, line = done.err.splitlines()
        assert all(text.startswith(("usage: ", " ")) for text in usage)  # argparse's own faults show the usage
        return line

    return run
