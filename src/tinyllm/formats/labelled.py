"""Labelled sentences (``formats/labelled.md``): TSV with the columns split, sentence, label."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tinyllm.errors import FormatError
from tinyllm.formats.jsonl import content_id
from tinyllm.formats.tsv import read_tsv


@dataclass(frozen=True)
class Labelled:
    """One row: its part (``"val"``), sentence and label as written, its `content_id` and line number (from 2)."""

    split: str
    sentence: str
    label: str
    id: str
    line: int


def read_labelled(path: str | Path) -> list[Labelled]:
    """All rows, of every split, in file order.

    Parameters
    ----------
    path
        The file, plain or gzip.

    Raises
    ------
    FormatError
        On the first bad row by its line number, or a file without rows.
    """
    rows = [
        Labelled(row["split"], row["sentence"], row["label"], content_id(index, row), line)
        for index, (line, row) in enumerate(read_tsv(path, ("split", "sentence", "label")))
    ]
    if not rows:
        raise FormatError(path, "must hold at least one row below its header, got none")
    return rows
