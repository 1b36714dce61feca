"""What every statistic asks of its input, checked in one place before any arithmetic."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray


def observations(x: ArrayLike, name: str = "x") -> NDArray[np.float64]:
    """``x`` as float64 ``[n]``, n ≥ 1, every value finite.

    Raises
    ------
    ValueError
        When ``x`` is not one-dimensional, is empty, or holds NaN or an infinity (the first is named).
    """
    values = np.asarray(x, np.float64)
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {values.shape}")
    if not values.size:
        raise ValueError(f"{name} must hold at least one observation, got none; a statistic of nothing has no value")
    finite = np.isfinite(values)
    if not finite.all():
        index = int(finite.argmin())
        raise ValueError(f"{name} must be finite, got {float(values[index])!r} at index {index} of {values.size}")
    return values


def at_least_one(name: str, value: int) -> int:
    """``value`` as an int ≥ 1.

    Raises
    ------
    ValueError
        When it is smaller.
    """
    value = operator.index(value)
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}")
    return value
