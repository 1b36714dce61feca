"""A finished run on disk: ``report.json`` with its rows and beside it ``items.safetensors`` with their scores."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import FormatError
from tinyllm.formats.report import Written, read_items, read_report, write_items, write_report
from tinyllm.metrics import METRICS
from tinyllm.report.rows import Row, result_of
from tinyllm.result import Result

REPORT_FILE = "report.json"
ITEMS_FILE = "items.safetensors"
PARTIAL_REPORT_FILE = "report.partial.json"
PARTIAL_ITEMS_FILE = "items.partial.safetensors"


def check_writable(folder: Path) -> None:
    """Refuse a report folder that cannot be written to, before hours are spent; nothing is made of it yet.

    Raises
    ------
    FormatError
        With the system's reason.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists() or path.is_symlink())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise FormatError(folder, f"the report folder must be writable, got {error.strerror!r}") from error


def items_file(report: Path) -> Path:
    """The file of per-item scores that belongs to a report: ``report.partial.json`` has its own."""
    return report.with_name(PARTIAL_ITEMS_FILE if report.name == PARTIAL_REPORT_FILE else ITEMS_FILE)


def has_complete_report(folder: Path, *, limited: bool = True) -> bool:
    """Whether the folder has a report of a run that gave every row its chance, also one `limited` to some items."""
    try:
        report = read_report(folder / REPORT_FILE)
    except FormatError:
        return False
    return bool(report["complete"]) and (limited or report["run"].get("limit") is None)


def write_run(
    folder: Path,
    report: Mapping[str, Any],
    results: Mapping[str, Result],
    *,
    partial: bool = False,
    written: Written | None = None,
) -> Path:
    """Write both files, the report last, so that a report on disk always has its items; returns the report's path.

    Parameters
    ----------
    folder
        Of the two files; made when it is missing.
    report, results
        The report, and the result of every row that has a number.
    partial
        Write ``report.partial.json`` and its items instead, beside a complete report that stays.
    written
        What `tinyllm.formats.report.report_bytes` keeps from one writing to the next.

    Raises
    ------
    FormatError
        When the report is not what its schema says, or the folder cannot be written to.
    """
    path = folder / (PARTIAL_REPORT_FILE if partial else REPORT_FILE)
    write_items(items_file(path), {name: (result.per_item, result.ids) for name, result in results.items()})
    write_report(report, path, written=written)
    return path


def write_report_alone(
    folder: Path, report: Mapping[str, Any], *, partial: bool = False, written: Written | None = None
) -> Path:
    """`write_run` where the results are those written before: the items beside the report stay.

    Raises
    ------
    FormatError
        As `write_run`.
    """
    path = folder / (PARTIAL_REPORT_FILE if partial else REPORT_FILE)
    write_report(report, path, written=written)
    return path


def remove_run(folder: Path, *, partial: bool = False) -> None:
    """Remove a report and its items, and the folder when nothing else is in it; nothing there is fine."""
    path = folder / (PARTIAL_REPORT_FILE if partial else REPORT_FILE)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        items_file(path).unlink(missing_ok=True)
        folder.rmdir()


def read_run(path: Path) -> tuple[dict[str, Any], dict[str, Result]]:
    """Read a run back: `path` is its folder or its ``report.json``.

    Raises
    ------
    FormatError
        For a missing or faulty file, and for a row with a number whose items are missing or of another count.
    """
    report_path = path / REPORT_FILE if path.is_dir() else path
    report = read_report(report_path)
    items_path = items_file(report_path)
    items = read_items(items_path)
    results = {}
    for row in report["rows"]:
        if row["status"] != "ok":
            continue
        per_item, ids = items.get(row["name"], (None, None))
        if per_item is None or len(per_item) != row["n"]:
            got = "none" if per_item is None else len(per_item)
            message = (
                f"must hold the {row['n']} scores of row {row['name']!r}, got {got}; are it and the report of one run?"
            )
            raise FormatError(items_path, message)
        _check_value(row, per_item, items_path)
        results[row["name"]] = result_of(row, per_item, ids)
    return report, results


def _check_value(row: Row, per_item: NDArray[np.float64], path: Path) -> None:
    """A stored value must be that of its items, by the metric's own formula; else one of the two files was changed."""
    metric = METRICS.get(row["metric"])
    if metric is None:
        return
    try:
        value = metric.estimate(per_item, row["notes"].get("n_bytes"))[0]
    except ValueError as error:
        raise FormatError(path, f"must hold scores of metric {row['metric']!r}: {error}", where=row["name"]) from error
    if not math.isclose(value, row["value"], rel_tol=1e-12):
        message = f"must hold the scores behind the report's {row['metric']} {row['value']!r}, got scores of {value!r}"
        raise FormatError(path, f"{message}; one of the two files was changed", where=row["name"])
