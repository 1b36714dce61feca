"""Tab-separated tables with a header: UTF-8, one row a line, no quoting (a quotation mark is a character)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tinyllm.errors import FormatError, nearest
from tinyllm.formats.lines import read_lines


def read_tsv(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the numbered rows of a table, each cell by its column's name.

    Parameters
    ----------
    path
        The file, plain or gzip; its first line names the columns, in any order.
    columns
        The columns it must have, and no others.

    Yields
    ------
    tuple[int, dict[str, str]]
        The line number, counted from 1 (the header), and the row's non-empty cells.

    Raises
    ------
    FormatError
        On a header that is not `columns`, a row of another length, or an empty cell, by its line number.
    """
    lines = read_lines(path)
    header = next((line for _, line in lines), "").split("\t")
    for name in header:
        if name not in columns:
            fault = f"must name the columns {', '.join(columns)}, got {name!r}; {nearest(name, columns)}"
            raise FormatError(path, fault, where="line 1")
    if sorted(header) != sorted(columns):
        raise FormatError(path, f"must name the columns {', '.join(columns)} once each, got {header}", where="line 1")
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            fault = f"must have {len(header)} tab-separated cells, got {len(cells)}"
            raise FormatError(path, fault, where=f"line {number}")
        row = dict(zip(header, cells, strict=True))
        for name, cell in row.items():
            if not cell.strip():
                raise FormatError(path, f"must not be empty, got {cell!r}", where=f"line {number}: {name}")
        yield number, row
