"""A run on disk: two files that belong together."""

import json

import numpy as np
import pytest

from tinyllm.errors import FormatError
from tinyllm.report.assemble import report_document
from tinyllm.report.rows import blank_row, missing_row
from tinyllm.report.store import check_writable, has_complete_report, read_run, write_run
from tinyllm.result import Result

OK = blank_row("a") | {"metric": "acc", "value": 0.5, "lo": 0.25, "hi": 0.75, "n": 4, "status": "ok", "error": None}
SCORES = np.array([1.0, 0.0, 1.0, 0.0])


@pytest.fixture
def stored(tmp_path):
    rows = {
        "a": OK,
        "one": OK | {"name": "one", "n": 1, "lo": None, "hi": None, "value": 0.1 + 0.2, "metric": "nll"},
        "b": missing_row("b", selected=False),
    }
    results = {
        "a": Result(0.5, 0.25, 0.75, 4, SCORES, ("é", "", "z", "\n")),
        "one": Result(0.1 + 0.2, -np.inf, np.inf, 1, np.array([0.1 + 0.2])),
    }
    report = report_document(suite="s", seed=1, names=tuple(rows), rows=rows, run={"base_key": "0" * 16})
    write_run(tmp_path / "deep" / "run", report, results)
    return tmp_path / "deep" / "run", report, results


@pytest.mark.parametrize("name", [".", "report.json"])
def test_a_run_reads_back_as_it_was_written(stored, name):
    folder, report, results = stored
    report_back, results_back = read_run(folder / name)
    assert report_back == report
    assert results_back.keys() == results.keys()
    for name, result in results.items():
        back = results_back[name]
        assert (back.value, back.lo, back.hi, back.n) == (result.value, result.lo, result.hi, result.n)
        assert back.per_item.tolist() == result.per_item.tolist()
        assert back.ids == result.ids


def test_the_same_run_is_the_same_bytes(stored, tmp_path):
    folder, report, results = stored
    write_run(tmp_path / "again", report, dict(reversed(results.items())))
    for name in ("report.json", "items.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_a_report_with_the_items_of_another_run_is_refused(stored):
    folder = stored[0]
    report = json.loads((folder / "report.json").read_text())
    report["rows"][0]["n"] = 5
    (folder / "report.json").write_text(json.dumps(report))
    with pytest.raises(FormatError, match=r"items.safetensors: must hold the 5 scores of row 'a', got 4"):
        read_run(folder)


@pytest.mark.parametrize("file", ["report.json", "items.safetensors"])
def test_fault_row_58_a_torn_file_is_refused_and_is_no_complete_report(stored, file):
    folder, report, results = stored
    write_run(folder, report | {"complete": True}, results)
    assert has_complete_report(folder)
    whole = (folder / file).read_bytes()
    for kept in (0, 1, len(whole) // 2, len(whole) - 3):
        (folder / file).write_bytes(whole[:kept])
        with pytest.raises(FormatError, match=file):
            read_run(folder)
        assert has_complete_report(folder) == (file != "report.json")


def test_a_row_without_its_items_is_refused(stored):
    folder, report, results = stored
    write_run(folder, report, {"a": results["a"]})
    with pytest.raises(FormatError, match=r"must hold the 1 scores of row 'one', got none"):
        read_run(folder)


def test_a_folder_without_a_report_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"must be"):
        read_run(tmp_path)


def test_checking_a_folder_makes_nothing(tmp_path):
    check_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/below", "link"])
def test_a_folder_that_cannot_be_is_refused_with_the_reason(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "at-all")
    with pytest.raises(
        FormatError, match=rf"{name}: the report folder must be writable, got '(Not a directory|No such file.*)'"
    ):
        check_writable(tmp_path / name)


def test_a_value_that_is_not_that_of_its_items_is_refused(stored):
    """One changed score, or one changed value: validate and compare must not take it for the run that was written."""
    folder, report, results = stored
    flipped = Result(0.5, 0.25, 0.75, 4, np.array([1.0, 1.0, 1.0, 0.0]), results["a"].ids)
    write_run(folder, report, results | {"a": flipped})
    with pytest.raises(FormatError, match=r"a: must hold the scores behind the report's acc 0\.5, got scores of 0\.75"):
        read_run(folder)
    write_run(folder, report, results | {"a": Result(0.5, 0.25, 0.75, 4, SCORES * 7, results["a"].ids)})
    with pytest.raises(FormatError, match="must hold scores of metric 'acc'"):
        read_run(folder)
