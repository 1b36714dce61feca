"""What a run will do, before it does: for each row its items, the tokens the model will read, memory and time.

Checkpoints are loaded and data is opened as a run does it (`tinyllm.eval.prepare`), and texts are tokenised and cut by
the functions that score, so that counts are exact and a row that cannot be scored is known before the hours are spent.
Only a *probe* of a few calls is computed. Example: n = 6 tokens, ctx_len 4, stride 2 are two calls, 8 tokens read, 5
scored.

**Memory** is what the row adds to a process that has imported torch: the weights, and the larger of what loading them
and of what the longest call takes (`memory_bytes` has the formula). It is meant to be right within a factor of `FACTOR`
where it is above `SMALL_BYTES`. **Time** is the probe's, scaled by the tokens read, on this machine, one thread, model
loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import FOREIGN, UnknownFamilyError, said
from tinyllm.eval.limit import Limit, limit_items, limit_text
from tinyllm.eval.prepare import ChoiceTask, metric_of, prepare_choices, prepare_text, task_name
from tinyllm.formats.checkpoints import read_config
from tinyllm.formats.manifest import BrokenEntry, Entry
from tinyllm.formats.tokens import TokenFile
from tinyllm.report.rows import Row

FACTOR = 2.0
SMALL_BYTES = 32 << 20
PROBE_CALLS = 3
PROBE_TOKENS = 4096
"""Of a text that its family scores in one piece."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class RowPlan:
    """What one row will take.

    Attributes
    ----------
    name, arch, task, metric, settings
        As the row will have them.
    status, error
        ``ok``, or as the row will have them.
    n
        Items, or tokens, that will be scored: the row's n.
    calls, tokens, longest
        Forwards of the model, the tokens they read together (a text read by overlapping windows counts twice), and the
        tokens of the longest.
    n_truncated, n_merged
        As the row's notes will have them; None for a text.
    memory_bytes
        What the row adds to the process; see the module.
    time_s
        Seconds of scoring, or None without a probe.
    """

    name: str
    arch: str | None = None
    task: str | None = None
    metric: str | None = None
    settings: Row | None = None
    status: str = "ok"
    error: str | None = None
    n: int | None = None
    calls: int | None = None
    tokens: int | None = None
    longest: int | None = None
    n_truncated: int | None = None
    n_merged: int | None = None
    memory_bytes: int | None = None
    time_s: float | None = None


class _Work(NamedTuple):
    """A row's calls: the length of each, how to make the i-th, and what else the plan says."""

    lengths: NDArray[np.int64]
    call: Callable[[int], object]
    facts: dict[str, Any]


def plan_entry(
    entry: Entry | BrokenEntry,
    *,
    load: Callable[[Path], Any],
    limit: Limit | None = None,
    probe_calls: int = PROBE_CALLS,
    clock: Clock = time.perf_counter,
) -> RowPlan:
    """Plan one entry; whatever goes wrong is in the plan, as it would be in the row.

    Parameters
    ----------
    entry
        From `tinyllm.formats.manifest.load`.
    load
        Loads a checkpoint (`tinyllm.eval.zoo.load_model`, or one that remembers).
    limit
        How much of the data the run is to score; None for all of it.
    probe_calls
        How many calls of the model the probe times (of a multiple-choice task a call is a choice); 0 for none.
    clock
        Seconds.
    """
    from tinyllm.eval.checkpoints import load_pinned
    from tinyllm.scoring.threads import one_thread

    if isinstance(entry, BrokenEntry):
        return RowPlan(entry.name, status="error", error=_told(entry.error, entry.folder))
    row: Row = {"metric": None, "settings": None}
    known: dict[str, Any] = {"task": entry.task or task_name(entry)}
    try:
        config = read_config(entry.dir)
        known["arch"] = str(config.get("tl_arch") or config.get("model_type") or "") or None
        model, _ = load_pinned(entry, load)
        with one_thread():
            work = _choices(entry, row, model, limit) if entry.has_items else _text(entry, row, model, limit)
            time_s = _probe(work, probe_calls, clock) if probe_calls else None
    except UnknownFamilyError as error:
        return RowPlan(entry.name, **known, status="skipped", error=_told(error, entry.folder))
    except FOREIGN as error:  # as a run does: it is the row's
        known |= {"metric": row["metric"], "settings": row["settings"]}
        return RowPlan(entry.name, **known, status="error", error=_told(error, entry.folder))
    known |= {"metric": row["metric"], "settings": row["settings"], **work.facts}
    longest = int(work.lengths.max())
    memory = memory_bytes(model, longest=longest, scored=known["n"])
    return RowPlan(
        entry.name,
        **known,
        calls=len(work.lengths),
        tokens=int(work.lengths.sum()),
        longest=longest,
        memory_bytes=memory,
        time_s=time_s,
    )


def _told(error: BaseException, folder: Path | None) -> str:
    message = said(error)
    return f"{type(error).__name__}: {message if folder is None else message.replace(f'{folder}/', '')}"


