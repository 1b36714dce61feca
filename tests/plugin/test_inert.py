"""The plugin does nothing in a run that does not concern the manifest."""

import sys

import pytest
from tests.plugin.toys import entry


@pytest.fixture
def other_tests(project):
    """Ordinary tests beside the evals, and evals that would fail the run if they were looked at."""
    project.manifest("[suite\n")
    project.file("tests/test_plain.py", "def test_plain(): pass\ndef test_more(): pass\n")
    return project


@pytest.mark.parametrize("args", [("tests",), ("tests/test_plain.py::test_plain",), ("tests", "-n1")])
def test_a_run_of_other_tests_does_not_read_the_manifest_and_reports_nothing(other_tests, args):
    result = other_tests.run(*args)
    assert result.ret == 0
    assert not (other_tests.path / "eval-report").exists()
    result.stdout.no_fnmatch_line("*report:*")


def test_a_run_of_other_tests_does_not_load_torch(other_tests):
    other_tests.file(
        "tests/test_torch.py",
        "import sys\ndef test_torch():\n    assert not {'torch', 'scipy', 'transformers'} & set(sys.modules)\n",
    )
    assert other_tests.run_process("tests", "-n0").ret == 0
    assert "torch" in sys.modules  # so that this needed a process of its own


@pytest.mark.parametrize("name", ["evaluate", "checkpoint"])
def test_a_project_may_have_a_fixture_of_that_name(other_tests, name):
    text = f"import pytest\n@pytest.fixture\ndef {name}(): return 1\ndef test_own({name}): assert {name} == 1\n"
    other_tests.file("tests/test_own.py", text)
    other_tests.run("tests").assert_outcomes(passed=3)


def test_a_folder_without_evals_is_an_ordinary_project(pytester):
    pytester.makepyfile("def test_plain(): pass")
    result = pytester.runpytest_inprocess("-n0")
    result.assert_outcomes(passed=1)
    assert not (pytester.path / "eval-report").exists()


@pytest.mark.parametrize(
    "args",
    [
        (),
        (".",),
        ("evals",),
        ("evals/",),
        ("evals/test_zoo.py",),
        ("evals/test_zoo.py::test_entry[a]",),
        ("tests", "evals"),
        ("tests", "--tinyllm-manifest=evals/zoo.toml"),
    ],
)
def test_a_run_that_reaches_the_manifests_folder_or_names_a_manifest_reads_it(other_tests, args):
    result = other_tests.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *zoo.toml: the manifest must be TOML*"])


def test_a_run_started_in_the_manifests_folder_reads_it(project, monkeypatch):
    project.manifest(entry("a"))
    monkeypatch.chdir(project.path / "evals")
    project.run().assert_outcomes(passed=1)
    assert project.reported.rows["a"]["status"] == "ok"


def test_testpaths_decide_where_no_path_is_given(project):
    project.manifest(entry("a"))
    project.file("tests/test_plain.py", "def test_plain(): pass\n")
    project.ini("testpaths = tests")
    project.run().assert_outcomes(passed=1)
    assert not (project.path / "eval-report").exists()
    project.ini("testpaths = evals")
    project.run().assert_outcomes(passed=1)
    assert (project.path / "eval-report").exists()


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_is_shown_whatever_the_manifest_is(other_tests, flag):
    assert other_tests.run("evals", flag).ret == 0


def test_the_options_are_in_the_help_with_their_ini_twins(project):
    text = " ".join(project.run("--help").stdout.str().split())
    for name, default in (("manifest", "evals/zoo.toml"), ("report", "eval-report"), ("undecided", "fail")):
        assert f"--tinyllm-{name}" in text
        assert f"(ini: tinyllm_{name}; {default})" in text


def test_the_callers_random_state_is_as_it_was(project):
    project.manifest(entry("a", "gpt") + entry("b", "half", choices="c.jsonl") + entry("c", "half"))
    project.file(
        "evals/conftest.py",
        """
import random
import numpy as np
import pytest
import torch

def states():
    return random.getstate(), repr(np.random.get_state()), torch.get_rng_state().tolist()

@pytest.fixture(scope="session", autouse=True)
def unchanged():
    random.seed(1); np.random.seed(1); torch.manual_seed(1)
    before = states()
    yield
    assert states() == before
""",
    )
    project.file("evals/test_more.py", "def test_more(evaluate): evaluate.compare('a', 'c')\n")
    project.run("evals").assert_outcomes(passed=4)
