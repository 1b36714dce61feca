"""JSON Lines: one object a line. Every reader of rows in this package goes through here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tinyllm.errors import FormatError
from tinyllm.formats.lines import read_lines
from tinyllm.formats.strict_json import parse


def read_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    r"""Yield the numbered objects of a JSON Lines file (UTF-8, plain or gzip; lines end at ``\n`` only).

    Parameters
    ----------
    path
        The file.

    Yields
    ------
    tuple[int, dict]
        The line number, counted from 1, and the object. An empty file yields nothing.

    Raises
    ------
    FormatError
        On the first bad line, by its number: no line is ever dropped.
    """
    for number, line in read_lines(path):
        row = parse(line, path, where=f"line {number}")
        if not isinstance(row, dict):
            raise FormatError(path, f"must be a JSON object, got {line[:60]!r}", where=f"line {number}")
        yield number, row


def text_field(row: Mapping[str, Any], key: str, path: str | Path, line: int, *, empty: bool = False) -> str:
    """``row[key]``, checked to be a string.

    Parameters
    ----------
    row
        The object of one line.
    key
        The field.
    path, line
        Where the row stands, for the message.
    empty
        Whether an empty string is allowed.

    Raises
    ------
    FormatError
        When the field is missing, not a string, or empty where it must not be.
    """
    if key not in row:
        raise FormatError(path, f"missing field {key!r}, got {sorted(row)}", where=f"line {line}")
    value = row[key]
    if not isinstance(value, str) or not (value or empty):
        must = "a string" if empty else "a non-empty string"
        raise FormatError(path, f"must be {must}, got {value!r}", where=f"line {line}: {key}")
    return value


def content_id(index: int, fields: Mapping[str, Any]) -> str:
    """The name of an item whose row gives none: its index and the start of its content's hash.

    Parameters
    ----------
    index
        The row's place in the unfiltered file, from 0.
    fields
        What makes the item what it is. The hash is SHA-256 over their canonical JSON: keys sorted, no spaces, UTF-8.

    Returns
    -------
    str
        ``"{index}:{12 hex digits}"``. The hash makes two results incomparable when an item's text was changed.
    """
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{index}:{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"
