"""The grams of a byte n-gram model as sorted columns, one table an order.

A gram of order k is one byte on the left of a gram of order k − 1, its suffix: a tree whose root is the empty gram, in
9 to 13 bytes a gram. Example, the grams "a", "b" and "ab" (order 2 has one row: the byte "a" left of row 98, "b")::

    order 1:  byte 0 … 255
    order 2:  byte [97], suffix [98]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinyllm.models.gram_hash import MAX_GRAMS

VOCAB_SIZE = 256
MAX_ORDER = 8


@dataclass(frozen=True)
class Grams:
    """The entries of one order k, sorted by (suffix, byte).

    Attributes
    ----------
    suffix
        int32 [G], row of order k − 1 that is the gram without its oldest byte. Zeros at order 1.
    byte
        uint8 [G], the oldest byte. At order 1 it is 0 … 255.
    log_prob
        float32 [G], log p(last byte | the bytes before it) in nats.
    log_backoff
        float32 [G], log γ of the gram as a context. Zeros at the top order, where no gram is a context.
    """

    suffix: NDArray[np.int32]
    byte: NDArray[np.uint8]
    log_prob: NDArray[np.float32]
    log_backoff: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.byte)


def check_tables(tables: Sequence[Grams]) -> None:
    """Hold tables against what `Grams` says, order by order.

    Parameters
    ----------
    tables
        One an order, order 1 first.

    Raises
    ------
    ValueError
        Naming the order and the row of the first fault.
    """
    if not 1 <= len(tables) <= MAX_ORDER:
        raise ValueError(f"an n-gram model must have 1 to {MAX_ORDER} orders, got {len(tables)}")
    if sum(map(len, tables)) > MAX_GRAMS:
        raise ValueError(f"an n-gram model must have at most {MAX_GRAMS} grams, got {sum(map(len, tables))}; prune it")
    if not np.array_equal(tables[0].byte, np.arange(VOCAB_SIZE)) or tables[0].suffix.any():
        raise ValueError(f"order 1 must hold the bytes 0 to 255 once each, got {len(tables[0])} rows")
    for k, table in enumerate(tables, start=1):
        if not len(table.suffix) == len(table.byte) == len(table.log_prob) == len(table.log_backoff):
            raise ValueError(f"the columns of order {k} must be of one length")
        rows_below = len(tables[k - 2]) if k > 1 else 1
        if len(table) and not (table.suffix.min() >= 0 and table.suffix.max() < rows_below):
            raise ValueError(f"suffix of order {k} must be a row of order {k - 1}, 0 to {rows_below - 1}")
        code = table.suffix.astype(np.int64) * 256 + table.byte
        if (np.diff(code) <= 0).any():
            row = int(np.flatnonzero(np.diff(code) <= 0)[0]) + 1
            raise ValueError(
                f"the grams of order {k} must be sorted and distinct, row {row} is not above the one before"
            )
        if np.isnan(table.log_prob).any() or (table.log_prob > 0).any() or not np.isfinite(table.log_backoff).all():
            raise ValueError(f"order {k} must hold log-probabilities of at most 0 and finite back-off weights")
