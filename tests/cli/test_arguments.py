"""Arguments that no run can have are named as arguments: exit status 4, one line, nothing written."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("train", "uniform", "--out", ""), "--out must name a folder (ngram: a file) of its own"),
        (("train", "uniform", "--out", "x", "--seed", "-1"), "--seed must be 0 to 2**64 - 1, got -1"),
        (("eval", "ppl", "--model", "evals/gpt", "--data", "evals/t.bin", "--stride", "0"), "--stride must be"),
        (("validate", "x" * 300), "File name too long"),
    ],
)
def test_a_wrong_argument_is_named(tinyllm, here, arguments, sentence):
    before = sorted(here.iterdir())
    done = tinyllm(*arguments)
    assert done.status == 4
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert sorted(here.iterdir()) == before


def test_a_task_file_may_have_any_name(tinyllm, here):
    (here / "q ü.x.jsonl").write_bytes((here / "evals/c.jsonl").read_bytes())
    assert tinyllm("eval", "--model", "evals/half", "--task", "q ü.x.jsonl").status == 0


def test_python_minus_m_is_the_console_script(here):
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-m", "tinyllm", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tinyllm ")
