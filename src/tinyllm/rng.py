"""PCG32, the one source of randomness: XSH-RR 64/32, scalar or vectorised, the same stream number for number.

The generator, its bounded draws and every consumer's draw order are written down in ``formats/pcg32.md``, so that
another language reproduces an interval bit by bit. Source: M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient
Statistically Good Algorithms for Random Number Generation" (2014), and its C code (``pcg32_srandom_r``,
``pcg32_boundedrand_r``).
"""

from __future__ import annotations

import functools
import hashlib
import operator

import numpy as np
from numpy.typing import NDArray

_MULTIPLIER = 6364136223846793005
_MASK32, _MASK64 = 2**32 - 1, 2**64 - 1
_BLOCK = 16384  # states a block: with its scratch 448 KiB, inside a 512 KiB L2 cache


def stream(key: int, name: str, index: int | None = None) -> PCG32:
    """The stream that belongs to ``name`` (and item ``index``) under ``key``, whatever else was drawn.

    The SHA-256 digest of ``key`` as 8 little-endian bytes, then ``name`` in UTF-8, then, when there is an index, one
    zero byte and the index as 8 little-endian bytes: its bytes 0-7 are the seed, 8-15 the sequence, both little-endian.

    Raises
    ------
    ValueError
        When ``key`` or ``index`` does not fit in 64 bits, or ``name`` holds a NUL (it would read as an index).
    """
    data = _uint64("key", key).to_bytes(8, "little") + _name_bytes(name)
    if index is not None:
        data += b"\0" + _uint64("index", index).to_bytes(8, "little")
    return _from_digest(data)


class PCG32:
    """The PCG32 generator (XSH-RR 64/32) as published.

    Scalar and array methods draw from one stream: ``u32_array(3)`` returns what three ``next_u32()`` calls would, and
    leaves the generator where they would leave it.

    Parameters
    ----------
    seed
        ``initstate`` of ``pcg32_srandom_r``, 0 to 2^64 - 1.
    sequence
        ``initseq``, 0 to 2^64 - 1; its top bit has no effect, as published. ``PCG32(42, 54)`` starts
        ``a15c02b7 7b47f409 ba1d3330``.

    Raises
    ------
    ValueError
        When a seed does not fit in 64 bits.
    """

    __slots__ = ("_increment", "_state", "seed", "sequence")

    def __init__(self, seed: int = 0, sequence: int = 54) -> None:
        self.seed = _uint64("seed", seed)
        self.sequence = _uint64("sequence", sequence)
        self._increment = (self.sequence << 1 | 1) & _MASK64
        self._state = ((self._increment + self.seed) * _MULTIPLIER + self._increment) & _MASK64

    def __repr__(self) -> str:
        return f"<PCG32 seed={self.seed} sequence={self.sequence} state={self._state:#018x}>"

    @property
    def state(self) -> tuple[int, int]:
        """The 64-bit state and increment, ``state`` and ``inc`` of the C struct."""
        return self._state, self._increment

    def next_u32(self) -> int:
        """The next 32 bits, 0 to 2^32 - 1."""
        old = self._state
        self._state = (old * _MULTIPLIER + self._increment) & _MASK64
        word = ((old >> 18 ^ old) >> 27) & _MASK32
        rotation = old >> 59
        return (word >> rotation | word << (-rotation & 31)) & _MASK32

    def next_u64(self) -> int:
        """Two draws, the first in the high 32 bits."""
        high = self.next_u32()
        return high << 32 | self.next_u32()

    def bounded(self, n: int) -> int:
        """A draw from 0 to n - 1, each equally likely: draws below ``2^32 mod n`` are rejected, the rest taken mod n.

        Raises
        ------
        ValueError
            Unless 1 <= n <= 2^32.
        """
        n = _bound(n)
        threshold = 2**32 % n
        while (draw := self.next_u32()) < threshold:
            pass
        return draw % n

    def random(self) -> float:
        """A float in [0, 1): one draw times 2^-32 (32 random bits, not 53)."""
        return self.next_u32() * 2.0**-32

    def u32_array(self, count: int) -> NDArray[np.uint32]:
        """The next ``count`` values of `next_u32`, uint32 ``[count]``."""
        out = np.empty(_count(count), np.uint32)
        self.fill_u32(out)
        return out

    def bounded_array(self, n: int, count: int) -> NDArray[np.int64]:
        """The next ``count`` values of ``bounded(n)``, int64 ``[count]``."""
        out = np.empty(_count(count), np.uint32)
        self.fill_bounded(n, out)
        return out.astype(np.int64)

    def random_array(self, count: int) -> NDArray[np.float64]:
        """The next ``count`` values of `random`, float64 ``[count]``."""
        return np.multiply(self.u32_array(count), 2.0**-32, dtype=np.float64)

    def shuffled(self, n: int) -> NDArray[np.int64]:
        """A random order of 0 … n - 1, int64 ``[n]``.

        Fisher-Yates from the top: for i = n - 1 down to 1, ``j = bounded(i + 1)`` and items i and j change places.
        """
        order = list(range(_count(n)))
        for i in range(len(order) - 1, 0, -1):
            j = self.bounded(i + 1)
            order[i], order[j] = order[j], order[i]
        return np.array(order, np.int64)

    def fork(self, name: str) -> PCG32:
        """A stream of its own for ``name``, from this generator's seed and sequence.

        Nothing is drawn, and nothing drawn so far matters: the fork is the same before and after any draw. The digest
        is that of `stream` over the seed and then the sequence (8 little-endian bytes each) in the key's place.
        """
        return _from_digest(self.seed.to_bytes(8, "little") + self.sequence.to_bytes(8, "little") + _name_bytes(name))

    def fill_u32(self, out: NDArray[np.uint32]) -> None:
        """Overwrite ``out``, uint32 ``[count]``, with the next values of `next_u32`.

        Raises
        ------
        ValueError
            When ``out`` is anything but one-dimensional uint32.
        """
        if out.dtype != np.uint32 or out.ndim != 1:
            raise ValueError(f"draws must go into a one-dimensional uint32 array, got {out.dtype} {out.shape}")
        if not out.size:
            return
        size = min(out.size, _BLOCK)
        powers, sums, power, total = _jump_table()
        states = powers[:size] * self._state
        states += sums[:size] * self._increment
        wide = np.empty(size, np.uint64)
        rotation, low = np.empty(size, np.uint32), np.empty(size, np.uint32)
        for start in range(0, out.size, _BLOCK):
            if start:  # every state one whole block on
                states *= power
                states += total * self._increment & _MASK64
            block = out[start : start + _BLOCK]
            m = block.size
            _xsh_rr(states[:m], wide[:m], rotation[:m], low[:m], block)
        self._state = (int(states[m - 1]) * _MULTIPLIER + self._increment) & _MASK64

    def fill_bounded(self, n: int, out: NDArray[np.uint32]) -> None:
        """Overwrite ``out``, uint32 ``[count]``, with the next values of ``bounded(n)``.

        Raises
        ------
        ValueError
            When ``out`` is anything but one-dimensional uint32, or unless 1 <= n <= 2^32.
        """
        n = _bound(n)
        self.fill_u32(out)
        self._replace_rejected(2**32 % n, out)
        if n == 2**32:
            return
        quotient = np.empty(min(out.size, _BLOCK), np.uint32)
        for start in range(0, out.size, _BLOCK):  # r - r // n * n: numpy's division by a constant is fast, its % is not
            block = out[start : start + _BLOCK]
            part = quotient[: block.size]
            np.floor_divide(block, n, out=part)
            part *= n
            block -= part

    def _replace_rejected(self, threshold: int, out: NDArray[np.uint32]) -> None:
        # Each round draws exactly as many as are missing, so the stream is never read past the last value kept.
        while threshold and out.size and out.min() < threshold:
            kept = out[out >= threshold]
            out[: kept.size] = kept
            out = out[kept.size :]
            self.fill_u32(out)


