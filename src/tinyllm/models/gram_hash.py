"""A hash table from (gram, older byte) to the gram one byte longer, asked for whole arrays at a time.

An n-gram model whose grams are closed under suffixes is a tree: the children of a gram are the grams one byte
longer to the left. One slot of the table is a 64-bit word, ``parent · 256 + byte`` above and the child's id below, so
that a probe is one gather. Multiplicative hashing (Knuth, The Art of Computer Programming 3, section 6.4) with linear
probing at a load of at most one quarter: nearly every question is answered by its first probe.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EMPTY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
MAX_GRAMS = 2**24 - 1  # parent · 256 + byte must stay below EMPTY's upper half
GOLDEN = np.uint32(0x9E37_79B1)  # the prime next to 2^32 / golden ratio


class GramHash:
    """``find(parent, byte)`` over the edges of a suffix tree of grams.

    Parameters
    ----------
    parent
        int [E], the shorter gram of each edge, below ``MAX_GRAMS``.
    byte
        uint8 [E], the byte on its left.
    child
        int [E], the longer gram.
    """

    def __init__(self, parent: NDArray[np.integer], byte: NDArray[np.uint8], child: NDArray[np.integer]) -> None:
        bits = max(8, int(4 * len(parent) - 1).bit_length())
        self._shift = np.uint32(32 - bits)
        self._mask = np.uint32(2**bits - 1)
        self._slots = np.full(2**bits, EMPTY)
        code = parent.astype(np.uint32) << np.uint32(8) | byte
        word = code.astype(np.uint64) << np.uint64(32) | child.astype(np.uint64)
        slot = (code * GOLDEN) >> self._shift
        while len(word):
            free = self._slots[slot] == EMPTY
            self._slots[slot[free]] = word[free]  # of several words for one slot the last stays; the others go on
            left = self._slots[slot] != word
            word, slot = word[left], (slot[left] + np.uint32(1)) & self._mask

    def find(self, parent: NDArray[np.integer], byte: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The id of the gram ``byte + parent``, or −1 where there is none.

        Parameters
        ----------
        parent
            int [n], ids of grams.
        byte
            uint8 [n], the byte on the left of each.
        """
        code = parent.astype(np.uint32)
        code <<= np.uint32(8)
        code |= byte
        slot = (code * GOLDEN) >> self._shift
        word = self._slots[slot]
        same = (word >> np.uint64(32)).astype(np.uint32) == code
        pending = np.flatnonzero(~same & (word != EMPTY))
        while len(pending):
            slot[pending] = (slot[pending] + np.uint32(1)) & self._mask
            word[pending] = self._slots[slot[pending]]
            same[pending] = (word[pending] >> np.uint64(32)).astype(np.uint32) == code[pending]
            pending = pending[~same[pending] & (word[pending] != EMPTY)]
        child: NDArray[np.int64] = (word & np.uint64(0xFFFF_FFFF)).view(np.int64)
        child[~same] = -1
        return child
