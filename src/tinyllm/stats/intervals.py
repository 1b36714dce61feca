"""Intervals: each function takes observations and returns ``(lo, hi)`` as two Python floats.

One observation says nothing about its spread: its t and bootstrap intervals are (−inf, inf). If all n ≥ 2 observations
are equal, both ends are that observation, without arithmetic.
"""

from __future__ import annotations

import math
import statistics
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.rng import PCG32
from tinyllm.stats.observations import at_least_one, observations

_UNBOUNDED = (-math.inf, math.inf)
_GATHER = 32768  # values gathered at a time: indices and values are half a MiB
_LANES = 512  # resamples that are summed side by side, at most


def mean_ci(x: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """Student t interval of the mean: mean ± t(n − 1) · s / √n, with the sample's s (n − 1 in the denominator).

    The mean and the sum of squares are correctly rounded sums (`math.fsum`), so the order of the items does not matter.

    Raises
    ------
    ValueError
        Empty or non-finite ``x``; a spread that overflows float64; a level outside (0, 1).
    """
    values, (_, upper) = observations(x), _tails(level)
    if (known := _degenerate(values)) is not None:
        return known
    from scipy.special import stdtrit  # not at the top: scipy would slow every import of tinyllm

    n = values.size
    try:
        mean = math.fsum(values) / n
        with np.errstate(over="raise"):
            half = float(stdtrit(n - 1, upper)) * math.sqrt(math.fsum((values - mean) ** 2) / (n - 1) / n)
    except (OverflowError, FloatingPointError) as error:
        ends = f"{float(values.min())!r} … {float(values.max())!r}"
        raise ValueError(f"the spread of x must fit in float64, got values {ends}; rescale them") from error
    return mean - half, mean + half


def bootstrap_ci(x: ArrayLike, rng: PCG32, n_boot: int = 1000, *, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean (Efron 1979): quantiles of ``n_boot`` resample means.

    Exactly ``n · n_boot`` draws ``rng.bounded(n)``, resample by resample, also where the interval is known without them
    (n = 1, all equal), so that what ``rng`` gives next never depends on the scores. A mean is the left-to-right float64
    sum over n; a quantile is numpy's linear interpolation. ``formats/pcg32.md`` works one out by hand.

    Differs from lm-evaluation-harness's bootstrap, which reports the standard deviation of the resample statistics.

    Raises
    ------
    ValueError
        Empty or non-finite ``x``; a sum that overflows; ``n_boot`` < 1; a level outside (0, 1).
    """
    values, (lower, upper) = observations(x), _tails(level)
    means = _resample_means(values, rng, at_least_one("n_boot", n_boot))
    if (known := _degenerate(values)) is not None:
        return known
    if not np.isfinite(means).all():
        largest = float(np.abs(values).max())
        raise ValueError(f"the sum of a resample must fit in float64, got values up to {largest!r}; rescale them")
    lo, hi = np.quantile(means, (lower, upper))
    return float(lo), float(hi)


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion (Wilson 1927); valid for every n ≥ 1, also at 0 and n successes.

    Raises
    ------
    ValueError
        When n < 1 or ``successes`` is no whole number from 0 to n.
    """
    n, (_, upper) = at_least_one("n", n), _tails(level)
    if not 0 <= successes <= n or successes != int(successes):
        raise ValueError(f"successes must be a whole number from 0 to n = {n}, got {successes}")
    z, k = normal_ppf(upper), int(successes)
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


def fisher_z_interval(rho: float, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Fisher's interval of a correlation from n pairs: ``tanh(atanh ρ ± z / √(n − 3))`` (Fisher 1915).

    With n ≤ 3 there is no interval, (−inf, inf); with ρ = ±1 (and n > 3) it has zero width.

    Raises
    ------
    ValueError
        When ``rho`` is NaN or outside [−1, 1], or n < 1.
    """
    n, (_, upper) = at_least_one("n", n), _tails(level)
    rho = float(rho)
    if not -1 <= rho <= 1:
        raise ValueError(f"a correlation must lie in -1 … 1, got {rho!r} (n = {n}); a constant input has none")
    if n <= 3:
        return _UNBOUNDED
    if abs(rho) == 1:
        return rho, rho
    centre, half = math.atanh(rho), normal_ppf(upper) / math.sqrt(n - 3)
    return math.tanh(centre - half), math.tanh(centre + half)


def normal_ppf(p: float) -> float:
    """The standard normal quantile (Wichura 1988, algorithm AS 241; about 16 digits); ∓inf at p = 0 and 1.

    Raises
    ------
    ValueError
        When ``p`` is NaN or outside [0, 1].
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a probability must lie in 0 … 1, got {p}")
    if p in (0, 1):
        return -math.inf if p == 0 else math.inf
    return statistics.NormalDist().inv_cdf(p)


def _tails(level: float) -> tuple[float, float]:
    # In decimal, because (1 - 0.95) / 2 in binary is not the double .025.
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    exact = Decimal(repr(float(level)))
    return float((1 - exact) / 2), float((1 + exact) / 2)


def _degenerate(values: NDArray[np.float64]) -> tuple[float, float] | None:
    if values.size == 1:
        return _UNBOUNDED
    first = float(values[0])
    return (first, first) if (values == first).all() else None


def _resample_means(values: NDArray[np.float64], rng: PCG32, n_boot: int) -> NDArray[np.float64]:
    # Draws are row-major (resample by resample); sums run over a transposed tile, so that the resamples of a chunk
    # advance side by side while each one still adds its items left to right.
    n = values.size
    lanes = max(2, min(n_boot, _LANES, max(16, 2**19 // n)))
    index = np.zeros((lanes, n), np.uint32)
    means = np.empty(n_boot)
    for start in range(0, n_boot, lanes):
        rows = min(lanes, n_boot - start)
        rng.fill_bounded(n, index[:rows].reshape(-1))
        means[start : start + rows] = _row_sums(values, index)[:rows]
    means /= n
    return means


def _row_sums(values: NDArray[np.float64], index: NDArray[np.uint32]) -> NDArray[np.float64]:
    # float64 [lanes]: 0.0 + values[index[r, 0]] + values[index[r, 1]] + …, each sum left to right. numpy adds row by
    # row along the slow axis of a C-ordered array; pairwise sums, its rule for the fast axis, would round otherwise.
    lanes, n = index.shape
    width = max(1, _GATHER // lanes)
    columns = np.empty((width, lanes), np.int64)
    terms = np.zeros((width + 1, lanes))  # row 0 carries the sum so far
    total = np.zeros(lanes)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n, width):
            size = min(width, n - start)
            np.copyto(columns[:size], index[:, start : start + size].T)
            terms[0] = total
            values.take(columns[:size], out=terms[1 : size + 1], mode="clip")
            np.add.reduce(terms[: size + 1], axis=0, out=total)
    return total
