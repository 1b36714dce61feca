"""The report: refused with the path of the fault, or written whole."""

import copy
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tinyllm.errors import FormatError
from tinyllm.formats.report import read_report, report_bytes, write_report
from tinyllm.formats.schema import load_schema

ROW = {
    "name": "gpt",
    "arch": "gpt",
    "kind": "lm",
    "task": "stories",
    "metric": "bpb",
    "unit": "bits per byte",
    "value": 0.1 + 0.2,
    "lo": 0.25,
    "hi": 1,
    "n": 20479,
    "status": "ok",
    "error": None,
    "interval": "student-t",
    "settings": {"ctx_len": 128, "stride": 64},
    "data": {"name": "stories/heldout", "sha256": "0" * 64},
    "checkpoint": {"sha256": "f" * 64},
    "notes": {"n_merged": 2, "labels": ["a", "b"]},
    "gate": {"max": 2.2, "answer": "pass", "message": "1 lies below 2.2"},
}
BROKEN = ROW | {
    "name": "old",
    "value": None,
    "lo": None,
    "hi": None,
    "n": None,
    "metric": None,
    "status": "error",
    "error": {"type": "CheckpointError", "message": "missing tensor 'ln_f.weight'"},
    "interval": None,
    "gate": None,
}


def report(*rows):
    return {
        "schema": "tinyllm/eval-results/1",
        "suite": "zoo",
        "seed": 0,
        "complete": True,
        "run": {"base_key": "0123456789abcdef", "host": "here", "beside": [1]},
        "rows": copy.deepcopy(list(rows) or [ROW, BROKEN]),
    }


def test_what_is_written_is_what_is_read(tmp_path):
    write_report(report(), tmp_path / "new" / "folder" / "report.json")
    assert read_report(tmp_path / "new" / "folder" / "report.json") == report()


def test_the_schema_itself_is_valid_2020_12():
    for name in ("eval-results", "manifest"):
        schema = load_schema(name)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        Draft202012Validator.check_schema(schema)


def test_keys_stand_in_schema_order_and_numbers_in_full(tmp_path):
    shuffled = dict(reversed(report().items()))
    shuffled["rows"] = [dict(reversed(row.items())) for row in shuffled["rows"]]
    text = report_bytes(shuffled).decode()
    assert list(json.loads(text)) == ["schema", "suite", "seed", "complete", "run", "rows"]
    assert list(json.loads(text)["rows"][0]) == list(ROW)
    assert text.startswith('{\n  "schema": "tinyllm/eval-results/1",\n')
    assert '"value": 0.30000000000000004,\n' in text
    assert text.endswith("}\n")
    assert not text.endswith("\n\n")


def test_one_observation_has_a_value_without_an_interval():
    assert json.loads(report_bytes(report(ROW | {"lo": None, "hi": None, "interval": None})))["rows"][0]["lo"] is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda r, v: r["rows"][1].update(notes={"a": [1, v]}), r"rows\[1\]\.notes\.a\[1\]"),
        (lambda r, v: r["rows"][0].update(lo=v), r"rows\[0\]\.lo"),
        (lambda r, v: r["run"].update(duration_s=v), r"run\.duration_s"),
    ],
)
def test_fault_row_62_nan_and_infinity_are_refused_by_their_path(tmp_path, change, where, value):
    path, changed = tmp_path / "report.json", report()
    change(changed, value)
    with pytest.raises(FormatError, match=rf"report\.json: {where}: must be a finite number or null, got {value}"):
        write_report(changed, path)
    assert not path.exists()
    path.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(FormatError, match=f"{where}: must be a finite number, got {value}"):
        read_report(path)


