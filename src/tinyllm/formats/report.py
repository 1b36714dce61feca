"""The report (``formats/eval-results.schema.json``): validated whenever it is written or read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tinyllm.errors import FormatError
from tinyllm.formats.atomic import write_atomic
from tinyllm.formats.items import read_items, write_items
from tinyllm.formats.schema import load_schema, validate
from tinyllm.formats.strict_json import parse

__all__ = ["SCHEMA", "check_report", "read_items", "read_report", "write_items", "write_report"]

SCHEMA = "tinyllm/eval-results/1"


def check_report(report: Any, path: str | Path, *, checked: Iterable[Mapping[str, Any]] = ()) -> None:
    """Hold a report against its schema, and against the two rules no schema can state.

    Parameters
    ----------
    report
        Plain JSON values.
    path
        The file, or a name for it.
    checked
        Rows that were found valid before: a run that writes its report after every row has only the new one looked at.

    Raises
    ------
    FormatError
        With the path into the document; also when two rows share a name or a value lies outside its own interval.
    """
    known = {row["name"]: row for row in checked}
    new = [row for row in report["rows"] if known.get(row["name"]) != row] if known else None
    try:
        validate(report if new is None else {**report, "rows": new}, "eval-results", path)
    except FormatError:
        validate(report, "eval-results", path)  # again, for the row's place in the whole
        raise
    first: dict[str, int] = {}
    for index, row in enumerate(report["rows"]):
        name, value = row["name"], row["value"]
        if name in first:
            fault = f"must be unique, got {name!r} again (first in rows[{first[name]}])"
            raise FormatError(path, fault, where=f"rows[{index}].name")
        first[name] = index
        for key, side, sign in (("lo", "above", 1), ("hi", "below", -1)):
            if value is not None and row[key] is not None and sign * row[key] > sign * value:
                fault = f"must not lie {side} the value {value!r}, got {row[key]!r}"
                raise FormatError(path, fault, where=f"rows[{index}].{key}")


def _in_schema_order(report: Mapping[str, Any]) -> dict[str, Any]:
    schema = load_schema("eval-results")
    row_keys, run_keys = (schema["$defs"][part]["properties"] for part in ("row", "run"))
    ordered = {key: report[key] for key in schema["properties"]}
    run = report["run"]
    ordered["run"] = {key: run[key] for key in (*run_keys, *sorted(run.keys() - run_keys.keys())) if key in run}
    ordered["rows"] = [{key: row[key] for key in row_keys if key in row} for row in report["rows"]]
    return ordered


def report_bytes(
    report: Mapping[str, Any], path: str | Path = "report", *, checked: Iterable[Mapping[str, Any]] = ()
) -> bytes:
    """The validated report as its file has it: schema order, two spaces of indent, numbers by ``repr``, UTF-8.

    Half a surrogate pair in an error's message (a file name that is no text) is written as its JSON escape, so that
    no message can cost a report.

    Parameters
    ----------
    report
        Plain JSON values.
    path
        The file it is for, for the message.
    checked
        As `check_report`.

    Raises
    ------
    FormatError
        When the report is not valid.
    """
    check_report(dict(report), path, checked=checked)
    text = json.dumps(_in_schema_order(report), indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def write_report(report: Mapping[str, Any], path: str | Path, *, checked: Iterable[Mapping[str, Any]] = ()) -> None:
    """Validate a report and write it atomically; missing folders are made.

    Parameters
    ----------
    report
        Plain JSON values.
    path
        The file; the old one stays whole when this fails.
    checked
        As `check_report`.

    Raises
    ------
    FormatError
        When the report is not valid (the old file stays), or the folder cannot be written.
    """
    write_atomic(path, report_bytes(report, path, checked=checked))


def read_report(path: str | Path) -> dict[str, Any]:
    """Read a report and validate it.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    FormatError
        When it cannot be read, is not strict JSON, or is not valid.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FormatError(path, f"must be a readable file, got {error.strerror!r}") from error
    except UnicodeDecodeError as error:
        raise FormatError(path, f"must be UTF-8, got byte {error.object[error.start]:#04x}") from error
    report: dict[str, Any] = parse(text, path, lone_surrogates=True)
    check_report(report, path)
    return report
