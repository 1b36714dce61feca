"""JSON as the standard has it: no NaN, no key twice, no half of a surrogate pair; each refusal says where."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinyllm.errors import FormatError

_SURROGATE = re.compile("[\ud800-\udfff]")
# Without any of these a document holds no NaN, no overflow and no surrogate, and is not walked: that costs more than
# parsing it
_SUSPECT = re.compile(r"NaN|Infinity|[0-9][eE]|[0-9]{300}|\\u[dD][89a-fA-F]")


def walk(document: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf and every key of a document, with its path (``rows[3].lo``).

    Parameters
    ----------
    document
        Nested dicts and lists; anything else is a leaf.
    where
        The path of `document` itself.
    """
    if isinstance(document, dict):
        for key, value in document.items():
            inner = f"{where}.{key}" if where else str(key)
            yield f"{inner} (the key)", key
            yield from walk(value, inner)
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from walk(value, f"{where}[{index}]")
    else:
        yield where, document


def is_non_finite(leaf: Any) -> bool:
    """Whether a leaf is a float that JSON cannot hold."""
    return isinstance(leaf, float) and not math.isfinite(leaf)


def has_lone_surrogate(leaf: Any) -> bool:
    """Whether a leaf is a string that UTF-8 cannot hold."""
    return isinstance(leaf, str) and _SURROGATE.search(leaf) is not None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands there twice")
    return seen


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates)  # json.loads would build one a call


def parse(
    text: str,
    path: str | Path,
    *,
    where: str = "",
    error: type[FormatError] = FormatError,
    lone_surrogates: bool = False,
) -> Any:
    """One JSON document from `text`.

    Parameters
    ----------
    text
        The document, without a byte order mark.
    path
        The file it came from, for the message.
    where
        The place inside that file; empty for a whole file, whose syntax errors then carry line and column.
    error
        The exception to raise.
    lone_surrogates
        Whether half a surrogate pair may stand in a string, as in the messages of a report.

    Raises
    ------
    FormatError
        (or `error`) On a syntax error, NaN or Infinity, a number past float64, a key given twice, a lone surrogate.
    """
    try:
        document = _DECODER.decode(text)
    except json.JSONDecodeError as fault:
        place = f"{where}, column {fault.colno}" if where else f"line {fault.lineno}, column {fault.colno}"
        raise error(path, f"must be JSON, got a syntax error: {fault.msg}", where=place) from fault
    except RecursionError as fault:
        raise error(path, "must be nested less deeply to be read", where=where) from fault
    except ValueError as fault:  # our own, and integers of more digits than Python converts
        raise error(path, f"must be JSON with distinct keys and sane numbers: {fault}", where=where) from fault
    for inner, leaf in walk(document) if _SUSPECT.search(text) else ():
        place = ": ".join(part for part in (where, inner) if part)
        if is_non_finite(leaf):
            raise error(path, f"must be a finite number, got {leaf!r}; JSON has null for 'no value'", where=place)
        if not lone_surrogates and has_lone_surrogate(leaf):
            raise error(path, f"must be Unicode text, got half of a surrogate pair in {leaf!r}", where=place)
    return document
