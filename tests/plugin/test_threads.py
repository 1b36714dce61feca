"""One torch thread while scoring, in every mode: sums differ with the thread count."""

import pytest
import torch
from tests.plugin.conftest import MODES
from tests.plugin.toys import entry


@pytest.mark.parametrize("mode", MODES)
def test_fault_row_69_scoring_has_one_torch_thread_in_a_process_of_three(runs, mode):
    assert {count for _, count in runs[mode].noted("threads-scoring")} == {"1"}


@pytest.mark.parametrize("mode", MODES)
def test_the_thread_count_is_restored_after_scoring(runs, mode):
    assert {count for _, count in runs[mode].noted("threads-after")} == {"3"}


@pytest.mark.parametrize("mode", MODES)
def test_fault_row_69_the_report_says_one_thread(runs, mode):
    assert runs[mode].report["run"]["threads"] == 1


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_test_that_uses_a_checkpoint_by_hand_has_one_thread_too(project, two_threads):
    project.manifest(entry("gpt", "gpt"))
    project.file(
        "evals/test_plain.py",
        "import torch\ndef test_threads(checkpoint):\n    checkpoint('gpt')\n    assert torch.get_num_threads() == 1\n",
    )
    project.run("evals/test_plain.py").assert_outcomes(passed=1)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("given", "found"), [(None, "1"), ("3", "3")])
def test_fault_row_69_workers_inherit_one_thread_of_blas_unless_told_otherwise(project, monkeypatch, given, found):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    project.file(
        "evals/conftest.py",
        "import os\ndef pytest_sessionstart():\n"  # before xdist starts its workers, and before torch is imported
        f"    assert os.environ['OMP_NUM_THREADS'] == {found!r}\n",
    )
    project.file("evals/test_zoo.py", "def test_one(): pass\n")
    project.run("evals").assert_outcomes(passed=1)


def test_a_run_of_other_tests_has_the_threads_it_had(project, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    project.file("tests/test_one.py", "import os\ndef test_one(): assert 'OMP_NUM_THREADS' not in os.environ\n")
    project.run("tests").assert_outcomes(passed=1)
