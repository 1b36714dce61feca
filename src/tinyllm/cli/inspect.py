"""``tinyllm inspect REPORT ROW [ITEM]``: what the model read, what it gave each token, and what it chose."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyllm.errors import TinyllmError, UsageError
from tinyllm.report.rows import Row
from tinyllm.report.table import number

if TYPE_CHECKING:
    from tinyllm.eval.inspect import ChoiceLook, ItemLook, Line, TextLook, TokenScore


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "inspect",
        help="look inside a stored row: tokens, their log-probabilities, what was chosen",
        description="Without ITEM: the worst-scored items, as stored. With ITEM: that item, scored again from the "
        "manifest. Exit status 1 when it cannot be, or when weights, data, a setting or a number is not as it was.",
    )
    parser.add_argument("report", metavar="REPORT", type=Path, help="a report folder or file")
    parser.add_argument("row", metavar="ROW", help="a row's name")
    parser.add_argument(
        "item", metavar="ITEM", nargs="?", help="an item's id (or its beginning, or its index); of a text: N or FROM-TO"
    )
    parser.add_argument("--manifest", metavar="PATH", type=Path, help="in place of the one that the report names")
    parser.add_argument("--show", metavar="N", type=int, default=10, help="lines without ITEM (default: 10)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look and print."""
    from tinyllm.eval.inspect import SAME_WITHIN, ItemLook, StoredRow

    if options.show < 1:
        raise ValueError(f"--show must be at least 1, got {options.show}")
    stored = StoredRow(options.report, options.row, manifest=options.manifest)
    try:
        stored.open()
        found = None if options.item is None else stored.look(options.item)
    except UsageError:
        raise
    except (TinyllmError, ValueError) as error:
        print(_heading(stored.row))
        print(f"{options.row}: cannot be scored again: {error}", file=sys.stderr)
        return 1
    lines = stored.overview(options.show) if found is None else []
    for change in stored.changes:
        print(f"{options.row}: {change}", file=sys.stderr)
    if options.json:
        what = {"items": list(map(asdict, lines))} if found is None else asdict(found)
        shown = {"row": stored.row["name"], "changes": stored.changes, **what}
        print(json.dumps(_finite(shown), allow_nan=False))
    else:
        print(_heading(stored.row))
        body = _overview(lines) if found is None else _item(found) if isinstance(found, ItemLook) else _text(found)
        for line in body:
            print(line)
    off_by = 0.0 if found is None else found.off_by
    return 1 if stored.changes or off_by > SAME_WITHIN else 0


def _finite(value: Any) -> Any:
    """JSON has no infinity: ln 0 is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def _heading(row: Row) -> str:
    settings = "".join(f", {key} {value}" for key, value in row["settings"].items() if value is not None)
    what = f"{row['name']}: {row['arch'] or 'no model'} on {row['task'] or 'no task'}{settings}"
    if row["status"] != "ok":
        return f"{what}: {row['status']}: {row['error']['type']}: {row['error']['message']}"
    return f"{what}: {row['metric']} {number(row['value'])}, n = {row['n']:,}"


def _overview(lines: list[Line]) -> Iterator[str]:
    if lines:
        wide = max(len(line.item) for line in lines)
        yield f"{'score':>9}  {'item':<{wide}}  (worst first)"
    for line in lines:
        yield f"{line.score:9.4f}  {line.item:<{wide}}  {line.text}".rstrip()


def _token(token: TokenScore) -> str:
    return f"{token.position:>9}  {token.id:>6}  {'–' if token.text is None else token.text:<12}  {token.log_p:>10.6f}"


def _item(look: ItemLook) -> Iterator[str]:
    yield f"item {look.id} (line {look.line})"
    yield f"context {look.context!r}"
    for i, choice in enumerate(look.choices):
        yield from _choice(i, choice)
    right = "right" if look.chosen == look.answer else f"wrong, the answer is {look.answer}"
    yield f"chosen: {look.chosen} {look.choices[look.chosen].text!r}: {right}; score {look.score:g}{_as_stored(look)}"


def _choice(i: int, choice: ChoiceLook) -> Iterator[str]:
    cut = f", {choice.truncated} cut from the left" if choice.truncated else ""
    merged = ", its first token spans the join" if choice.merged else ""
    yield f"choice {i} {choice.text!r}: sum {choice.total:.6f}, per byte {choice.per_byte:.6f}"
    yield f"    after {len(choice.context_ids):,} context tokens{cut}{merged}"
    if cut:
        yield f"    read: {choice.read!r}"
    yield f"{'position':>9}  {'id':>6}  {'token':<12}  {'ln p':>10}"
    for token in choice.tokens:
        yield _token(token)


def _text(look: TextLook) -> Iterator[str]:
    if look.before is not None:
        yield f"after {look.before}"
    yield f"{'position':>9}  {'id':>6}  {'token':<12}  {'ln p':>10}"
    for token in look.tokens:
        yield _token(token)
    total = math.fsum(token.log_p for token in look.tokens)
    count = "1 token" if len(look.tokens) == 1 else f"{len(look.tokens):,} tokens"
    yield f"sum {total:.6f} over {count}{_as_stored(look)}"


def _as_stored(look: ItemLook | TextLook) -> str:
    if look.stored is None:
        return ", none in the report"
    if look.off_by == 0:
        return ", as in the report"
    what = (
        f"{look.stored:g} in the report" if isinstance(look.stored, float) else f"off by up to {look.off_by:.2g} nats"
    )
    return f", {what}"
