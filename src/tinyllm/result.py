"""`Result`, the waist of the hourglass: torch above it, plain numbers below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Result:
    """One metric of one model on one set of items, with its 95% interval.

    Attributes
    ----------
    value
        The point estimate, in the metric's unit.
    lo, hi
        The ends of the interval; −inf and +inf where there is none (one observation).
    n
        The number of items (or tokens) scored.
    per_item
        float64 ``[n]``: each item's own score, in item order. For perplexity and bits per byte: NLLs in nats.
    ids
        The items' names, in the same order, or None when they have none. Results compare only on the same items.
    """

    value: float
    lo: float
    hi: float
    n: int
    per_item: NDArray[np.float64]
    ids: Sequence[str] | None = None
