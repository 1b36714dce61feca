"""The command as it is installed: its names, its exit statuses, and how quickly it starts."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from tests.plugin.toys import entry

import tinyllm
from tinyllm.cli import main

SCRIPT = Path(sys.executable).with_name("tinyllm")
NO_TORCH = """
import sys
from tinyllm.cli import main
status = main(sys.argv[1:])
sys.exit(9 if "torch" in sys.modules else status)
"""


def test_the_script_is_the_package_main():
    (script,) = entry_points(group="console_scripts", name="tinyllm")
    assert script.load() is main


def test_the_version_is_said():
    done = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tinyllm {tinyllm.__version__}\n"


@pytest.mark.parametrize(
    ("args", "status"), [(("validate", "bad.toml"), 1), (("validate", "nowhere"), 4), ((), 4), (("evil",), 4)]
)
def test_the_exit_status_is_that_of_the_process(here, args, status):
    (here / "bad.toml").write_text("[suite\n")
    done = subprocess.run([SCRIPT, *args], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert "Traceback" not in done.stderr


def test_comparing_and_validating_reports_does_not_load_torch(tinyllm, here):
    (here / "evals/zoo.toml").write_text(entry("a"))
    tinyllm("eval", "--suite", "zoo")
    for command in ("compare eval-report eval-report", "validate eval-report", "validate evals/zoo.toml"):
        done = subprocess.run(
            [sys.executable, "-c", NO_TORCH, *command.split()], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout


@pytest.mark.parametrize("command", ["", "eval", "compare", "validate", "train"])
def test_help_is_on_standard_output(tinyllm, command):
    done = tinyllm(*([command] if command else []), "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"usage: tinyllm {command}".rstrip())


def test_an_interrupt_is_a_word_and_exit_status_130(tinyllm, here, monkeypatch):
    def interrupt(*args, **keys):
        raise KeyboardInterrupt

    monkeypatch.setattr("tinyllm.eval.zoo.evaluate_manifest", interrupt)
    done = tinyllm("eval", "ppl", "--model", "evals/gpt", "--data", "evals/t.bin")
    assert (done.status, done.out, done.err) == (130, "", "tinyllm: interrupted\n")
