"""Word pairs with a human score (``formats/wordpairs.md``): TSV with the columns w1, w2, score."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from tinyllm.errors import FormatError
from tinyllm.formats.jsonl import content_id
from tinyllm.formats.tsv import read_tsv

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")  # as JSON writes one, leading zeros allowed


@dataclass(frozen=True)
class WordPair:
    """One row: two words, how alike people find them, its `content_id` and line number (from 2)."""

    w1: str
    w2: str
    score: float
    id: str
    line: int


def read_wordpairs(path: str | Path) -> list[WordPair]:
    """All pairs in file order; a pair may stand there twice, as in WordSim-353.

    Parameters
    ----------
    path
        The file, plain or gzip.

    Raises
    ------
    FormatError
        On the first bad row by its line number (a score must be a finite decimal number), or a file without rows.
    """
    pairs = []
    for index, (line, row) in enumerate(read_tsv(path, ("w1", "w2", "score"))):
        written = row["score"]
        if not _NUMBER.fullmatch(written) or not math.isfinite(float(written)):
            raise FormatError(path, f"must be a finite decimal number, got {written!r}", where=f"line {line}: score")
        pairs.append(WordPair(row["w1"], row["w2"], float(written), content_id(index, row), line))
    if not pairs:
        raise FormatError(path, "must hold at least one row below its header, got none")
    return pairs
