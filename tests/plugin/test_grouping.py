"""A checkpoint's items run together, and a process loads it once."""

from collections import Counter
from itertools import chain

import pytest
from tests.plugin.conftest import MODES
from tests.plugin.toys import entry

PLAIN = """
def test_model(checkpoint):
    assert checkpoint("gpt-a").ctx_len == 32
    assert checkpoint("gpt-b") is checkpoint("gpt-a")

def test_numbers(evaluate):
    assert evaluate("uniform-a").value == 8
    assert evaluate.compare("uniform-a", "half-a").better == "b"
"""

COUNT = """
import pytest
from pathlib import Path

@pytest.fixture(scope="session", autouse=True)
def spy():
    from tinyllm.eval import zoo
    with pytest.MonkeyPatch.context() as patch:
        load = zoo.load_model
        def spied(path):
            with open("loads", "a") as log:
                log.write(Path(path).name + chr(10))
            return load(path)
        patch.setattr(zoo, "load_model", spied)
        yield
"""


@pytest.mark.parametrize("mode", MODES)
def test_fault_row_68_a_process_loads_a_checkpoint_at_most_once_though_the_manifest_interleaves_them(runs, mode):
    loads = Counter(runs[mode].noted("loads"))
    assert {name for _, name in loads} == {"uniform", "half", "gpt", "broken", "weird"}
    assert set(loads.values()) == {1}, loads


def test_a_worker_that_is_done_steals_rows_of_the_other(runs):
    loads = {}
    for process, name in runs["n2"].noted("loads"):
        loads.setdefault(process, set()).add(name)
    one, other = sorted(loads.values(), key=len)
    assert "uniform" in one
    assert {"gpt", "broken", "weird", "half"} <= other  # half was not among its own


def test_items_are_grouped_by_checkpoint(project):
    result = project.run("evals", "--collect-only", "-q")
    names = [line.partition("[")[2].rstrip("]") for line in result.outlines if "::test_entry[" in line]
    together = {
        "uniform": ["uniform-a", "uniform-b", "uniform-c"],
        "half": ["half-a", "cloze", "half-b"],
        "gpt": ["gpt-a", "gpt-b", "gpt-cloze"],
        "broken": ["broken-a", "broken-b", "broken-c", "broken-d"],
        "weird": ["weird"],
        "none": ["typo"],
    }
    assert names == list(chain.from_iterable(together.values()))


def loads(project):
    return Counter((project.path / "loads").read_text().split())


def test_a_checkpoint_is_let_go_when_its_items_are_done_and_no_other_eval_may_ask_for_it(project):
    project.file(
        "conftest.py",
        """
import gc
from tinyllm.models.bigram import BigramLM

def pytest_runtest_teardown(item):
    gc.collect()
    held = sum(type(thing) is BigramLM for thing in gc.get_objects())
    with open("held", "a") as log:
        log.write(f"{item.name} {held}" + chr(10))
""",
    )
    project.manifest(entry("a") + entry("b") + entry("c", "half") + entry("d", "gpt"))
    project.run("evals").assert_outcomes(passed=4)
    held = dict(line.split() for line in (project.path / "held").read_text().splitlines())
    assert held == {
        "test_entry[a]": "1",
        "test_entry[b]": "1",
        "test_entry[c]": "1",  # not 2: uniform is gone
        "test_entry[d]": "0",
    }


@pytest.mark.parametrize("order", ["test_a_plain.py", "test_z_plain.py"])
def test_evals_in_plain_python_share_the_loaded_checkpoints(project, order):
    project.file("conftest.py", COUNT)
    project.file(f"evals/{order}", PLAIN)
    result = project.run("evals")
    result.assert_outcomes(passed=9, failed=7, skipped=1)
    assert loads(project) == dict.fromkeys(("uniform", "half", "gpt", "broken", "weird"), 1)


def test_a_checkpoint_that_does_not_load_is_tried_once_for_all_its_rows(project):
    project.file("conftest.py", COUNT)
    project.manifest("".join(entry(f"row-{i}", "broken") for i in range(4)))
    result = project.run("evals")
    result.assert_outcomes(failed=4)
    assert loads(project) == {"broken": 1}
    messages = {row["error"]["message"] for row in project.reported.rows.values()}
    assert len(messages) == 1
    assert "model.safetensors" in messages.pop()


def test_zoo_checkpoint_without_zoo_entry_says_what_is_missing(project):
    project.file("evals/test_more.py", "def test_lone(zoo_checkpoint): pass\n")
    result = project.run("evals/test_more.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*zoo_checkpoint goes with zoo_entry: a test asks for both*"])
