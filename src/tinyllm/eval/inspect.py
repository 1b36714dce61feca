"""A stored row, looked into: the tokens that the model read, the log-probability of each, and what was chosen.

An item is scored again, from the manifest, by the functions that scored its row, and what is not as it was then is
said: other weights, other data, other settings, another number. Example: of choices " a" and " b" with ln p −1.2 and
−0.7 the second is chosen; the shown log-probabilities of a choice's tokens add up to its score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import UsageError, nearest
from tinyllm.eval.prepare import ChoiceTask, prepare_choices, prepare_text, tokenizer_of
from tinyllm.formats.choices import ChoiceItem
from tinyllm.formats.manifest import BrokenEntry, Entry, load
from tinyllm.formats.tokens import TokenFile
from tinyllm.metrics import better_item
from tinyllm.report.rows import Row
from tinyllm.report.store import read_run
from tinyllm.result import Result

if TYPE_CHECKING:
    from tinyllm.scoring.choices import Tokenizer

SAME_WITHIN = 1e-4
"""Nats: a token's number further from the stored one is another (machines round differently)."""


@dataclass(frozen=True)
class TokenScore:
    """One scored token: its place in what the model read (in the text), its id and text, and ln p in nats.

    ``text`` is None where neither the model nor the data says what an id stands for.
    """

    position: int
    id: int
    text: str | None
    log_p: float


@dataclass(frozen=True)
class ChoiceLook:
    """One choice as it was scored.

    Attributes
    ----------
    text
        As in the file.
    context_ids, read
        The tokens read before the choice's first, a BOS included, and their text.
    truncated
        How many context tokens were cut from the left.
    merged
        Whether the first token spans the join of context and choice.
    tokens
        The choice's own.
    total, per_byte
        The sum of their ln p (what ``acc`` compares), and that over the UTF-8 bytes of `text` (``acc_norm``).
    """

    text: str
    context_ids: tuple[int, ...]
    read: str
    truncated: int
    merged: bool
    tokens: tuple[TokenScore, ...]
    total: float
    per_byte: float


@dataclass(frozen=True)
class ItemLook:
    """One item of a multiple-choice row; `score` is 1.0 where `chosen` is `answer`, `stored` the report's, or None."""

    id: str
    line: int
    context: str
    choices: tuple[ChoiceLook, ...]
    answer: int
    chosen: int
    score: float
    stored: float | None

    @property
    def off_by(self) -> float:
        """How far the score is from the stored one; 0 where none is stored."""
        return 0.0 if self.stored is None else abs(self.score - self.stored)


@dataclass(frozen=True)
class TextLook:
    """A stretch of a text: what comes `before` it, its scored tokens, and the report's NLLs of them, if any."""

    before: str | None
    tokens: tuple[TokenScore, ...]
    stored: tuple[float, ...] | None

    @property
    def off_by(self) -> float:
        """The largest difference of a token's NLL from the stored one, in nats; 0 where none is stored."""
        pairs = zip(self.tokens, self.stored or (), strict=False)
        return max((0.0 if -token.log_p == nll else abs(-token.log_p - nll) for token, nll in pairs), default=0.0)


@dataclass(frozen=True)
class Line:
    """One line of an overview: an item's stored score, its name (what `look` takes), and the text to know it by."""

    score: float
    item: str
    text: str


