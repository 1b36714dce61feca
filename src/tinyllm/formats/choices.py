"""Rows of a log-likelihood task: a context, its choices, the index of the right one (``formats/choices.md``)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyllm.errors import FormatError
from tinyllm.formats.jsonl import content_id, read_jsonl, text_field

FIELDS = ("context", "choices", "answer", "id", "cluster")


@dataclass(frozen=True)
class ChoiceItem:
    """One checked row.

    Attributes
    ----------
    id
        The row's own ``id``, or `content_id` of its index and text. Unique in its file.
    context
        What the model has read; may be empty.
    choices
        At least one; none is empty.
    answer
        Index of the right choice.
    cluster
        The group of rows this one belongs to (a passage, a template), or None.
    line
        The row's line number, from 1.
    """

    id: str
    context: str
    choices: tuple[str, ...]
    answer: int
    cluster: str | None
    line: int


def _label(row: Mapping[str, Any], key: str, path: str | Path, line: int) -> str | None:
    """An optional ``id`` or ``cluster``: a non-empty string, or an integer read as its digits (so 1 and "1" clash)."""
    if key not in row:
        return None
    value = row[key]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise FormatError(path, f"must be a non-empty string or an integer, got {value!r}", where=f"line {line}: {key}")
    return value


def _refuse_misspelt(row: Mapping[str, Any], path: str | Path, line: int) -> None:
    """Extra fields are welcome, but for a near miss of an optional one: that would be dropped in silence."""
    for key in row.keys() - set(FIELDS):
        for known in difflib.get_close_matches(key.lower(), ("id", "cluster"), n=1, cutoff=0.85):
            raise FormatError(path, f"unknown field {key!r}; did you mean {known!r}?", where=f"line {line}")


def _item(row: Mapping[str, Any], index: int, path: str | Path, line: int) -> ChoiceItem:
    context = text_field(row, "context", path, line, empty=True)
    for key in ("choices", "answer"):
        if key not in row:
            raise FormatError(path, f"missing field {key!r}, got {sorted(row)}", where=f"line {line}")
    choices, answer = row["choices"], row["answer"]
    if not isinstance(choices, list) or not choices:
        raise FormatError(
            path, f"must be a list of at least one string, got {choices!r}", where=f"line {line}: choices"
        )
    for place, choice in enumerate(choices):
        if not isinstance(choice, str) or not choice:
            where = f"line {line}: choices[{place}]"
            raise FormatError(path, f"must be a non-empty string, got {choice!r}", where=where)
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < len(choices):
        fault = f"must be an integer from 0 to {len(choices) - 1} (the index of a choice), got {answer!r}"
        raise FormatError(path, fault, where=f"line {line}: answer")
    _refuse_misspelt(row, path, line)
    name = _label(row, "id", path, line)
    if name is None:
        name = content_id(index, {"context": context, "choices": choices, "answer": answer})
    return ChoiceItem(name, context, tuple(choices), answer, _label(row, "cluster", path, line), line)


def read_choices(path: str | Path) -> list[ChoiceItem]:
    """All rows of a log-likelihood task, in file order.

    Parameters
    ----------
    path
        JSON Lines, plain or gzip.

    Raises
    ------
    FormatError
        On the first bad row, with its line number and field; on an id given twice (1 and "1" are the same id); on a
        file without rows.
    """
    return parse_choices(read_jsonl(path), path)


def parse_choices(rows: Iterable[tuple[int, Mapping[str, Any]]], path: str | Path) -> list[ChoiceItem]:
    """`read_choices` of rows that are parsed: (line number, object) pairs; `path` is what messages call their source.

    Raises
    ------
    FormatError
        As `read_choices`.
    """
    items: list[ChoiceItem] = []
    first: dict[str, int] = {}
    for index, (line, row) in enumerate(rows):
        item = _item(row, index, path, line)
        if item.id in first:
            fault = f"must be unique, got {item.id!r} again (first on line {first[item.id]})"
            raise FormatError(path, fault, where=f"line {line}: id")
        first[item.id] = line
        items.append(item)
    if not items:
        raise FormatError(path, "must hold at least one row, got none")
    return items
