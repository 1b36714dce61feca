"""Part of the data: the same items for every row of a task, more of them as the limit grows.

``100`` keeps at most 100 items of each row, ``0.1`` a tenth (rounded up). Of a multiple-choice task a random subset:
its items in the order of the SHA-256 of the run's base key and the item's id (``formats/pcg32.md``), of which the first
N are kept, in file order. So every entry of a task, whatever its name, is scored on the same items, and those of a
smaller N are among those of a larger. Of a text the first N scored tokens, read by the same windows as the whole text.
Example: of 40 items ``0.26`` keeps 11.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tinyllm.errors import UsageError
from tinyllm.formats.choices import ChoiceItem
from tinyllm.formats.tokens import TokenFile
from tinyllm.report.rows import Row


@dataclass(frozen=True)
class Limit:
    """How much is kept: `most` items, or the share `most` of them where that is a fraction; `key` seeds the choice."""

    most: int | Fraction
    key: int

    def of(self, n: int) -> int:
        """How many of `n` items are kept: at least one, at most all."""
        return min(n, self.most if isinstance(self.most, int) else math.ceil(self.most * n))


def parse_limit(text: str) -> int | Fraction:
    """A limit as it is written: ``100`` is a number of items, ``0.1`` (any number with a point) a share of them.

    Raises
    ------
    UsageError
        For what is neither a whole number of at least 1 nor a share above 0 and up to 1.
    """
    if re.fullmatch(r"[0-9]{1,18}", text) and int(text) >= 1:
        return int(text)
    if re.fullmatch(r"[0-9]{0,18}\.[0-9]{1,18}", text) and 0 < Fraction(text) <= 1:
        return Fraction(text)
    raise UsageError(f"a limit must be a number of items of at least 1, or a share such as 0.1, got {text!r}")


def limit_items(items: list[ChoiceItem], row: Row, limit: Limit | None) -> list[ChoiceItem]:
    """The items that are kept, in file order; where any is left out, the row's settings say how many of how many."""
    if limit is None or limit.of(len(items)) == len(items):
        return items
    kept = _kept([item.id for item in items], limit.of(len(items)), limit.key)
    row["settings"] = {**row["settings"], "limit": len(kept), "limit_of": len(items)}
    return [items[index] for index in kept]


def _kept(ids: Sequence[str], most: int, key: int) -> list[int]:
    salt = key.to_bytes(8, "little") + b"limit\0"
    order = sorted(range(len(ids)), key=lambda index: hashlib.sha256(salt + _utf8(ids[index])).digest())
    return sorted(order[:most])


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # JSON may hold half a surrogate pair


def limit_text(data: TokenFile, row: Row, limit: Limit | None) -> TokenFile:
    """The beginning of a text that has so many scored tokens; the row's settings say how many of how many.

    Its bytes are known where every token is one byte. Else they are not: the file has the sum over all tokens alone.
    """
    n = len(data.ids) - 1
    if limit is None or n < 1 or limit.of(n) == n:
        return data
    most = limit.of(n)
    row["settings"] = {**row["settings"], "limit": most, "limit_of": n}
    of_bytes = data.vocab_size <= 256 and data.n_bytes == n
    if not of_bytes and row["metric"] == "bpb":
        msg = 'bits per byte of a part of a text need tokens of one byte each; take metric = "nll", or no limit'
        raise ValueError(f"{msg}: the file has the bytes of all {n:,} tokens together")
    return replace(data, ids=data.ids[: most + 1], n_bytes=most if of_bytes else None)
