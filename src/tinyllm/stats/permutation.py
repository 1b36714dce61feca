"""Is B better than A on the same items? The paired sign-flip permutation test (Fisher 1935)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.rng import PCG32
from tinyllm.stats.observations import at_least_one, observations

_Words = NDArray[np.uint32]  # [permutations, words]: bit i % 32 (from the lowest) of word i // 32 flips difference i
_Extreme = Callable[[NDArray[Any]], NDArray[Any]]  # what of a sum counts as extreme: its size, or itself
_TOLERANCE = 1e-12  # of Σ|d|: far above what summation rounds, far below any difference of scores
_CHUNK_WORDS = 2**20
_TILE = 64  # lookup tables used at a time: 64 · 256 float64 are 128 KiB, inside the L2 cache
_TILE_ROWS = 256


def paired_permutation_test(
    a: ArrayLike,
    b: ArrayLike,
    n_perm: int = 10000,
    rng: PCG32 | None = None,
    *,
    alternative: Literal["two-sided", "greater"] = "two-sided",
) -> float:
    """Two-sided p-value of "each difference a_i − b_i is as likely to have either sign".

    Zero differences carry no sign and are dropped; m are left. All 2^m sign patterns are enumerated when that is at
    most ``n_perm`` (p = hits / 2^m, nothing is drawn), else ``n_perm`` of them are drawn and
    p = (1 + hits) / (1 + n_perm), which is never zero. A hit is a pattern with |Σ ±d| ≥ |Σ d| − 1e-12 · Σ|d|. All ties
    (m = 0): p = 1. On 0/1 scores this is McNemar's exact test. ``formats/pcg32.md`` states the order of the draws.

    Parameters
    ----------
    a, b
        Scores of the same items in the same order, ``[n]`` each.
    n_perm
        Sign patterns to draw, or the most to enumerate.
    rng
        The stream; None stands for ``PCG32(0)``.
    alternative
        ``greater``: one-sided, "a scores higher than b"; a hit is a pattern with Σ ±d ≥ Σ d − 1e-12 · Σ|d|.

    Raises
    ------
    ValueError
        Empty or non-finite scores, different lengths, a difference that overflows, ``n_perm`` < 1.
    """
    d, n_perm = _differences(a, b), at_least_one("n_perm", n_perm)
    d = d[d != 0]
    if not d.size:
        return 1.0
    size = np.abs(d)
    extreme = np.abs if alternative == "two-sided" else np.positive
    count_hits = _counting_equal(d, extreme) if (size == size[0]).all() else _counting_any(d, extreme)
    patterns = 2**d.size
    exact = patterns <= n_perm
    drawn = _all_words(patterns) if exact else _drawn_words(d.size, n_perm, PCG32(0) if rng is None else rng)
    hits = 0
    for words in drawn:
        hits += count_hits(words)
    return hits / patterns if exact else (1 + hits) / (1 + n_perm)


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    # Scaled by a power of two to at most 1, which is exact and keeps the sums of huge scores finite.
    first, second = observations(a, "a"), observations(b, "b")
    if first.size != second.size:
        raise ValueError(f"a and b must score the same items, got {first.size} and {second.size} scores")
    with np.errstate(over="ignore"):
        d = first - second
    if not np.isfinite(d).all():
        index = int(np.isfinite(d).argmin())
        raise ValueError(f"a - b must fit in float64, got {first[index]} - {second[index]} at index {index}")
    return np.ldexp(d, -int(np.frexp(np.abs(d).max())[1]))


def _all_words(patterns: int) -> Iterator[_Words]:
    for start in range(0, patterns, _CHUNK_WORDS // 2):
        codes = np.arange(start, min(start + _CHUNK_WORDS // 2, patterns), dtype="<u8")
        yield codes.view("<u4").reshape(-1, 2)


def _drawn_words(m: int, n_perm: int, rng: PCG32) -> Iterator[_Words]:
    width = -(-m // 32)
    rows = max(_TILE_ROWS, _CHUNK_WORDS // width)
    for start in range(0, n_perm, rows):
        size = min(rows, n_perm - start)
        yield rng.u32_array(size * width).reshape(size, width)


def _counting_equal(d: NDArray[np.float64], extreme: _Extreme) -> Callable[[_Words], int]:
    # All |d| equal c: Σ ±d = c · (m − 2 · negatives), so bits are counted and the comparison is exact.
    m = d.size
    negative, valid = _bits(d < 0), _bits(np.ones(m, bool))
    observed = extreme(m - 2 * np.bitwise_count(negative).sum(dtype=np.int64))

    def count(words: _Words) -> int:
        used = words[:, : valid.size]
        flipped = np.bitwise_count((used ^ negative) & valid).sum(axis=1, dtype=np.int64)
        return int((extreme(m - 2 * flipped) >= observed).sum())

    return count


def _bits(flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
    packed = np.packbits(flags, bitorder="little")
    return np.pad(packed, (0, -packed.size % 4)).view("<u4").astype(np.uint32)


def _counting_any(d: NDArray[np.float64], extreme: _Extreme) -> Callable[[_Words], int]:
    # Eight signs are one byte, one byte is one lookup among 256 partial sums. Beyond m the padding adds zeros.
    eights = np.pad(d, (0, -d.size % 8)).reshape(-1, 8)
    bound = float(extreme(d.sum())) - _TOLERANCE * float(np.abs(d).sum())

    def count(words: _Words) -> int:
        signs = words.astype("<u4").view(np.uint8)
        sums = np.zeros(len(signs))
        for start in range(0, len(eights), _TILE):
            tables = _partial_sums(eights[start : start + _TILE])
            _add_lookups(sums, signs[:, start : start + len(tables)], tables)
        return int((extreme(sums) >= bound).sum())

    return count


def _partial_sums(eights: NDArray[np.float64]) -> NDArray[np.float64]:
    # [tables, 256]: entry v is Σ ±d over the eight items, minus where the bit of v is set.
    tables = np.zeros((len(eights), 1))
    for bit in range(8):
        item = eights[:, bit : bit + 1]
        tables = np.concatenate([tables + item, tables - item], axis=1)
    return tables


def _add_lookups(sums: NDArray[np.float64], signs: NDArray[np.uint8], tables: NDArray[np.float64]) -> None:
    offsets = 256 * np.arange(len(tables))
    flat = tables.reshape(-1)
    for start in range(0, len(signs), _TILE_ROWS):
        rows = slice(start, start + _TILE_ROWS)
        sums[rows] += flat.take(signs[rows] + offsets).sum(axis=1)
