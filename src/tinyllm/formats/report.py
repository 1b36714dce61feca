"""The report (``formats/eval-results.schema.json``): validated whenever it is written or read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinyllm.errors import FormatError
from tinyllm.formats.atomic import write_atomic
from tinyllm.formats.items import read_items, write_items
from tinyllm.formats.regular import regular
from tinyllm.formats.schema import load_schema, validate
from tinyllm.formats.strict_json import parse

__all__ = ["SCHEMA", "check_report", "read_items", "read_report", "write_items", "write_report"]

SCHEMA = "tinyllm/eval-results/1"

Written = dict[str, tuple[Mapping[str, Any], str]]
"""Rows that were written, by name, each with its text in the file."""


def check_report(report: Any, path: str | Path, *, written: Written | None = None) -> None:
    """Hold a report against its schema, and against the two rules no schema can state.

    Parameters
    ----------
    report
        Plain JSON values.
    path
        The file, or a name for it.
    written
        Rows that were written before, and so are valid: only others are held against the schema.

    Raises
    ------
    FormatError
        With the path into the document; also when two rows share a name or a value lies outside its own interval.
    """
    new = report
    if written:
        new = {**report, "rows": [row for row in report["rows"] if _text_of(row, written) is None]}
    try:
        validate(new, "eval-results", path)
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


def _dumps(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def _text_of(row: Mapping[str, Any], written: Written | None) -> str | None:
    before, text = (written or {}).get(row["name"], (None, ""))
    return text if before == row else None


def report_bytes(report: Mapping[str, Any], path: str | Path = "report", *, written: Written | None = None) -> bytes:
    """The validated report as its file has it: schema order, two spaces of indent, numbers by ``repr``, UTF-8.

    Half a surrogate pair in an error's message (a file name that is no text) is written as its JSON escape, so that
    no message can cost a report.

    Parameters
    ----------
    report
        Plain JSON values.
    path
        The file it is for, for the message.
    written
        Rows as they were written before; the report's are added. Whoever writes a report after every row keeps one of
        these, and each row is held against the schema and put into words once.

    Raises
    ------
    FormatError
        When the report is not valid.
    """
    check_report(dict(report), path, written=written)
    ordered = _in_schema_order(report)
    rows, ordered["rows"] = ordered["rows"], []
    texts = []
    for row in rows:
        text = _text_of(row, written)
        if text is None:
            text = _dumps(row).replace("\n", "\n    ")  # a string holds no bare newline: each is one of the layout
            if written is not None:
                written[row["name"]] = (row, text)
        texts.append(text)
    whole = _dumps(ordered)
    if texts:
        whole = whole.removesuffix("[]\n}") + "[\n    " + ",\n    ".join(texts) + "\n  ]\n}"
    return whole.encode("utf-8", "backslashreplace") + b"\n"


def write_report(report: Mapping[str, Any], path: str | Path, *, written: Written | None = None) -> None:
    """Validate a report and write it atomically; missing folders are made.

    Parameters
    ----------
    report
        Plain JSON values.
    path
        The file; the old one stays whole when this fails.
    written
        As `report_bytes`.

    Raises
    ------
    FormatError
        When the report is not valid (the old file stays), or the folder cannot be written.
    """
    write_atomic(path, report_bytes(report, path, written=written))


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
        text = regular(Path(path)).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FormatError(path, f"must be a readable file, got {error.strerror!r}") from error
    except UnicodeDecodeError as error:
        raise FormatError(path, f"must be UTF-8, got byte {error.object[error.start]:#04x}") from error
    report: dict[str, Any] = parse(text, path, lone_surrogates=True)
    check_report(report, path)
    return report
