"""JUnit XML carries each row's numbers as properties of its test case."""

import pytest
from tests.plugin.conftest import MODES
from tests.plugin.toys import entry


@pytest.mark.parametrize("mode", MODES)
def test_a_row_with_a_number_has_its_numbers_as_properties(runs, mode):
    row = runs[mode].rows["half-a"]
    assert runs[mode].junit["test_entry[half-a]"] == {
        "tinyllm.half-a.metric": "bpb",
        "tinyllm.half-a.value": repr(row["value"]),
        "tinyllm.half-a.lo": repr(row["lo"]),
        "tinyllm.half-a.hi": repr(row["hi"]),
        "tinyllm.half-a.n": "199",
        "tinyllm.half-a.status": "ok",
        "tinyllm.half-a.gate": "undecided",
    }


@pytest.mark.parametrize("mode", MODES)
def test_a_row_without_a_number_has_its_status(runs, mode):
    assert runs[mode].junit["test_entry[weird]"] == {"tinyllm.weird.status": "skipped"}
    assert runs[mode].junit["test_entry[broken-d]"] == {
        "tinyllm.broken-d.status": "error",
        "tinyllm.broken-d.gate": "not-evaluated",
    }


@pytest.mark.parametrize("mode", MODES)
def test_every_entry_is_one_test_case(runs, mode):
    assert sorted(runs[mode].junit) == sorted(f"test_entry[{name}]" for name in runs[mode].rows)


def test_a_row_that_is_asked_for_twice_has_its_properties_once(project):
    project.manifest(entry("a") + entry("b", "half"))
    project.file("evals/test_plain.py", "def test_two(evaluate):\n    evaluate('a')\n    evaluate.compare('a', 'b')\n")
    project.run("evals/test_plain.py", "--junitxml=j.xml").assert_outcomes(passed=1)
    text = (project.path / "j.xml").read_text()
    assert text.count('name="tinyllm.a.value"') == 1
    assert text.count('name="tinyllm.b.value"') == 1
