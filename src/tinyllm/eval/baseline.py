"""Is a run worse than a stored one? The regression gate: row by row, on the same items, in the worse direction only.

A row is **worse** when both hold: its mean per-item score moved in the worse direction by more than the row's margin,
and the one-sided paired sign-flip test says so at α = 0.05 after Holm's adjustment over the rows that are compared. An
unchanged model has no difference at all, and p = 1. Example: 40 items, ten that were right are wrong now and none the
other way: drop 0.25, p = 2⁻¹⁰. Pure and torch-free: rows and results in, fresh or read back, verdicts out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.metrics import better_item, is_of_text, own_differences
from tinyllm.report.baselines import StoredRun
from tinyllm.report.rows import Row
from tinyllm.result import Result
from tinyllm.stats.multiplicity import holm
from tinyllm.stats.permutation import paired_permutation_test

ALPHA = 0.05
DEFAULT_MARGIN = 1e-4
"""The drop that is let pass, in a score's own unit (nats a token), where scores are not 0 or 1; there it is 0."""
SHOWN = 10
RED = ("worse", "refused", "lost")
"""The answers that fail a run."""

Verdict = dict[str, Any]
"""A row's ``baseline`` in a report: ``against, answer, message, delta, p, p_holm, n, margin, items``.

``answer`` is ``pass``, ``worse``, ``refused`` (other items, data or protocol), ``lost`` (the baseline has a number and
this run has none), ``new`` (the baseline has none) or ``not-selected``. ``delta`` is the mean of this run's per-item
scores minus the baseline's, ``p`` one-sided, ``items`` up to ten of those that lost most, with ``item, before, now``.
"""


@dataclass(frozen=True)
class _Pair:
    """One row here and in the baseline, on the same items."""

    row: Row
    before: Row
    now_scores: NDArray[np.float64]
    before_scores: NDArray[np.float64]
    ids: Sequence[str] | None
    margin: float

    @property
    def drop(self) -> NDArray[np.float64]:
        """How much worse each item is, in the scores' unit."""
        lower = better_item(self.row) == "lower"
        return self.now_scores - self.before_scores if lower else self.before_scores - self.now_scores


def hold_against(
    baseline: StoredRun, rows: Sequence[Row], results: Mapping[str, Result], margins: Mapping[str, float | None]
) -> dict[str, Verdict]:
    """Every row's verdict, in the order of `rows`, then those of the baseline's rows that this run does not have.

    Parameters
    ----------
    baseline
        The stored run.
    rows, results
        This run's rows, and the per-item results of those that have a number.
    margins
        By row name, in the unit of per-item scores (nats a token, a proportion); absent or None: the default.

    Notes
    -----
    Sign patterns are drawn from ``PCG32(0)``: 10,000, and more where Holm's adjustment over many rows could otherwise
    never come below α. A row of a handful of items can fail only when 2^−m ≤ α / rows for its m items that changed.
    """
    verdicts: dict[str, Verdict] = {}
    pairs: dict[str, _Pair] = {}
    for row in rows:
        found = _match(row, results.get(row["name"]), baseline, margins.get(row["name"]))
        if isinstance(found, _Pair):
            pairs[row["name"]] = found
        verdicts[row["name"]] = _verdict(baseline, "pass", "") if isinstance(found, _Pair) else found
    p = [_p_worse(pair, len(pairs)) for pair in pairs.values()]
    for pair, one, adjusted in zip(pairs.values(), p, holm(p), strict=True):
        verdicts[pair.row["name"]] = _judge(pair, baseline, one, adjusted, len(pairs))
    partial = any(_not_selected(row) for row in rows)
    for name in baseline.results:
        if name not in verdicts:
            verdicts[name] = _absent(name, baseline, partial=partial)
    return verdicts


def _verdict(baseline: StoredRun, answer: str, message: str) -> Verdict:
    numbers = dict.fromkeys(("delta", "p", "p_holm", "n", "margin"))
    return {"against": baseline.label, "answer": answer, "message": message, **numbers, "items": []}


def _not_selected(row: Row) -> bool:
    return row["error"] is not None and row["error"]["type"] == "NotSelected"


def _absent(name: str, baseline: StoredRun, *, partial: bool) -> Verdict:
    if partial:
        return _verdict(baseline, "not-selected", f"{name}: not part of this run, which selected some rows only")
    fault = f"{name}: baseline {baseline.label} has a number for this row, and this run has no such row"
    return _verdict(baseline, "lost", f"{fault}; put its entry back, or save a new baseline")


def _match(row: Row, result: Result | None, baseline: StoredRun, margin: float | None) -> _Pair | Verdict:
    name, before = row["name"], baseline.rows.get(row["name"])
    before_result = baseline.results.get(name)
    if _not_selected(row):
        return _verdict(baseline, "not-selected", f"{name}: not selected, not compared")
    if before is None or before_result is None:
        why = "has no such row" if before is None else f"has no number for it ({before['status']})"
        return _verdict(baseline, "new", f"{name}: new row, nothing to compare: baseline {baseline.label} {why}")
    if result is None:
        error = row["error"] or {"type": row["status"], "message": "no scores"}
        fault = (
            f"{name}: baseline {baseline.label} has {before['metric']} {before['value']!r}, and this run has no number"
        )
        return _verdict(baseline, "lost", f"{fault}: {row['status']}: {error['type']}: {error['message']}")
    differences = list(_differences(row, result, before, before_result))
    if differences:
        fault = f"{name}: not the measurement that baseline {baseline.label} has: {'; '.join(differences)}"
        return _verdict(baseline, "refused", f"{fault}; undo that, or save a new baseline")
    now_scores, before_scores = result.per_item, before_result.per_item
    ids = result.ids if result.ids is not None else before_result.ids
    if margin is None:
        margin = 0.0 if _is_binary(row, now_scores, before_scores) else DEFAULT_MARGIN
    return _Pair(row, before, now_scores, before_scores, ids, margin)


