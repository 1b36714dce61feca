"""Many tests at once: p-values adjusted so that the chance of *any* false alarm stays at α.

Example: p = .01, .04, .03 of three rows are .03, .06, .06 after Holm's adjustment: at α = .05 only the first counts.
Twenty unchanged rows judged at .05 each are red in more than half of the runs; adjusted, in at most one run of twenty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tinyllm.stats.observations import observations


def holm(p: ArrayLike) -> list[float]:
    """Holm's step-down adjusted p-values (Holm 1979, *Scand. J. Statist.* 6:65–70), in the order of ``p``.

    The k-th smallest of m is multiplied by m − k + 1, never falls below the adjusted values before it, and is cut off
    at 1. Rejecting where the adjusted value is at most α keeps the chance of any false rejection at α, however the
    tests depend on each other. No p-value at all gives no adjusted one.

    Parameters
    ----------
    p
        p-values, ``[m]``, m ≥ 0.

    Raises
    ------
    ValueError
        For a p-value outside [0, 1] or NaN.
    """
    values = np.asarray(p, np.float64)
    if values.ndim == 1 and not values.size:
        return []
    values = observations(values, "p")
    outside = (values < 0) | (values > 1)
    if outside.any():
        index = int(outside.argmax())
        raise ValueError(f"a p-value must lie in [0, 1], got {float(values[index])!r} at index {index}")
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return [float(one) for one in adjusted]
