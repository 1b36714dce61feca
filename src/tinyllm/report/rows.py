"""The rows of a report, as plain dictionaries: how one begins, and how one that cannot be scored says why.

A row that is not scored is never dropped: it has ``value: null`` and an error with a type and a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.result import Result

Row = dict[str, Any]

NOT_EVALUATED = "not-evaluated"


def blank_row(name: str) -> Row:
    """A row with every key of the schema, nothing known yet: status ``error``, not run."""
    return {
        "name": name,
        "arch": None,
        "kind": None,
        "task": None,
        "metric": None,
        "unit": None,
        "value": None,
        "lo": None,
        "hi": None,
        "n": None,
        "status": "error",
        "error": {"type": "NotRun", "message": "the run ended before this row was scored"},
        "interval": None,
        "settings": {},
        "data": None,
        "checkpoint": None,
        "notes": {},
        "gate": None,
        "baseline": None,
    }


def failed_row(row: Row, status: str, error_type: str, message: str) -> Row:
    """The row with what is known of it and no number: ``status`` is ``error`` or ``skipped``."""
    numbers = dict.fromkeys(("value", "lo", "hi", "n", "interval"))
    return {**row, **numbers, "status": status, "error": {"type": error_type, "message": message or "no message"}}


def missing_row(name: str, *, selected: bool, reason: str = "") -> Row:
    """The row of an entry that sent nothing: its item was not reached, or was not part of this run.

    Parameters
    ----------
    name
        The entry.
    selected
        Whether the run was to score it.
    reason
        Why the run ended before it did, where that is known.
    """
    row = blank_row(name)
    if not selected:
        return failed_row(row, "skipped", "NotSelected", "this run did not select the row")
    message = row["error"]["message"]
    return failed_row(row, "error", "NotRun", f"{message}: {reason}" if reason else message)


def unasked_row(name: str) -> Row:
    """The row of an entry for which the whole suite has no test: nothing was deselected, nothing asked for it."""
    return failed_row(blank_row(name), "skipped", "NotAsked", "no test of the suite asks for this row")


def interrupted_row(name: str) -> Row:
    """The row of an entry whose scoring had begun when the run ended."""
    return failed_row(blank_row(name), "error", "Interrupted", "the run ended while this row was being scored")


def is_unfinished(row: Row) -> bool:
    """Whether a row was not given its chance: a report that has one is not complete."""
    return row["error"] is not None and row["error"]["type"] in ("NotRun", "NotSelected", "Interrupted")


def result_of(row: Row, per_item: NDArray[np.float64], ids: Sequence[str] | None) -> Result:
    """The `Result` of a row that has a number, from its stored per-item scores; a null end is infinite again."""
    lo = -np.inf if row["lo"] is None else row["lo"]
    hi = np.inf if row["hi"] is None else row["hi"]
    return Result(row["value"], lo, hi, row["n"], per_item, None if ids is None else tuple(ids))


def passes(row: Row, *, undecided: str) -> bool:
    """Whether a run may be green with this row: scored and within its gate, or skipped and without one.

    Parameters
    ----------
    row
        The row.
    undecided
        ``fail`` or ``warn``: what a gate whose interval straddles its bound counts as.
    """
    if row["gate"] is None:
        return bool(row["status"] != "error")
    return row["gate"]["answer"] in {"fail": ("pass",), "warn": ("pass", "undecided")}[undecided]
