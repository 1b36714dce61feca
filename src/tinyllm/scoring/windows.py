"""The strided windows of perplexity: which tokens each window covers, and which of them it scores.

Section 2.1 of the course text. Window k covers ``[k·stride, min(k·stride + ctx_len, n))`` and scores only the tokens it
adds; the last window is the first that reaches n. Example: n = 6, ctx_len = 4, stride = 2 gives ``[0, 4)`` scoring
1, 2, 3 and ``[2, 6)`` scoring 4, 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Window:
    """One call of the model: tokens ``[start, end)``, of which ``[first, end)`` are scored."""

    start: int
    end: int
    first: int


def check_stride(ctx_len: int, stride: int) -> None:
    """Refuse a stride that leaves a scored token without context from its own window.

    Raises
    ------
    ValueError
        Unless 1 ≤ stride < ctx_len; the message has both numbers.
    """
    for name, value in (("ctx_len", ctx_len), ("stride", stride)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            msg = f"{name} must be a whole number of tokens, got {value!r}"
            raise ValueError(msg)
    if not 1 <= stride < ctx_len:
        msg = (
            f"stride must satisfy 1 <= stride < ctx_len, got stride={stride} with ctx_len={ctx_len}; "
            f"at stride = ctx_len a window's first token would be predicted from nothing"
        )
        raise ValueError(msg)


def windows(n: int, ctx_len: int, stride: int) -> Iterator[Window]:
    """Yield the windows that score each of the tokens 1 … n−1 exactly once, in order.

    Parameters
    ----------
    n
        The number of tokens. Nothing is yielded for n < 2: token 0 has no context.
    ctx_len, stride
        As `check_stride` accepts them.
    """
    check_stride(ctx_len, stride)
    scored_up_to = 1
    start = 0
    while scored_up_to < n:
        end = min(start + ctx_len, n)
        yield Window(start, end, scored_up_to)
        scored_up_to = end
        start += stride
