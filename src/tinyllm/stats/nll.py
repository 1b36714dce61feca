"""Totals of negative log-likelihoods: mean, perplexity and bits per byte of a text scored piece by piece."""

from __future__ import annotations

import math
import operator

import numpy as np
from numpy.typing import ArrayLike


class NLLAccumulator:
    """The exact sum of NLLs in nats, with their count and the bytes they cover.

    The sum is kept without rounding error, as a short list of floats that add up to it (Shewchuk 1997), so any split of
    a text over `add` and `merge` gives the total of one serial pass to the last bit.
    """

    def __init__(self) -> None:
        self._parts: list[float] = []
        self._least, self._most, self._at = math.inf, -math.inf, -1
        self.n = 0
        self.n_bytes = 0

    @property
    def total(self) -> float:
        """The sum of all NLLs, in nats, correctly rounded; 0.0 when there are none."""
        return self._parts[0] if self._parts else 0.0

    def add(self, nlls: ArrayLike, n_bytes: int = 0) -> None:
        """Add the NLLs (nats, ``[count]``, possibly none) of tokens that cover ``n_bytes`` bytes.

        Raises
        ------
        ValueError
            A NaN or infinite NLL, named by its index among all tokens added so far; a total that overflows; negative
            ``n_bytes``. The accumulator is then as it was.
        """
        values, n_bytes = np.asarray(nlls, np.float64), operator.index(n_bytes)
        if values.ndim != 1:
            raise ValueError(f"nlls must be one-dimensional, got shape {values.shape}")
        if n_bytes < 0:
            raise ValueError(f"n_bytes must not be negative, got {n_bytes!r}")
        finite = np.isfinite(values)
        if not finite.all():
            index = int(finite.argmin())
            raise ValueError(
                f"an NLL must be finite, got {float(values[index])!r} at token index {self.n + index}; "
                f"{'the model gave the token that came no probability' if values[index] > 0 else 'it is no NLL'}"
            )
        if values.size:
            self._parts = _expansion(self._parts + values.tolist())
            at = int(values.argmax())
            self._note(float(values.min()), float(values[at]), self.n + at)
        self.n += values.size
        self.n_bytes += n_bytes

    def merge(self, other: NLLAccumulator) -> None:
        """Add what ``other`` holds, as if its tokens followed these."""
        self._parts = _expansion(self._parts + other._parts)
        if other.n:
            self._note(other._least, other._most, self.n + other._at)
        self.n += other.n
        self.n_bytes += other.n_bytes

    def mean(self) -> float:
        """The mean NLL, nats a token; when all n ≥ 2 NLLs are equal, that NLL exactly.

        Raises
        ------
        ValueError
            When nothing was added.
        """
        if not self.n:
            raise ValueError("a mean NLL needs at least one scored token, got none")
        return self._most if self._least == self._most else self.total / self.n

    def ppl(self) -> float:
        """Perplexity, exp(mean).

        Raises
        ------
        ValueError
            When nothing was added, or the perplexity overflows float64 (the message names the dearest token).
        """
        mean = self.mean()
        try:
            return math.exp(mean)
        except OverflowError:
            raise ValueError(
                f"a perplexity must fit in float64, got a mean NLL of {mean!r} nats over {self.n} tokens; "
                f"the largest is {self._most!r} at token index {self._at}"
            ) from None

    def bpb(self) -> float:
        """Bits per byte, total / (n_bytes · ln 2): 8 exactly for a uniform model over bytes.

        Raises
        ------
        ValueError
            When nothing was added, or no bytes were counted.
        """
        if not self.n or not self.n_bytes:
            raise ValueError(f"bits per byte need tokens and bytes, got {self.n} tokens and {self.n_bytes} bytes")
        return self.total / (self.n_bytes * math.log(2))

    def _note(self, least: float, most: float, at: int) -> None:
        if most > self._most:
            self._most, self._at = most, at
        self._least = min(self._least, least)


def _expansion(values: list[float]) -> list[float]:
    # The exact sum as floats of falling size: its correctly rounded value, then that of what is left, until nothing is.
    parts: list[float] = []
    rest = list(values)
    while True:
        try:
            part = math.fsum(rest)
        except OverflowError:
            raise ValueError(f"a total NLL must fit in float64, got NLLs up to {max(values)!r}") from None
        if part == 0.0:
            return parts
        parts.append(part)
        rest.append(-part)