class StoredRow:
    """A row of a stored report and its manifest entry; after `open` with its checkpoint and its data.

    Parameters
    ----------
    report
        A report folder or file.
    name
        The row.
    manifest
        In place of the one that the report names.

    Attributes
    ----------
    row, result
        As stored; result is None for a row without a number.
    changes
        What is not as it was when the row was scored, a sentence each; empty when all is.

    Raises
    ------
    UsageError
        For a row that the report or the manifest does not have, and for a report that names no manifest.
    FormatError
        For a faulty report.
    """

    def __init__(self, report: Path, name: str, *, manifest: Path | None = None) -> None:
        document, results = read_run(report)
        rows = {row["name"]: row for row in document["rows"]}
        if name not in rows:
            raise UsageError(f"{report} has no row {name!r}; {nearest(name, rows)}")
        self.row: Row = rows[name]
        self.result: Result | None = results.get(name)
        self.changes: tuple[str, ...] = ()
        self._entry = _entry(name, manifest or _named_manifest(document, report))
        self._model: Any = None
        self._task: ChoiceTask | None = None
        self._text: TokenFile | None = None
        self._now: Row = {"metric": None, "data": None, "settings": {}}

    def open(self) -> None:
        """Load the checkpoint and open the data; `changes` is known then.

        Raises
        ------
        TinyllmError, ValueError
            When the row could not be scored now, for the reason that would be in it.
        """
        from tinyllm.eval.checkpoints import load_pinned
        from tinyllm.eval.zoo import loader

        entry = self._entry
        if isinstance(entry, BrokenEntry):
            raise entry.error
        self._model, digest = load_pinned(entry, loader(entry.code))
        self._now["checkpoint"] = {"sha256": digest}
        if entry.has_items:
            self._task = prepare_choices(entry, self._now, self._model)
        else:
            self._text = prepare_text(entry, self._now, self._model)
        self.changes = tuple(_changes(self.row, self._now))

    def look(self, which: str) -> ItemLook | TextLook:
        """Score one item again.

        Parameters
        ----------
        which
            Of a multiple-choice row: an item's id, the beginning of one where it is the only such, or the item's index
            in the file from 0. Of a text: a token's number (the first that is scored is 1), or ``FROM-TO``, both in.

        Raises
        ------
        UsageError
            When there is no such item.
        ValueError
            When it cannot be scored.
        """
        from tinyllm.scoring.threads import one_thread

        with one_thread():
            if self._task is not None:
                return self._look_at_item(self._task, _find_item(self._task.items, which))
            assert self._text is not None
            return self._look_at_text(self._text, which)

    def overview(self, most: int) -> list[Line]:
        """The `most` items with the worst stored scores, worst first, equal ones in file order; nothing is scored."""
        if self.result is None:
            return []
        scores = self.result.per_item
        lower = better_item(self.row) == "lower"
        worst = np.argsort(-scores if lower else scores, kind="stable")[:most]
        return [Line(float(scores[i]), *self._names(int(i))) for i in worst]

    def _names(self, index: int) -> tuple[str, str]:
        if self._text is not None:
            known = self._pieces(self._text.ids[max(0, index - 15) : index + 2])
            return str(index + 1), "" if known is None else known
        assert self._task is not None
        assert self.result is not None
        name = str(index) if self.result.ids is None else self.result.ids[index]
        item = next((item for item in self._task.items if item.id == name), None)
        return name, "" if item is None else f"{item.context[-40:]!r} → {item.choices[item.answer]!r}"

    def _look_at_item(self, task: ChoiceTask, item: ChoiceItem) -> ItemLook:
        from tinyllm.eval.lm import score_items
        from tinyllm.scoring.choices import encode_choice
        from tinyllm.scoring.forward import target_log_probs

        stored = None
        if self.result is not None and self.result.ids is not None and item.id in self.result.ids:
            stored = float(self.result.per_item[self.result.ids.index(item.id)])
        own = None if task.metric.score is None else task.metric.of_item
        scores = score_items(self._model, task.tok, [item], task.metric.name, max_len=task.max_len, score=own)
        choices = []
        for choice in item.choices:
            encoded = encode_choice(task.tok, item.context, choice, task.max_len)
            ids = encoded.ids[encoded.first :]
            log_p = target_log_probs(self._model, encoded.ids, encoded.first)
            tokens = _tokens(task.tok, encoded.first, ids, log_p)
            total = math.fsum(log_p)
            before = encoded.ids[: encoded.first].tolist()
            read, per_byte = task.tok.decode(before), total / len(choice.encode("utf-8"))
            how = (encoded.truncated, encoded.merged)
            choices.append(ChoiceLook(choice, tuple(before), read, *how, tokens, total, per_byte))
        chosen, score = int(scores.predicted[0]), float(scores.per_item[0])
        return ItemLook(item.id, item.line, item.context, tuple(choices), item.answer, chosen, score, stored)

    def _look_at_text(self, text: TokenFile, which: str) -> TextLook:
        n = len(text.ids) if self.result is None else min(self.result.n + 1, len(text.ids))  # a row may be of a prefix
        first, last = _stretch(which, n)
        log_p = -_nlls(self._model, text.ids[:n], self._now["settings"], first, last)
        tokens = _tokens(self._tokenizer(), first, text.ids[first : last + 1], log_p)
        stored = None if self.result is None else tuple(self.result.per_item[first - 1 : last].tolist())
        return TextLook(self._pieces(text.ids[max(0, first - 40) : first]), tokens, stored)

    def _tokenizer(self) -> Tokenizer | None:
        try:
            return tokenizer_of(self._model)
        except ValueError:
            return None

    def _pieces(self, ids: NDArray[Any]) -> str | None:
        tok = self._tokenizer()
        return None if tok is None else repr(tok.decode(ids.tolist()))


