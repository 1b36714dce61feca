"""What an item is to the report: the entry that it stands for, and why it ended without a row."""

from __future__ import annotations

import json

import pytest

from tinyllm.errors import said
from tinyllm.formats.manifest import BrokenEntry, Entry

WHY_LIMIT = 300


def entry_of(item: pytest.Item) -> Entry | BrokenEntry | None:
    """The manifest entry that an item was made for, or None."""
    callspec = getattr(item, "callspec", None)
    entry = None if callspec is None else callspec.params.get("zoo_entry")
    return entry if isinstance(entry, Entry | BrokenEntry) else None


def why_no_row(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    """Why an entry's row may never come, by what became of a phase of its item: a JSON list, or nothing.

    Status, error type and message; ASCII, so that no lone surrogate of a message can break the trip to the controller.
    A row that was scored all the same has the last word.
    """
    if report.passed:
        if report.when != "call":
            return ""
        return json.dumps(["error", "NotScored", "the test of this row passed without scoring it"])
    if call.excinfo is None:
        return ""
    status = "skipped" if report.skipped else "error"
    message = " ".join(said(call.excinfo.value).split())
    phase = "" if report.when == "call" else f"{report.when}: "
    return json.dumps([status, call.excinfo.typename, f"{phase}{message[:WHY_LIMIT]}"])