FAULTS = {
    "unknown key": (lambda r: r.update(row=1), r"report: unknown key 'row'; did you mean 'rows'"),
    "unknown row key": (lambda r: r["rows"][0].update(vale=1), r"rows\[0\]: unknown key 'vale'; did you mean 'value'"),
    "renamed": (lambda r: r["rows"][0].update(valeu=r["rows"][0].pop("value")), r"unknown key 'valeu'; did you mean"),
    "missing": (lambda r: r["rows"][1].pop("lo"), r"rows\[1\]: missing key 'lo'"),
    "no base key": (lambda r: r["run"].pop("base_key"), "run: missing key 'base_key'"),
    "base key": (lambda r: r["run"].update(base_key="0" * 15 + "A"), r"run.base_key: must match .*, got '0+A'"),
    "newline": (lambda r: r["run"].update(base_key="0" * 16 + "\n"), r"run.base_key: must match"),
    "type": (lambda r: r["rows"][0].update(n="3"), r"rows\[0\].n: must be an integer or null, got '3'"),
    "float n": (lambda r: r["rows"][0].update(n=3.0), r"rows\[0\].n: must be an integer or null, got 3.0"),
    "bool n": (lambda r: r["rows"][0].update(n=True), r"rows\[0\].n: must be an integer or null, got True"),
    "empty n": (lambda r: r["rows"][0].update(n=0), r"rows\[0\].n: must be at least 1, got 0"),
    "status": (lambda r: r["rows"][0].update(status="okay"), r"must be one of 'ok', .*, got 'okay'; did you mean 'ok'"),
    "ok value": (
        lambda r: r["rows"][0].update(value=None),
        r"value: must be a number since the status is ok, got None",
    ),
    "ok metric": (lambda r: r["rows"][0].update(metric=None), r"metric: must be a string since the status is ok"),
    "ok n": (
        lambda r: r["rows"][0].update(n=None),
        r"rows\[0\].n: must be an integer since the status is ok, got None",
    ),
    "ok error": (lambda r: r["rows"][0].update(error=BROKEN["error"]), "error: must be null since the status is ok"),
    "error value": (
        lambda r: r["rows"][1].update(value=1),
        r"rows\[1\].value: must be null since the status is not ok",
    ),
    "error lo": (lambda r: r["rows"][1].update(lo=1), r"rows\[1\].lo: must be null since the status is not ok"),
    "error hi": (lambda r: r["rows"][1].update(hi=1), r"rows\[1\].hi: must be null since the status is not ok"),
    "no error": (lambda r: r["rows"][1].update(error=None), r"error: must be an object since the status is not ok"),
    "no reason": (lambda r: r["rows"][1]["error"].update(message=""), r"error.message: must be at least 1 character"),
    "slug": (lambda r: r["rows"][0].update(name="a b"), r"rows\[0\].name: must match .*, got 'a b'"),
    "hash": (lambda r: r["rows"][0]["data"].update(sha256="0"), r"rows\[0\].data.sha256: must match"),
    "gate": (lambda r: r["rows"][0]["gate"].update(answer="yes"), r"rows\[0\].gate.answer: must be one of 'pass'"),
    "setting": (lambda r: r["rows"][0]["settings"].update(a=[]), r"rows\[0\].settings.a: must be a string or a number"),
    "twice-row-54": (
        lambda r: r["rows"][1].update(name="gpt"),
        r"rows\[1\].name: must be unique, got 'gpt' again .*rows\[0\]",
    ),
    "lo": (lambda r: r["rows"][0].update(lo=0.4), r"rows\[0\].lo: must not lie above the value 0.30+4, got 0.4"),
    "hi": (lambda r: r["rows"][0].update(hi=0.3), r"rows\[0\].hi: must not lie below the value 0.30+4, got 0.3"),
    "object": (lambda r: r["run"].update(path=Path("x")), r"run.path: must be plain JSON, got PosixPath\('x'\)"),
    "key": (lambda r: r["run"].update({3: 1}), r"run.3 \(the key\): must be plain JSON, got 3 of type int"),
    "schema": (lambda r: r.update(schema="x"), "schema: must be 'tinyllm/eval-results/1', got 'x'"),
}


@pytest.mark.parametrize(("change", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_by_its_path_into_the_document(change, message):
    changed = report()
    change(changed)
    with pytest.raises(FormatError, match=message):
        report_bytes(changed)


def test_an_interval_may_touch_its_value():
    assert report_bytes(report(ROW | {"lo": ROW["value"], "hi": ROW["value"]}))


def test_a_report_that_is_no_object_or_no_json_is_refused(tmp_path):
    for text, message in [("[]", r"must be an object, got \[\]"), ("{", "line 1, column 2: must be JSON")]:
        (tmp_path / "report.json").write_text(text, encoding="utf-8")
        with pytest.raises(FormatError, match=message):
            read_report(tmp_path / "report.json")


def test_fault_row_58_a_failed_write_leaves_the_old_report_and_no_temporary_file(tmp_path, monkeypatch):
    write_report(report(), tmp_path / "report.json")
    before = (tmp_path / "report.json").read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FormatError, match=r"report\.json: must be writable, got 'No space left on device'"):
        write_report(report(ROW), tmp_path / "report.json")
    assert (tmp_path / "report.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_fault_row_58_a_reader_of_the_old_report_keeps_all_of_it(tmp_path):
    write_report(report(), tmp_path / "report.json")
    with (tmp_path / "report.json").open("rb") as reader:
        write_report(report(ROW), tmp_path / "report.json")
        assert json.loads(reader.read()) == report()
    assert read_report(tmp_path / "report.json") == report(ROW)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FormatError, match=r"report\.json: must be writable, got '(Not a directory|File exists)'"):
        write_report(report(), tmp_path / "file" / "report.json")


def test_a_new_report_has_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_report(report(), tmp_path / "report.json")
    finally:
        os.umask(before)
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o640


def test_fault_row_61_no_locale_and_no_surrogate_costs_a_report(tmp_path):
    message = "😀 caf\udce9"
    (tmp_path / "in.json").write_text(json.dumps(report(BROKEN | {"error": {"type": "E", "message": message}})))
    code = (
        "import sys; from tinyllm.formats.report import read_report, write_report;"
        "write_report(read_report(sys.argv[1]), sys.argv[2])"
    )
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "in.json", tmp_path / "out.json"], env=environment, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "😀 caf\\udce9".encode() in (tmp_path / "out.json").read_bytes()
    assert read_report(tmp_path / "out.json")["rows"][0]["error"]["message"] == message