def _is_binary(row: Row, *scores: NDArray[np.float64]) -> bool:
    return not is_of_text(row) and all(bool(((one == 0) | (one == 1)).all()) for one in scores)


def _differences(row: Row, result: Result, before: Row, before_result: Result) -> Iterator[str]:
    """What makes the two rows other measurements, each in words."""
    for key in ("kind", "metric"):
        if row[key] != before[key]:
            yield f"{key} {before[key]!r} there and {row[key]!r} here"
    if row["metric"] == before["metric"] and better_item(row) is None:
        yield f"metric {row['metric']!r}, which is not known here"
    for key in own_differences(row, before):
        facts = ((one["notes"].get("metric") or {}).get(key) for one in (before, row))
        yield "{} of the metric {!r} there and {!r} here".format(key, *facts)
    there, here = (one["data"]["sha256"] if one["data"] else None for one in (before, row))
    if there != here:
        yield f"data of SHA-256 {there} there and {here} here"
    absent = "absent"
    for key in sorted(row["settings"].keys() | before["settings"].keys()):
        one, other = (repr(where["settings"][key]) if key in where["settings"] else absent for where in (before, row))
        if one != other:
            yield f"{key} {one} there and {other} here"
    if len(result.per_item) != len(before_result.per_item):
        yield f"{len(before_result.per_item):,} items there and {len(result.per_item):,} here"
    elif result.ids is not None and before_result.ids is not None:
        for i, (other_id, one_id) in enumerate(zip(before_result.ids, result.ids, strict=True)):
            if other_id != one_id:
                yield f"item {i} is {other_id!r} there and {one_id!r} here"
                return


def _p_worse(pair: _Pair, rows: int) -> float:
    drop = pair.drop
    n_perm = max(10_000, 200 * rows)  # the least p-value, times the rows, must lie well below α
    return paired_permutation_test(drop, np.zeros_like(drop), n_perm=n_perm, alternative="greater")


def _judge(pair: _Pair, baseline: StoredRun, p: float, p_holm: float, rows: int) -> Verdict:
    drop = pair.drop
    worse = bool(drop.mean() > pair.margin and p_holm <= ALPHA)
    delta = float((pair.now_scores - pair.before_scores).mean())
    said = {True: f"worse than baseline {baseline.label}", False: f"not worse than baseline {baseline.label}"}[worse]
    unit = "nats a token" if is_of_text(pair.row) else "an item"
    message = (
        f"{pair.row['name']}: {said}: {pair.row['metric']} {pair.before['value']!r} → {pair.row['value']!r}, "
        f"delta {delta:+.6g} {unit} (margin {pair.margin:g}), one-sided p = {p:.4g}, "
        f"{p_holm:.4g} by Holm over {rows} {'row' if rows == 1 else 'rows'}, n = {len(drop):,}"
    )
    order = np.argsort(-drop, kind="stable")[:SHOWN]
    items = [_item(pair, int(i)) for i in order if drop[i] > 0]
    if worse:
        message += f"; {_flips(pair, items)}"
    numbers = {"delta": delta, "p": p, "p_holm": p_holm, "n": len(drop), "margin": pair.margin}
    return _verdict(baseline, "worse" if worse else "pass", message) | numbers | {"items": items}


def _item(pair: _Pair, index: int) -> dict[str, Any]:
    if pair.ids is not None:
        name = str(pair.ids[index])
    else:  # token 0 of a text is not scored
        name = f"token {index + 1}" if is_of_text(pair.row) else f"item {index}"
    return {"item": name, "before": float(pair.before_scores[index]), "now": float(pair.now_scores[index])}


def _flips(pair: _Pair, items: Sequence[Mapping[str, Any]]) -> str:
    names = [one["item"] if one["item"].isprintable() else ascii(one["item"]) for one in items]
    if _is_binary(pair.row, pair.now_scores, pair.before_scores):
        lost, won = int((pair.drop > 0).sum()), int((pair.drop < 0).sum())
        more = ", …" if lost > len(items) else ""
        return f"{lost:,} right there and wrong here, {won:,} the other way: {', '.join(names)}{more}"
    moved = (f"{name} ({one['now'] - one['before']:+.4g})" for name, one in zip(names, items, strict=True))
    grew = "NLL grew most at" if is_of_text(pair.row) else "lost most"
    return f"{grew} {', '.join(moved)}"


def summary_lines(verdicts: Mapping[str, Verdict], label: str, *, mark: str = "FAILED ") -> Iterator[str]:
    """The verdicts for the terminal: a count of each answer, then a sentence for every row that is not plainly held.

    Parameters
    ----------
    verdicts
        From `hold_against`.
    label
        The baseline's.
    mark
        What a red row's sentence begins with.
    """
    count = {answer: sum(one["answer"] == answer for one in verdicts.values()) for answer in _SAID}
    parts = [f"{n} {_SAID[answer]}" for answer, n in count.items() if n]
    yield f"against baseline {label}: {', '.join(parts)}"
    for one in verdicts.values():
        if one["answer"] in RED:
            yield f"{mark}{one['message']}"
    for one in verdicts.values():
        if one["answer"] == "new":
            yield one["message"]


_SAID = {
    "pass": "held",
    "worse": "worse",
    "refused": "refused",
    "lost": "lost",
    "new": "new",
    "not-selected": "not selected",
}
