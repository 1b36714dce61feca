"""Choice points: a text whose every byte has a known probability.

A *program* is a generator that yields one `ChoicePoint` after another and is sent back the value of the alternative
that was taken; what it yields next may depend on everything it was sent. Each choice point is a set of byte strings,
none of which is a prefix of another, with integer weights. So a text has at most one derivation, and the probability
of the next byte is a ratio of two sums of weights: those that agree with the choice's bytes up to and including it,
over those that agree up to it. Over a whole alternative the ratios telescope to its weight over the total.

    point:  "ab" 1 | "ac" 2 | "d" 1        -ln p("ac") = -ln(3/4) - ln(2/3) = -ln(2/4)
"""

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.rng import PCG32

LN_256 = log(256.0)

Alternative = tuple[str, int, Any]  # the text, its weight, the value that the program is sent


class ChoicePoint:
    """A weighted set of prefix-free byte strings; with a single string it is a literal.

    Attributes
    ----------
    texts, weights, values : tuple
        The alternatives' bytes (printable ASCII and newline), integer weights, and values sent to the program.
    kind : str
        "" or, for a literal that earlier text determines, what determines it ("pronoun", "count", …).
    foils : tuple of bytes
        What a reader who has not followed the story could put in a determined literal's place.

    Raises
    ------
    ValueError
        When there is no alternative, one is empty or has a weight below 1, or one is a prefix of another.
    """

    __slots__ = (
        "_bounds",
        "_index",
        "_lengths",
        "_nlls",
        "_rows",
        "foils",
        "kind",
        "texts",
        "total",
        "values",
        "weights",
    )

    def __init__(self, alternatives: Iterable[Alternative], *, kind: str = "", foils: Iterable[str] = ()) -> None:
        rows = tuple(alternatives)
        self.texts: tuple[bytes, ...] = tuple(text.encode("ascii") for text, _, _ in rows)
        self.weights: tuple[int, ...] = tuple(weight for _, weight, _ in rows)
        self.values: tuple[Any, ...] = tuple(value for _, _, value in rows)
        self._bounds = tuple(accumulate(self.weights))
        self.total: int = self._bounds[-1] if rows else 0
        self.kind = kind
        self.foils: tuple[bytes, ...] = tuple(foil.encode("ascii") for foil in foils)
        self._check()
        self._index = {text: i for i, text in enumerate(self.texts)}
        self._lengths = sorted({len(text) for text in self.texts})
        self._nlls: dict[int, tuple[float, ...]] = {}
        self._rows: dict[bytes, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}

    def _check(self) -> None:
        if not self.texts or not all(self.texts) or min(self.weights) < 1:
            raise ValueError(f"alternatives must be non-empty with weights of at least 1, got {self!r}")
        ordered = sorted(self.texts)
        for shorter, longer in pairwise(ordered):
            if longer.startswith(shorter):
                raise ValueError(f"alternatives must be prefix-free, got {shorter!r} and {longer!r}; reword one")

    def __repr__(self) -> str:
        pairs = ", ".join(f"{text!r}: {weight}" for text, weight in zip(self.texts, self.weights, strict=True))
        return f"ChoicePoint({pairs})"

    def drawn(self, rng: PCG32) -> int:
        """Return the index of an alternative drawn by weight: one `bounded(total)`, none for a literal."""
        if len(self.weights) == 1:
            return 0
        return bisect_right(self._bounds, rng.bounded(self.total))

    def match(self, data: bytes, start: int) -> int:
        """Return the index of the alternative that stands whole at `data[start:]`, or -1."""
        for length in self._lengths:
            index = self._index.get(data[start : start + length])
            if index is not None:
                return index
        return -1

    def mass(self, prefix: bytes) -> int:
        """Return the sum of the weights of the alternatives that begin with `prefix`."""
        return sum(weight for text, weight in zip(self.texts, self.weights, strict=True) if text.startswith(prefix))

    def nlls(self, index: int) -> tuple[float, ...]:
        """Return the nats of each byte of an alternative; their sum is ln(total / weight)."""
        known = self._nlls.get(index)
        if known is None:
            text = self.texts[index]
            masses = [self.mass(text[:i]) for i in range(len(text) + 1)]
            known = tuple(log(before / after) for before, after in pairwise(masses))
            self._nlls[index] = known
        return known

    def next_bytes(self, prefix: bytes) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the bytes that may follow `prefix` inside this choice, and their log-probabilities in nats.

        Both arrays are empty when none may: after a whole alternative, or a prefix that no alternative has.
        """
        known = self._rows.get(prefix)
        if known is None:
            sums: dict[int, int] = {}
            for text, weight in zip(self.texts, self.weights, strict=True):
                if text.startswith(prefix) and len(text) > len(prefix):
                    sums[text[len(prefix)]] = sums.get(text[len(prefix)], 0) + weight
            total = sum(sums.values())
            nats = [-log(total / mass) for mass in sums.values()]
            known = np.array(list(sums), dtype=np.intp), np.array(nats, dtype=np.float64)
            if sums:  # so the cache is no larger than the trie
                self._rows[prefix] = known
        return known


Program = Generator[ChoicePoint, Any, Any]


@lru_cache(maxsize=1 << 16)
def point(*alternatives: Alternative) -> ChoicePoint:
    """Return the choice point of `(text, weight, value)` alternatives, built once."""
    return ChoicePoint(alternatives)


@lru_cache(maxsize=1 << 16)
def literal(text: str) -> ChoicePoint:
    """Return the choice point with the one alternative `text`, whose value is `text`."""
    return ChoicePoint([(text, 1, text)])


@lru_cache(maxsize=1 << 16)
def determined(kind: str, text: str, foils: tuple[str, ...]) -> ChoicePoint:
    """Return a literal that earlier text determines, with what could wrongly stand in its place."""
    return ChoicePoint([(text, 1, text)], kind=kind, foils=[foil for foil in foils if foil != text])


def derivation(program: Program, rng: PCG32) -> Iterator[tuple[ChoicePoint, int]]:
    """Yield the choices that `rng` makes in `program`: each point with the index of the alternative taken."""
    try:
        current = next(program)
        while True:
            index = current.drawn(rng)
            yield current, index
            current = program.send(current.values[index])
    except StopIteration:
        return


def _walk(program: Program, data: bytes) -> Iterator[tuple[ChoicePoint, int]]:
    """Yield each choice point that `data` passes, with the place where its bytes start; the last may be cut or fail."""
    start = 0
    try:
        current = next(program)
        while start < len(data):
            yield current, start
            index = current.match(data, start)
            if index < 0:
                return
            start += len(current.texts[index])
            current = program.send(current.values[index])
        yield current, start
    except StopIteration:
        return


def _partial(current: ChoicePoint, rest: bytes) -> list[float]:
    """Return the nats of the bytes of `rest` while they are inside `current`, up to the first impossible one."""
    nlls: list[float] = []
    before = current.total
    for end in range(1, len(rest) + 1):
        after = current.mass(rest[:end])
        nlls.append(log(before / after) if after else inf)
        if not after:
            break
        before = after
    return nlls


def text_nlls(program: Program, data: bytes) -> NDArray[np.float64]:
    """Return the exact NLL of every byte of a text under a program.

    The text may end anywhere, inside a choice too. The first byte that the program cannot write has an infinite NLL;
    what follows it has no conditional probability, and is *defined* to be uniform over the 256 bytes.

    Returns
    -------
    float64[len(data)]
        Nats. Empty for empty data.
    """
    nlls: list[float] = []
    for current, start in _walk(program, data):
        index = current.match(data, start)
        nlls.extend(current.nlls(index) if index >= 0 else _partial(current, data[start:]))
    if len(nlls) < len(data) and inf not in nlls[-1:]:
        nlls.append(inf)  # the program ended before the text
    nlls.extend([LN_256] * (len(data) - len(nlls)))
    return np.array(nlls, dtype=np.float64)


def next_byte_log_probs(program: Program, data: bytes) -> NDArray[np.float64]:
    """Return log p(byte | data[:t]) for every t from 0 to len(data), over all 256 bytes.

    Returns
    -------
    float64[len(data) + 1, 256]
        Nats, at most 0, −inf for impossible bytes. Row t is what is known before byte t is read; the last row is
        about the byte after the text. Rows after an impossible byte, or after the program's end, are uniform.
    """
    table = np.full((len(data) + 1, 256), -LN_256)
    for current, start in _walk(program, data):
        index = current.match(data, start)
        read = len(current.texts[index]) if index >= 0 else len(data) - start + 1
        for offset in range(read):
            possible, nats = current.next_bytes(data[start : start + offset])
            if not len(possible):
                break
            table[start + offset] = -inf
            table[start + offset, possible] = nats
    return table