def _named_manifest(document: dict[str, Any], report: Path) -> Path:
    named = document["run"].get("manifest")
    if named is None:
        raise UsageError(f"{report} names no manifest; say which with --manifest PATH")
    if not Path(named).is_file():
        fix = "run from the folder that the run was started in, or say --manifest PATH"
        raise UsageError(f"the manifest that {report} names must be a file, got {named!r}; {fix}")
    return Path(named)


def _entry(name: str, manifest: Path) -> Entry | BrokenEntry:
    entries = {entry.name: entry for entry in load(manifest).entries}
    if name not in entries:
        raise UsageError(f"{manifest} has no entry {name!r} to score it from; {nearest(name, entries)}")
    return entries[name]


def _changes(row: Row, now: Row) -> list[str]:
    found = []
    for what in ("checkpoint", "data"):
        if row[what] is not None and row[what]["sha256"] != now[what]["sha256"]:
            hashes = f"{row[what]['sha256'][:12]}… in the report and {now[what]['sha256'][:12]}… on disk"
            found.append(f"the {what} is not the one that was scored: sha256 {hashes}")
    if row["metric"] is not None and row["metric"] != now["metric"]:
        found.append(f"the metric is not the row's: {row['metric']!r} in the report, {now['metric']!r} in the manifest")
    for key, value in now["settings"].items():
        if row["settings"].get(key, value) != value:
            found.append(f"{key} is not the row's: {row['settings'][key]!r} in the report, {value!r} now")
    return found


def _find_item(items: Sequence[ChoiceItem], which: str) -> ChoiceItem:
    by_id = {item.id: item for item in items}
    if which in by_id:
        return by_id[which]
    if which.isascii() and which.isdigit() and int(which) < len(items):
        return items[int(which)]
    starts = [item for item in items if item.id.startswith(which)]
    if len(starts) == 1:
        return starts[0]
    if starts:
        raise UsageError(f"item {which!r} must begin one id, got {len(starts)}: {starts[0].id}, {starts[1].id}, …")
    hint = nearest(which, by_id) if len(items) <= 10 else ""
    if not hint.startswith("did you mean"):
        hint = f"there are {len(items):,}, from {items[0].id} to {items[-1].id}"
    raise UsageError(f"no item has the id {which!r}; {hint}")


def _stretch(which: str, n: int) -> tuple[int, int]:
    start, dash, end = which.partition("-")
    numbers = [start, end] if dash else [start, start]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise UsageError(f"an item of a text is a token's number or FROM-TO, got {which!r}")
    first, last = map(int, numbers)
    if not 1 <= first <= last < n:
        raise UsageError(f"tokens 1 to {n - 1:,} of this text are scored, got {which!r}")
    return first, last


def _nlls(model: Any, ids: NDArray[Any], settings: dict[str, int], first: int, last: int) -> NDArray[np.float64]:
    """The NLLs of tokens first … last, from the windows that scored them (from the whole text where there are none)."""
    from tinyllm.scoring.forward import as_ids, target_log_probs
    from tinyllm.scoring.windows import windows

    if not settings:
        whole: NDArray[np.float64] = model.nll(as_ids(ids))
        return whole[first - 1 : last]
    out = np.full(last + 1 - first, np.nan)
    for window in windows(len(ids), **settings):
        if window.end <= first or window.first > last:
            continue
        inside = as_ids(ids[window.start : window.end])
        log_p = target_log_probs(model, inside, window.first - window.start, offset=window.start)
        wanted = np.arange(max(first, window.first), min(last + 1, window.end))
        out[wanted - first] = -log_p[wanted - window.first]
    return out


def _tokens(tok: Tokenizer | None, first: int, ids: NDArray[Any], log_p: NDArray[np.float64]) -> tuple[TokenScore, ...]:
    return tuple(
        TokenScore(first + i, token, None if tok is None else _piece(tok, token), float(value))
        for i, (token, value) in enumerate(zip(ids.tolist(), log_p, strict=True))
    )


def _piece(tok: Tokenizer, token: int) -> str:
    """One token, quoted; a byte that is no text of its own shows as its escape."""
    from tinyllm.eval.lm import ByteTokenizer

    if isinstance(tok, ByteTokenizer):
        return repr(bytes([token]))[1:]
    return repr(tok.decode([token]))
