"""The n-gram recipe: interpolated Kneser-Ney over bytes, one discount an order (Chen and Goodman 1999, section 3.4).

Glossary: n the order; a gram w_1 … w_k; c its count; D_k the discount of order k; h = w_1 … w_{k−1} the context;
a(g) the adjusted count: the count c(g) at the top order, below it N1+(• g), the number of distinct bytes seen before g.

    p(w | h) = max(a(h w) − D_k, 0) / Σ_v a(h v) + γ(h) p(w | h'),   γ(h) = what the first term leaves of 1,

down to order 1, whose "lower order" is the uniform distribution over 256 bytes. A context with Σ a = 0 has γ = 1.

Differs from `lmplz` (kenlm): one discount instead of three (no "modified" Kneser-Ney), and a text has no start symbol:
the bytes before the text are nothing, so that they count as no distinct byte. Differs from nltk's
KneserNeyInterpolated: its γ counts the distinct continuations by their raw count, so that a gram that only ever opens
the text is in γ although it is not in the sum; there its rows sum to more than 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.models.grams import MAX_ORDER, VOCAB_SIZE, Grams
from tinyllm.models.ngram import NGramLM

FAMILY = "ngram"
TEXTS = (("stories", "train"), ("pydoc", "train"))
SAVE: dict[str, Any] = {}

# Order 6 is the highest that kenlm as packaged reads; the two thresholds keep the zoo's file below 3 MB, at a cost of
# about 0.01 bits a byte on the built-in texts.
RECIPE: dict[str, Any] = {"order": 6, "min_counts": [1, 1, 1, 1, 2, 3]}


@dataclass(frozen=True)
class GramCounts:
    """The distinct grams of one order k.

    Attributes
    ----------
    key
        uint64 [G], sorted: the k bytes of the gram, its last byte most significant.
    count
        int64 [G], occurrences in the text.
    adjusted
        int64 [G], the module docstring's a; 0 for a gram that only opens the text.
    """

    key: NDArray[np.uint64]
    count: NDArray[np.int64]
    adjusted: NDArray[np.int64]


def train(
    text: bytes | Sequence[bytes],
    *,
    seed: int = 0,
    order: int = 6,
    discounts: float | Sequence[float] | None = None,
    min_counts: Sequence[int] | None = None,
) -> NGramLM:
    """Count a text and smooth.

    Parameters
    ----------
    text
        At least `order` bytes; several texts are joined.
    seed
        Not used: nothing is drawn. It is here because every recipe has one.
    order
        n, 1 to 8.
    discounts
        D_k of order 1 … n, or one number for all, 0 ≤ D_1 ≤ 1 and 0 < D_k ≤ 1 above. None estimates
        n1 / (n1 + 2 n2) for each order, where n1 and n2 are the numbers of grams with a = 1 and a = 2 (Ney, Essen and
        Kneser 1994), or 0.5 where that is no number above 0. D_1 = 0 gives bytes the text does not hold probability 0.
    min_counts
        A gram of order k is kept if it occurs at least so many times; one number an order, 1 first, never falling.
        The mass of the others goes to γ, so that every distribution still sums to 1. None keeps all.

    Returns
    -------
    NGramLM

    Raises
    ------
    ValueError
        If an argument is outside its range, or the text is shorter than `order`.
    """
    del seed
    text = text if isinstance(text, bytes) else b"".join(text)
    if not 1 <= order <= MAX_ORDER:
        raise ValueError(f"order must be 1 to {MAX_ORDER}, got {order!r}")
    if len(text) < order:
        raise ValueError(f"text must hold at least order = {order} bytes, got {len(text)}")
    counts = count_grams(text, order)
    if discounts is None:
        per_order = [estimate_discount(of_order.adjusted) for of_order in counts]
    else:
        per_order = _per_order_discounts(discounts, order)
    return smooth(_all_bytes(counts), per_order, _per_order_thresholds(min_counts, order))


def count_grams(text: bytes, order: int) -> list[GramCounts]:
    """Counts and adjusted counts of every gram of a text, order 1 first.

    Parameters
    ----------
    text
        At least `order` bytes.
    order
        The top order, whose adjusted counts are the counts.
    """
    ids = np.frombuffer(text, dtype=np.uint8)
    windows = np.zeros(len(ids) - order + 1, dtype=np.uint64)
    for age in range(order):  # age 0 is the newest byte of a window
        windows |= ids[order - 1 - age : len(ids) - age].astype(np.uint64) << np.uint64(8 * (order - 1 - age))
    key, count = np.unique(windows, return_counts=True)
    counts = [GramCounts(key, count, count)]
    for k in range(order - 1, 0, -1):
        longer = counts[-1]
        suffix = longer.key >> np.uint64(8)
        start = np.flatnonzero(np.concatenate(([True], suffix[1:] != suffix[:-1])))
        key, count = suffix[start], np.add.reduceat(longer.count, start)
        adjusted = np.diff(np.append(start, len(suffix)))
        # Every occurrence of a gram ends some longer gram, but for the one that opens the text.
        opening = np.uint64(int.from_bytes(text[:k], "little"))
        at = int(np.searchsorted(key, opening))
        if at < len(key) and key[at] == opening:
            count[at] += 1
        else:
            key, count, adjusted = np.insert(key, at, opening), np.insert(count, at, 1), np.insert(adjusted, at, 0)
        counts.append(GramCounts(key, count, adjusted))
    return counts[::-1]


def estimate_discount(adjusted: NDArray[np.int64]) -> float:
    """n1 / (n1 + 2 n2), or 0.5 when no gram has an adjusted count of 1."""
    n1, n2 = int((adjusted == 1).sum()), int((adjusted == 2).sum())
    return n1 / (n1 + 2 * n2) if n1 else 0.5


def smooth(counts: Sequence[GramCounts], discounts: Sequence[float], min_counts: Sequence[int]) -> NGramLM:
    """The model of given counts; see the module docstring for the formula.

    Parameters
    ----------
    counts
        One an order, order 1 with all 256 bytes.
    discounts, min_counts
        One an order, as in `train`.
    """
    key, p_lower = np.zeros(1, dtype=np.uint64), np.array([1 / VOCAB_SIZE])  # order 0: the empty gram, uniform
    columns = []
    log_backoffs = []
    for k, (of_order, discount, least) in enumerate(zip(counts, discounts, min_counts, strict=True), start=1):
        context_key = of_order.key & np.uint64(256 ** (k - 1) - 1)
        context = np.searchsorted(key, context_key)
        here = np.isin(context_key, key)  # else the context itself was pruned
        context, adjusted = context[here], of_order.adjusted[here].astype(np.float64)
        kept = (of_order.count[here] >= least) | (k == 1)
        total = np.bincount(context, weights=adjusted, minlength=len(key))
        left = np.bincount(
            context, weights=np.where(kept, np.minimum(adjusted, discount), adjusted), minlength=len(key)
        )
        gamma = np.divide(left, total, out=np.ones(len(key)), where=total > 0)
        context, adjusted, kept_key = context[kept], adjusted[kept], of_order.key[here][kept]
        suffix = np.searchsorted(key, kept_key >> np.uint64(8))
        p_lower = np.maximum(adjusted - discount, 0) / np.maximum(total[context], 1) + gamma[context] * p_lower[suffix]
        key = kept_key
        columns.append((suffix.astype(np.int32), (key & np.uint64(255)).astype(np.uint8), _log32(p_lower)))
        log_backoffs.append(_log32(gamma))
    log_backoffs.append(np.zeros(len(key), dtype=np.float32))
    return NGramLM([Grams(*column, log_backoff) for column, log_backoff in zip(columns, log_backoffs[1:], strict=True)])


def _log32(p: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(divide="ignore"):  # log 0 = −inf is meant: D_1 = 0 gives it to bytes the text does not hold
        return np.minimum(np.log(p), 0).astype(np.float32)


def _all_bytes(counts: Sequence[GramCounts]) -> list[GramCounts]:
    """Order 1 with the bytes that the text does not hold, at count 0."""
    base = GramCounts(np.arange(VOCAB_SIZE, dtype=np.uint64), *np.zeros((2, VOCAB_SIZE), dtype=np.int64))
    base.count[counts[0].key], base.adjusted[counts[0].key] = counts[0].count, counts[0].adjusted
    return [base, *counts[1:]]


def _per_order_discounts(discounts: float | Sequence[float], order: int) -> list[float]:
    values = [float(discounts)] * order if isinstance(discounts, (int, float)) else [float(d) for d in discounts]
    if len(values) != order:
        raise ValueError(f"discounts must be one number or one for each of {order} orders, got {len(values)}")
    if not (0 <= values[0] <= 1 and all(0 < d <= 1 for d in values[1:])):
        raise ValueError(f"discounts must be in 0 to 1, and above 0 from order 2 on, got {values}")
    return values


def _per_order_thresholds(min_counts: Sequence[int] | None, order: int) -> list[int]:
    values = [1] * order if min_counts is None else list(min_counts)
    if len(values) != order or values[0] < 1 or any(b < a for a, b in pairwise(values)):
        raise ValueError(
            f"min_counts must be {order} numbers, one an order, at least 1 and never falling, got {values}"
        )
    return values
