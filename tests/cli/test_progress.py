"""A progress bar on long work, where standard error is a terminal."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.plugin.toys import entry

COMMAND = (Path(sys.executable).with_name("tinyllm"), "eval", "--model", "evals/half", "--task", "evals/c.jsonl")


def read_all(end):
    text = b""
    while True:
        try:
            got = os.read(end, 65536)
        except OSError:  # how Linux says that the other end is closed
            return text.decode()
        if not got:
            return text.decode()
        text += got


def test_a_bar_is_shown_on_a_terminal_and_cleared_away(here):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen(COMMAND, stderr=theirs, stdout=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        shown = read_all(ours)
        out = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert "half:" in shown
    assert "/40" in shown
    assert shown.rstrip(" ").endswith("\r")  # the line is left clean
    assert out.splitlines()[1].startswith("half  c     acc     0.7500")
    assert "/40" not in out


@pytest.mark.parametrize(
    "args",
    [
        ("--model", "evals/half", "--task", "evals/c.jsonl"),
        ("ppl", "--model", "evals/gpt", "--data", "evals/t.bin"),
        ("--suite", "zoo"),
    ],
)
def test_no_bar_is_shown_where_standard_error_is_no_terminal(tinyllm, here, args):
    (here / "evals/zoo.toml").write_text(entry("a", "gpt"))
    done = tinyllm("eval", *args)
    assert (done.status, done.err) == (0, "")
