"""A pipe in the place of a file: refused with a sentence, where opening it would wait for ever."""

import os
import shutil
import signal

import pytest
from tests.plugin.toys import entry, make_zoo

from tinyllm.cli import main
from tinyllm.errors import FormatError
from tinyllm.eval.zoo import run_zoo
from tinyllm.report.baselines import read_baseline, save_baseline
from tinyllm.report.store import read_run


@pytest.fixture(autouse=True)
def no_waiting():
    """Waiting fails the test, and does not hang the suite."""

    def stop(*_):
        raise AssertionError("it waits for the other end of a pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def folder(tmp_path):
    make_zoo(tmp_path / "evals")
    return tmp_path / "evals"


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["half/config.json", "half/model.safetensors", "t.bin", "c.jsonl"])
def test_the_row_that_needs_it_is_an_error_and_no_other(folder, name):
    shutil.copytree(folder / "half", folder / "other")
    shutil.copy(folder / "t.bin", folder / "u.bin")
    on_pipe = {"choices": "c.jsonl"} if name == "c.jsonl" else {}
    (folder / "zoo.toml").write_text(entry("a", "half", **on_pipe) + entry("b", "other", data="u.bin"))
    pipe(folder / name)
    rows = run_zoo(folder / "zoo.toml", None)["rows"]
    assert [row["status"] for row in rows] == ["error", "ok"]
    assert rows[0]["error"]["message"].startswith(f"{name}: ")
    assert "must be a readable file, got 'a FIFO, which is no file'" in rows[0]["error"]["message"]


def test_a_manifest_is_refused(folder, capsys):
    pipe(folder / "zoo.toml")
    for command in (["eval", "--suite"], ["plan"], ["validate"]):
        assert main([*command, str(folder / "zoo.toml")]) in (1, 4)
        assert "must be a readable file, got 'a FIFO, which is no file'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["report.json", "items.safetensors", "SHA256SUMS"])
def test_a_stored_run_is_refused(folder, name):
    (folder / "zoo.toml").write_text(entry("a"))
    main(["eval", "--suite", str(folder / "zoo.toml"), "--report", str(folder / "r")])
    stored = save_baseline(folder / "baselines", "main", *read_run(folder / "r"))
    pipe(stored / name)
    with pytest.raises(FormatError, match="a FIFO, which is no file"):
        read_baseline(folder / "baselines", "main")
    if name != "SHA256SUMS":
        pipe(folder / "r" / name)
        with pytest.raises(FormatError, match="a FIFO, which is no file"):
            read_run(folder / "r")
