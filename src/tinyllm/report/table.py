"""Rows as the lines of a table for the terminal: pure, and tested without one."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from tinyllm.report.rows import Row

COLUMNS = ("row", "task", "metric", "value", "95% interval", "n", "gate", "")
RIGHT = {"value", "n"}
NOTHING = "–"


def number(value: float | None) -> str:
    """Four significant digits after the point for numbers of everyday size; a dash for no number."""
    if value is None:
        return NOTHING
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.4g}"


def bound(gate: Row | None) -> str:
    """A gate as the manifest states it, such as ``max 2.2``."""
    if gate is None:
        return ""
    return ", ".join(f"{side} {gate[side]:g}" for side in ("min", "max") if gate.get(side) is not None)


def verdict(row: Row) -> str:
    """What came of a row: the gate's answer, or why it has no number."""
    if row["status"] != "ok":
        message = row["error"]["message"].splitlines()[0]
        kind = "" if " " in message else f"{row['error']['type']}: "  # one word explains nothing
        return f"{row['status']}: {kind}{message}"
    return row["gate"]["answer"] if row["gate"] else ""


def cells(row: Row) -> tuple[str, ...]:
    """One row's cells, in the order of `COLUMNS`."""
    n = NOTHING if row["n"] is None else f"{row['n']:,}"
    interval = NOTHING
    if row["lo"] is not None and row["hi"] is not None:
        interval = f"{number(row['lo'])} – {number(row['hi'])}"
    return (
        row["name"],
        row["task"] or NOTHING,
        row["metric"] or NOTHING,
        number(row["value"]),
        interval,
        n,
        bound(row["gate"]),
        verdict(row),
    )


def table_lines(rows: Sequence[Row]) -> Iterator[str]:
    """The table, a line each: a heading, then one line a row; the last column is as long as it needs to be."""
    return aligned([COLUMNS, *map(cells, rows)], RIGHT)


def aligned(table: Sequence[Sequence[str]], right: Container[str]) -> Iterator[str]:
    """The lines of a table whose first is its heading; the columns named in `right` are flush right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        padded = [
            cell.rjust(width) if heading in right else cell.ljust(width)
            for cell, width, heading in zip(line, widths, table[0], strict=True)
        ]
        yield "".join(c if c.isprintable() else "?" for c in "  ".join(padded)).rstrip()
