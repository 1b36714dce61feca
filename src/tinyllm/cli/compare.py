"""``tinyllm compare A B``: the paired test of the rows that two stored reports share, or of two named rows."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tinyllm.errors import UsageError, nearest
from tinyllm.eval.comparison import Comparison, compare_rows
from tinyllm.report.rows import Row
from tinyllm.report.store import read_run
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
        description="A and B are report folders or report.json files; FOLDER:ROW names one row of one.",
    )
    parser.add_argument("a", metavar="A", help="a report, or REPORT:ROW")
    parser.add_argument("b", metavar="B", help="another, or REPORT:ROW")
    parser.add_argument("--json", action="store_true", help="print the comparisons as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare and print; exit status 0 whatever the difference, 1 when a shared row could not be compared."""
    (a, a_row), (b, b_row) = _split(options.a), _split(options.b)
    a_scored, b_scored = _scored(a), _scored(b)
    if (a_row is None) != (b_row is None):
        raise UsageError("name a row of both reports (A:ROW B:ROW) or of neither")
    if a_row is not None and b_row is not None:
        pairs = [(f"{a_row} − {b_row}", _pick(a_scored, a_row, a), _pick(b_scored, b_row, b))]
    else:
        pairs = [(name, a_scored[name], b_scored[name]) for name in a_scored if name in b_scored]
        if not pairs:
            raise UsageError(f"{a} and {b} share no scored row; name one of each as {a}:ROW {b}:ROW")
    found, refused = _compare(pairs)
    if options.json:
        print(json.dumps({label: asdict(comparison) for label, _, _, comparison in found}, allow_nan=False))
    for label, reason in refused:
        print(f"{label}: not compared: {reason}", file=sys.stderr)
    if options.json:
        return 1 if refused else 0
    for label, x_row, y_row, comparison in found:
        print(_line(label, x_row, y_row, comparison))
    return 1 if refused else 0


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


def _scored(path: Path) -> Scored:
    report, results = read_run(path)
    return {row["name"]: (row, results[row["name"]]) for row in report["rows"] if row["name"] in results}


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