def _text(entry: Entry, row: Row, model: Any, limit: Limit | None) -> _Work:
    from tinyllm.scoring.forward import as_ids, target_log_probs
    from tinyllm.scoring.windows import windows

    data: TokenFile = prepare_text(entry, row, model)
    cut_by = row["settings"]
    data = limit_text(data, row, limit)
    n = len(data.ids)
    metric_of(entry, row).estimate(np.zeros(min(max(n - 1, 0), 1)), data.n_bytes)  # refuses what it will refuse
    if not cut_by:
        return _Work(np.array([n]), lambda _: model.nll(as_ids(data.ids[:PROBE_TOKENS])), {"n": n - 1})
    cut = list(windows(n, **cut_by))

    def call(i: int) -> object:
        inside = as_ids(data.ids[cut[i].start : cut[i].end])
        return target_log_probs(model, inside, cut[i].first - cut[i].start, offset=cut[i].start)

    return _Work(np.array([window.end - window.start for window in cut]), call, {"n": n - 1})


def _choices(entry: Entry, row: Row, model: Any, limit: Limit | None) -> _Work:
    from tinyllm.scoring.forward import target_log_probs

    task = prepare_choices(entry, row, model)
    task = task._replace(items=limit_items(task.items, row, limit))
    rows = list(_encoded(task))
    n_truncated = len({i for i, choice in rows if choice.truncated})
    n_merged = sum(choice.merged for _, choice in rows)
    facts = {"n": len(task.items), "n_truncated": n_truncated, "n_merged": n_merged}
    calls = [choice for _, choice in rows]
    lengths = np.array([len(choice.ids) for choice in calls])
    return _Work(lengths, lambda i: target_log_probs(model, calls[i].ids, calls[i].first), facts)


def _encoded(task: ChoiceTask) -> Iterator[tuple[int, Any]]:
    """(item's index, encoded choice) of every choice; what cannot be laid out raises as scoring it would."""
    from tinyllm.scoring.choices import encode_choice

    for i, item in enumerate(task.items):
        for choice in item.choices:
            try:
                yield i, encode_choice(task.tok, item.context, choice, task.max_len)
            except ValueError as error:
                msg = f"item {item.id!r} (line {item.line}): {error}"
                raise ValueError(msg) from error


def _probe(work: _Work, calls: int, clock: Clock) -> float:
    """Seconds for all calls, from `calls` of them spread evenly, after one that warms up; cost taken as linear."""
    picked = np.unique(np.linspace(0, len(work.lengths) - 1, calls).round().astype(int)).tolist()
    work.call(picked[0])
    start = clock()
    for i in picked:
        work.call(i)
    took = clock() - start
    whole = len(work.lengths) == 1 and "n_merged" not in work.facts
    read = min(PROBE_TOKENS, int(work.lengths[0])) if whole else int(work.lengths[picked].sum())
    return took * int(work.lengths.sum()) / read


def held_bytes(model: Any) -> int:
    """The bytes of every array that a model holds, each counted once: parameters and buffers, or numpy tables."""
    seen: dict[int, int] = {}
    visited: set[int] = set()
    todo = [model]
    while todo:
        value = todo.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, np.ndarray):
            seen[value.__array_interface__["data"][0]] = value.nbytes
        elif hasattr(value, "state_dict"):
            for tensor in value.state_dict().values():
                seen[tensor.data_ptr()] = tensor.nbytes
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list | tuple):
            todo.extend(value)
        elif type(value).__module__.startswith("tinyllm."):
            todo.append(getattr(value, "__dict__", {}))
            todo.extend(getattr(value, name, None) for name in getattr(type(value), "__slots__", ()))
    return sum(seen.values())


def memory_bytes(model: Any, *, longest: int, scored: int) -> int:
    """What scoring a row adds to the process.

    Parameters
    ----------
    model
        Loaded.
    longest
        Tokens of its longest call, T.
    scored
        Scored tokens or items, n.

    Notes
    -----
    ``max(2 H, H + W) + 64 n``. H are the arrays the model holds; loading has up to as much again in passing. W, for a
    model that is called: T · V logits (4 bytes; 8 of a numpy model), 3 arrays of min(T, 256) · V float64 for the
    log-softmax, and 4 activations of T times the widest layer. A family that scores its texts whole: 64 bytes a token.
    """
    held = held_bytes(model)
    V = int(getattr(model, "vocab_size", 0))
    is_module = hasattr(model, "state_dict")
    rows = min(longest, 256)
    called = longest * V * (4 if is_module else 8) + 3 * rows * V * 8
    if is_module:
        widths = [side for tensor in model.state_dict().values() for side in tensor.shape if side not in (V, longest)]
        called += 4 * 4 * longest * max(widths, default=0)
    elif scored == longest - 1:
        called = 0
    return max(2 * held, held + called) + 64 * max(scored, longest)
