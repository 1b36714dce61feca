"""The report while a run goes on: which file it lies in, and that a row known to be valid is not asked again."""

import json

import pytest

from tinyllm.errors import FormatError
from tinyllm.formats import report as formats_report
from tinyllm.report.assemble import report_document
from tinyllm.report.reportfile import ReportFile
from tinyllm.report.rows import failed_row, interrupted_row, missing_row

NAMES = ["a", "b", "c"]


def document(*, ended=False, **rows):
    every = {name: rows.get(name, missing_row(name, selected=True)) for name in NAMES}
    run = {"base_key": "0" * 16}
    return report_document(suite="s", seed=1, names=NAMES, rows=every, run=run, ended=ended)


def done(name):
    return failed_row(missing_row(name, selected=True), "error", "OSError", "no such disk")


COMPLETE = {name: done(name) for name in NAMES}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "r"


def report_file(folder, **keys):
    return ReportFile(folder, **{"overwrite": False, "option": "--overwrite", **keys})


def files(folder):
    return {path.name for path in folder.iterdir()}


def test_at_the_start_no_row_is_run_and_at_the_end_all_are(folder):
    file = report_file(folder)
    file.begin(document())
    first = json.loads((folder / "report.json").read_text())
    assert (first["complete"], {row["error"]["type"] for row in first["rows"]}) == (False, {"NotRun"})
    file.save(document(a=interrupted_row("a")), {})
    types = [row["error"]["type"] for row in json.loads((folder / "report.json").read_text())["rows"]]
    assert types == ["Interrupted", "NotRun", "NotRun"]
    file.end(document(ended=True, **COMPLETE), {})
    assert json.loads((folder / "report.json").read_text())["complete"] is True
    assert files(folder) == {"report.json", "items.safetensors"}


@pytest.fixture
def complete(folder):
    report_file(folder).end(document(ended=True, **COMPLETE), {})
    return (folder / "report.json").read_bytes()


def test_a_run_beside_a_complete_report_begins_and_ends_in_a_file_of_its_own(folder, complete):
    file = report_file(folder)
    file.begin(document())
    assert json.loads((folder / "report.partial.json").read_text())["complete"] is False
    file.save(document(a=done("a")), {})
    file.end(document(ended=True, a=done("a")), {})
    assert (folder / "report.json").read_bytes() == complete
    assert "it was left as it was (--overwrite replaces it)" in file.lines()[1]
    file.end(document(ended=True, **COMPLETE), {})
    assert files(folder) == {"report.json", "items.safetensors"}
    assert len(file.lines()) == 1


def test_a_run_that_does_not_concern_the_report_takes_away_what_it_put_there_and_no_more(folder, complete):
    file = report_file(folder)
    file.begin(document())
    file.withdraw()
    assert (folder / "report.json").read_bytes() == complete
    assert files(folder) == {"report.json", "items.safetensors"}


def test_what_another_run_left_unfinished_stays_until_this_one_has_a_row(folder, complete):
    other = report_file(folder)
    other.end(document(ended=True, b=done("b")), {})
    partial = (folder / "report.partial.json").read_bytes()
    file = report_file(folder)
    file.begin(document())
    file.withdraw()
    assert (folder / "report.partial.json").read_bytes() == partial


def test_a_row_is_held_against_the_schema_once_and_a_wrong_one_is_named_by_its_place(folder, monkeypatch):
    asked = []
    validate = formats_report.validate

    def spied(report, *rest):
        asked.append([row["name"] for row in report["rows"]])
        validate(report, *rest)

    monkeypatch.setattr(formats_report, "validate", spied)
    file = report_file(folder)
    file.begin(document())
    file.save(document(b=done("b")), {})
    file.save(document(b=done("b"), c=done("c")), {})
    assert asked == [NAMES, ["b"], ["c"]]
    wrong = done("c") | {"status": "fine"}
    file.save(document(b=done("b"), c=wrong), {})
    assert isinstance(file.error, FormatError)
    assert "rows[2].status: must be one of 'ok', 'error', 'skipped', got 'fine'" in str(file.error)


def test_the_file_is_what_json_dumps_gives_however_often_it_was_written_before(folder):
    file = report_file(folder)
    file.begin(document())
    for rows in ({"b": done("b")}, {"b": done("b"), "c": failed_row(done("c"), "error", "é", 'a "b"\n c')}):
        last = document(**rows)
        file.save(last, {})
        text = (folder / "report.json").read_text(encoding="utf-8")
        assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
        assert json.loads(text)["rows"] == last["rows"]


def test_with_overwrite_there_is_one_report_from_the_start_to_the_end(folder, complete):
    file = report_file(folder, overwrite=True)
    file.begin(document())
    file.save(document(a=done("a")), {})
    assert files(folder) == {"report.json", "items.safetensors"}
    assert json.loads((folder / "report.json").read_text())["complete"] is False


def test_beside_a_report_that_is_not_complete_there_is_no_second_one(folder):
    report_file(folder).end(document(ended=True, a=done("a")), {})
    file = report_file(folder)
    file.begin(document())
    file.save(document(b=done("b")), {})
    assert files(folder) == {"report.json", "items.safetensors"}
