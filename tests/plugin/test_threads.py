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
