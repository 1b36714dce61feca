"""Gates: a bound on a row's number, judged on the interval, with three answers.

``max = 2.2`` asks that the whole interval lie at or below 2.2, ``min`` that it lie at or above. **pass**: it does.
**fail**: it lies wholly on the other side. **undecided**: it straddles the bound; the message says how many items would
decide it, were the value to stay. Example: value 2.15, interval [2.08, 2.22], max 2.2 is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tinyllm.formats.manifest import BrokenEntry, Manifest
from tinyllm.report.rows import NOT_EVALUATED, Row

Gate = dict[str, Any]


def judge(row: Row, minimum: float | None, maximum: float | None) -> Gate | None:
    """The gate's part of a report row: the bounds, the answer, and a sentence a person can act on.

    Parameters
    ----------
    row
        A row as `tinyllm.report.rows` has it; one without a number is ``not-evaluated``.
    minimum, maximum
        The bounds in the metric's unit; None for no bound on that side.

    Returns
    -------
    ``{"min", "max", "answer", "message"}``, or None when there is no bound at all.
    """
    if minimum is None and maximum is None:
        return None
    if row["status"] != "ok":
        return unjudged(row, minimum, maximum)
    sides = [side for side in (("min", minimum), ("max", maximum)) if side[1] is not None]
    judged = [_judge_side(row, name, bound) for name, bound in sides if bound is not None]
    for answer in ("fail", "undecided", "pass"):
        sentences = [sentence for got, sentence in judged if got == answer]
        if sentences:
            return {"min": minimum, "max": maximum, "answer": answer, "message": "; ".join(sentences)}
    raise AssertionError("a side has one of three answers")


def unjudged(row: Row, minimum: float | None = None, maximum: float | None = None) -> Gate:
    """The gate of a row without a number; the bounds are None where the entry is too broken to say them."""
    message = f"no number to hold against the gate: the row is {row['status']}"
    return {"min": minimum, "max": maximum, "answer": NOT_EVALUATED, "message": message}


def with_gates(rows: Mapping[str, Row], manifest: Manifest) -> dict[str, Row]:
    """The rows, where each that was never scored says of its entry's gate that nothing was held against it."""
    found = dict(rows)
    for entry in manifest.entries:
        row = found.get(entry.name)
        if row is None or row["gate"] is not None or row["status"] == "ok":
            continue
        if isinstance(entry, BrokenEntry):
            gate = unjudged(row) if entry.gated else None
        else:
            gate = judge(row, entry.min, entry.max)
        found[entry.name] = {**row, "gate": gate}
    return found


def _judge_side(row: Row, side: str, bound: float) -> tuple[str, str]:
    value, lo, hi = row["value"], row["lo"], row["hi"]
    stated = (
        f"{row['name']}: {row['metric']} {value!r}, 95% interval [{lo!r}, {hi!r}], n = {row['n']:,}, {side} {bound!r}"
    )
    if lo is None or hi is None:
        return "undecided", f"{stated}: {row['n']} item has no interval; score more items"
    far, near = (hi, lo) if side == "max" else (lo, hi)
    sign = 1 if side == "max" else -1  # beyond the bound is above a max, below a min
    if sign * far <= sign * bound:
        return "pass", f"{stated}: the whole interval lies within the bound"
    if sign * near > sign * bound:
        return "fail", f"{stated}: the whole interval lies beyond the bound, by {abs(near - bound):.6g} at its near end"
    return "undecided", f"{stated}: the interval straddles the bound; {_needed(row, bound, abs(far - value))}"


def _needed(row: Row, bound: float, half_width: float) -> str:
    distance = abs(bound - row["value"])
    if distance == 0:
        return "the value is the bound itself, which no number of items decides"
    ratio = half_width / distance
    if ratio > 1e6:
        return "the value is so near the bound that no practical number of items decides"
    needed = math.ceil(row["n"] * ratio**2)
    return f"about {needed:,} items would decide it, should the value stay"
