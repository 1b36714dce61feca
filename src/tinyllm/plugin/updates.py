"""What `pytest_tinyllm_update_report` adds to a report, held to its rule: facts may be added, numbers stay."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tinyllm.errors import FOREIGN, FormatError, said
from tinyllm.formats.report import report_bytes

NAME = "pytest_tinyllm_update_report"


def updated_report(config: pytest.Config, report: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The report with what the hook's implementations add, and nothing; or as it was, and what was wrong with them.

    Parameters
    ----------
    config
        The run's.
    report
        Complete or not; it is not changed.
    """
    if not config.pluginmanager.hook.pytest_tinyllm_update_report.get_hookimpls():
        return report, ""
    changed = copy.deepcopy(report)
    try:
        config.pluginmanager.hook.pytest_tinyllm_update_report(config=config, report=changed)
    except (*FOREIGN, KeyboardInterrupt, pytest.fail.Exception, pytest.skip.Exception) as error:
        return report, f"{NAME}: {type(error).__name__}: {said(error)}"  # it costs what it would have added, and no row
    wrong = next(_lost(report, changed), "")
    if wrong:
        return report, f"{NAME}: must only add keys to run and to rows' notes, got a report with another {wrong}"
    try:
        report_bytes(changed)
    except (FormatError, RecursionError) as error:  # a report inside itself
        return report, f"{NAME}: {type(error).__name__}: {error}"
    return changed, ""


def _lost(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The places where something is not what it was."""
    for key in sorted(before.keys() | after.keys()):
        if key not in ("run", "rows") and not _same(before, after, key):
            yield key
    yield from (f"run.{key}" for key in before["run"] if not _same(before["run"], after.get("run"), key))
    rows = after.get("rows")
    if not isinstance(rows, list) or len(rows) != len(before["rows"]):
        yield "number of rows"
        return
    for i, (old, new) in enumerate(zip(before["rows"], rows, strict=True)):
        keys = old.keys() | (new.keys() if isinstance(new, dict) else set())
        yield from (f"rows[{i}].{key}" for key in sorted(keys - {"notes"}) if not _same(old, new, key))
        notes = new.get("notes") if isinstance(new, dict) else None
        yield from (f"rows[{i}].notes.{key}" for key in old["notes"] if not _same(old["notes"], notes, key))


def _same(before: Mapping[str, Any], after: Any, key: str) -> bool:
    """Equal, and of the same type: 1, 1.0 and True are written differently."""
    if not isinstance(after, dict) or key not in before or key not in after:
        return False
    return repr(before[key]) == repr(after[key])
