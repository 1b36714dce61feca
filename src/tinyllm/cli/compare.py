"""``tinyllm compare A B``: the paired test of the rows that two stored reports share, or of two named rows.

Of two whole reports it also says what the regression gate says of B with A as its baseline; ``--gate`` makes that the
exit status.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tinyllm.errors import UsageError, nearest
from tinyllm.eval.baseline import RED, Verdict, hold_against, summary_lines
from tinyllm.eval.comparison import Comparison, compare_rows
from tinyllm.report.baselines import SUMS_FILE, StoredRun, numbers_in, read_stored
from tinyllm.report.rows import Row
from tinyllm.report.store import REPORT_FILE, read_run
from tinyllm.report.table import number
from tinyllm.result import Result

Scored = dict[str, tuple[Row, Result]]
Found = tuple[str, Row, Row, Comparison]
Refused = tuple[str, str]


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="compare two stored reports, row by row on the same items",
        description=(
            "A and B are report folders or report.json files, or baselines (evals/baselines/NAME: its newest); "
            "FOLDER:ROW names one row of one. Of two whole reports, B is also held against A as its baseline."
        ),
    )
    parser.add_argument("a", metavar="A", help="a report, or REPORT:ROW")
    parser.add_argument("b", metavar="B", help="another, or REPORT:ROW")
    parser.add_argument("--json", action="store_true", help="print the comparisons (--gate: the verdicts) as JSON")
    parser.add_argument("--gate", action="store_true", help="exit status 1 when B is worse than A, as in a gated run")
    parser.add_argument(
        "--margin",
        type=_margin,
        metavar="X",
        help="the drop that is let pass, nats a token or a proportion (default: the one B's run had, 1e-4, 0 for 0/1)",
    )
    parser.set_defaults(run=run)


def _margin(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return value


def run(options: argparse.Namespace) -> int:
    """Compare and print; exit status 1 when a shared row could not be compared, with ``--gate`` when B is worse too."""
    (a, a_row), (b, b_row) = _split(options.a), _split(options.b)
    if (a_row is None) != (b_row is None):
        raise UsageError("name a row of both reports (A:ROW B:ROW) or of neither")
    if a_row is not None and (options.gate or options.margin is not None):
        raise UsageError("--gate and --margin are for two whole reports; name no row")
    a_run, b_run = _stored(a), _stored(b)
    a_scored, b_scored = _scored(a_run), _scored(b_run)
    verdicts: dict[str, Verdict] = {}
    if a_row is not None and b_row is not None:
        pairs = [(f"{a_row} − {b_row}", _pick(a_scored, a_row, a), _pick(b_scored, b_row, b))]
    else:
        pairs = [(name, a_scored[name], b_scored[name]) for name in a_scored if name in b_scored]
        if not pairs:
            raise UsageError(f"{a} and {b} share no scored row; name one of each as {a}:ROW {b}:ROW")
        verdicts = _hold(a_run, b_run, options.margin)
    found, refused = _compare(pairs)
    for label, reason in refused:
        print(f"{label}: not compared: {reason}", file=sys.stderr)
    if options.json:
        compared = {label: asdict(comparison) for label, _, _, comparison in found}
        print(json.dumps(verdicts if options.gate else compared, allow_nan=False))
    else:
        for label, x_row, y_row, comparison in found:
            print(_line(label, x_row, y_row, comparison))
        if verdicts:
            for line in summary_lines(verdicts, a_run.label, mark="FAILED " if options.gate else ""):
                print(line)
    failed = options.gate and any(one["answer"] in RED for one in verdicts.values())
    return 1 if refused or failed else 0


def _hold(a: StoredRun, b: StoredRun, margin: float | None) -> dict[str, Verdict]:
    """B against A; a row of B that was held to a margin in its own run is held to the same."""
    own = {name: (row.get("baseline") or {}).get("margin") for name, row in b.rows.items()}
    margins = own if margin is None else dict.fromkeys(b.rows, margin)
    return hold_against(a, list(b.rows.values()), b.results, margins)


def _compare(pairs: list[tuple[str, tuple[Row, Result], tuple[Row, Result]]]) -> tuple[list[Found], list[Refused]]:
    """The pairs that can be compared, and why the others cannot; raises when none can."""
    found: list[Found] = []
    refused: list[Refused] = []
    for label, a, b in pairs:
        try:
            found.append((label, a[0], b[0], compare_rows(*a, *b)))
        except ValueError as error:
            if len(pairs) == 1:
                raise
            refused.append((label, str(error)))
    if not found:
        raise UsageError(refused[0][1])
    return found, refused


def _split(text: str) -> tuple[Path, str | None]:
    path, _, row = text.rpartition(":")
    if path and not Path(text).exists():
        return Path(path), row
    return Path(text), None


def _stored(path: Path) -> StoredRun:
    numbers = numbers_in(path)
    if numbers and not (path / REPORT_FILE).exists():
        path = path / numbers[-1]
        return read_stored(path, str(path))
    if (path / SUMS_FILE).exists():
        return read_stored(path, str(path))
    report, results = read_run(path)
    folder = path.parent if path.name == REPORT_FILE else path
    return StoredRun(str(folder), {row["name"]: row for row in report["rows"]}, results)


def _scored(run: StoredRun) -> Scored:
    return {name: (run.rows[name], result) for name, result in run.results.items()}


def _pick(scored: Scored, name: str, path: Path) -> tuple[Row, Result]:
    if name not in scored:
        raise UsageError(f"{path} has no scored row {name!r}; {nearest(name, scored)}")
    return scored[name]


def _line(label: str, a: Row, b: Row, comparison: Comparison) -> str:
    better = {"a": "A is better", "b": "B is better", "neither": "equal"}[comparison.better]
    noise = "" if comparison.p < 0.05 or comparison.better == "neither" else ", within item noise"
    return (
        f"{label}: {a['metric']} {number(a['value'])} and {number(b['value'])}, "
        f"mean item difference {comparison.delta:+.6g}, p = {comparison.p:.4g}, n = {comparison.n:,}: {better}{noise}"
    )