@functools.cache
def _jump_table() -> tuple[NDArray[np.uint64], NDArray[np.uint64], int, int]:
    # a^i and 1 + a + … + a^(i-1) for i < _BLOCK, by doubling, and both for i = _BLOCK:
    # the state i steps on is a^i · state + sum · increment.
    powers, sums = np.ones(_BLOCK, np.uint64), np.zeros(_BLOCK, np.uint64)
    done, power, total = 1, _MULTIPLIER, 1
    while done < _BLOCK:
        np.multiply(powers[:done], power, out=powers[done : 2 * done])
        np.multiply(sums[:done], power, out=sums[done : 2 * done])
        sums[done : 2 * done] += np.uint64(total)
        done, power, total = 2 * done, power * power & _MASK64, total * (power + 1) & _MASK64
    powers.flags.writeable = sums.flags.writeable = False
    return powers, sums, power, total


def _xsh_rr(
    states: NDArray[np.uint64],
    wide: NDArray[np.uint64],
    rotation: NDArray[np.uint32],
    low: NDArray[np.uint32],
    out: NDArray[np.uint32],
) -> None:
    # The output function, as in next_u32; all but `states` and `out` is scratch.
    np.right_shift(states, 18, out=wide)
    wide ^= states
    wide >>= 27
    np.copyto(out, wide, casting="unsafe")
    np.right_shift(states, 59, out=wide)
    np.copyto(rotation, wide, casting="unsafe")
    np.right_shift(out, rotation, out=low)
    np.negative(rotation, out=rotation)
    rotation &= 31
    out <<= rotation
    out |= low


def _from_digest(data: bytes) -> PCG32:
    digest = hashlib.sha256(data).digest()
    return PCG32(int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little"))


def _name_bytes(name: str) -> bytes:
    if "\0" in name:
        raise ValueError(f"a stream's name must not hold a NUL character, got {name!r}")
    return name.encode("utf-8")


def _uint64(what: str, value: int) -> int:
    value = operator.index(value)
    if not 0 <= value <= _MASK64:
        raise ValueError(f"{what} must lie in 0 … 2^64 - 1, got {value!r}")
    return value


def _bound(n: int) -> int:
    n = operator.index(n)
    if not 1 <= n <= 2**32:
        raise ValueError(f"the bound of a draw must lie in 1 … 2^32, got {n!r}")
    return n


def _count(count: int) -> int:
    count = operator.index(count)
    if count < 0:
        raise ValueError(f"the number of draws must not be negative, got {count!r}")
    return count
