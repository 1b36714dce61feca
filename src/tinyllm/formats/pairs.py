"""Sentence pairs (``formats/pairs.md``): JSON Lines of a source and its one reference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tinyllm.errors import FormatError
from tinyllm.formats.jsonl import content_id, read_jsonl, text_field


@dataclass(frozen=True)
class SentencePair:
    """One row: a source, its reference (which may be empty), its `content_id` and line number (from 1)."""

    src: str
    tgt: str
    id: str
    line: int


def read_pairs(path: str | Path) -> list[SentencePair]:
    """All pairs in file order; other fields of a row are left alone.

    Parameters
    ----------
    path
        JSON Lines, plain or gzip.

    Raises
    ------
    FormatError
        On the first bad row by its line number and field, or a file without rows.
    """
    pairs = []
    for index, (line, row) in enumerate(read_jsonl(path)):
        src = text_field(row, "src", path, line)
        tgt = text_field(row, "tgt", path, line, empty=True)
        pairs.append(SentencePair(src, tgt, content_id(index, {"src": src, "tgt": tgt}), line))
    if not pairs:
        raise FormatError(path, "must hold at least one row, got none")
    return pairs
