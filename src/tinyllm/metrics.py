"""The table of metrics: for each its unit, its direction, and its value and interval from per-item scores.

One definition of each number. Adding a metric is adding a row to `METRICS`. Example: ten NLLs of ln 256 nats, each of
one byte, are a bpb of 8 with the interval [8, 8].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tinyllm.stats.intervals import mean_ci, wilson_interval
from tinyllm.stats.nll import NLLAccumulator

Estimate = tuple[float, float, float]
"""value, lo, hi."""


@dataclass(frozen=True)
class Metric:
    """One row of the table.

    Attributes
    ----------
    name
        As reports and manifests write it.
    unit
        The unit of value, lo and hi.
    better
        Which direction is an improvement of the metric.
    better_item
        Which direction is an improvement of a per-item score (NLLs: lower, whatever is made of them).
    interval
        The method of the 95% interval: ``student-t`` or ``wilson``.
    estimate
        ``estimate(per_item, n_bytes) -> (value, lo, hi)``; n_bytes is None where scores are not of text.
    """

    name: str
    unit: str
    better: Literal["lower", "higher"]
    better_item: Literal["lower", "higher"]
    interval: str
    estimate: Callable[[NDArray[np.float64], int | None], Estimate]


def nll(per_item: NDArray[np.float64], n_bytes: int | None = None) -> Estimate:
    """Mean NLL in nats a token, with Student's t interval over the tokens.

    Raises
    ------
    ValueError
        For no token at all, and for an infinite NLL, naming the token.
    """
    del n_bytes  # a mean over tokens does not depend on their bytes
    if np.isinf(per_item).any():
        token = int(np.argmax(np.isinf(per_item))) + 1  # token 0 is not scored
        msg = f"every NLL must be finite, got {per_item[token - 1]!s} for token {token}: it was given probability 0"
        raise ValueError(msg)
    totals = NLLAccumulator()
    totals.add(per_item)
    value = totals.mean()
    lo, hi = mean_ci(per_item)
    return value, lo, hi


def ppl(per_item: NDArray[np.float64], n_bytes: int | None = None) -> Estimate:
    """Perplexity, ``exp`` of the mean NLL; the interval's ends are exp of its ends, and so not symmetric.

    Raises
    ------
    ValueError
        As `nll`, and when the perplexity is too large for a float.
    """
    value, lo, hi = nll(per_item, n_bytes)
    if value > math.log(np.finfo(np.float64).max):
        msg = f"perplexity overflows: the mean NLL is {value!r} nats a token over {len(per_item)} tokens"
        raise ValueError(msg)
    with np.errstate(over="ignore"):  # an end may be infinite, as for a single token
        return math.exp(value), float(np.exp(lo)), float(np.exp(hi))


def bpb(per_item: NDArray[np.float64], n_bytes: int | None) -> Estimate:
    """Bits per byte, ``Σ nll / (n_bytes · ln 2)``: the only one of the three that compares different tokenizers.

    Raises
    ------
    ValueError
        As `nll`, and when the scored tokens' bytes are not known.
    """
    if not isinstance(n_bytes, int) or isinstance(n_bytes, bool) or n_bytes <= 0:
        msg = f"bits per byte need the number of bytes of the scored tokens, got n_bytes={n_bytes!r}"
        raise ValueError(msg)
    # mean · (n / bytes) / ln 2, the ends by the same arithmetic: equal NLLs give a zero-width interval, and 8 is 8
    scale = len(per_item) / n_bytes
    value, lo, hi = (end * scale / math.log(2) for end in nll(per_item))
    return value, lo, hi


def accuracy(per_item: NDArray[np.float64], n_bytes: int | None = None) -> Estimate:
    """The share of items that score 1, with the Wilson score interval.

    Raises
    ------
    ValueError
        For no item, and for a score that is neither 0 nor 1.
    """
    del n_bytes
    if len(per_item) == 0:
        msg = "accuracy over no items is undefined; the task has none"
        raise ValueError(msg)
    wrong = (per_item != 0) & (per_item != 1)
    if wrong.any():
        where = int(np.argmax(wrong))
        msg = f"accuracy needs scores of 0 or 1, got {float(per_item[where])!r} for item {where}"
        raise ValueError(msg)
    successes = int(per_item.sum())
    lo, hi = wilson_interval(successes, len(per_item))
    return successes / len(per_item), lo, hi


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("nll", "nats/token", "lower", "lower", "student-t", nll),
            Metric("ppl", "perplexity", "lower", "lower", "student-t", ppl),
            Metric("bpb", "bits/byte", "lower", "lower", "student-t", bpb),
            Metric("acc", "proportion", "higher", "higher", "wilson", accuracy),
            Metric("acc_norm", "proportion", "higher", "higher", "wilson", accuracy),
        )
    }
)

TEXT_METRICS = ("bpb", "nll", "ppl")
CHOICE_METRICS = ("acc", "acc_norm")
