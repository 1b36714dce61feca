"""The zoo: every family through its own checkpoint loader, scored on its own task, one row an entry.

The contract of the course text, section 2.5. A row that cannot be scored is not dropped: an unknown family is
``skipped``, any other exception becomes ``status: "error"`` with its type and message, and the rest is still scored.
Scored here: kind ``lm``, on a token file (bits per byte from the family's own per-token NLLs; gpt and Hugging Face
models strided) or on a multiple-choice file. `score_entry` is what ``tinyllm eval``, ``pytest evals/`` and the
`evaluate` fixture all call.

Example row: the uniform bigram on any text is ``bpb 8, interval [8, 8]``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.errors import FOREIGN, CheckpointError, UnknownFamilyError, said
from tinyllm.eval.checkpoints import Checkpoints, Loader, load_pinned
from tinyllm.eval.gate import judge, unjudged, with_gates
from tinyllm.eval.limit import Limit, limit_items, limit_text
from tinyllm.eval.lm import score_items, strided_nlls
from tinyllm.eval.prepare import metric_of, prepare_choices, prepare_text, task_name, window_settings
from tinyllm.formats.checkpoints import read_config
from tinyllm.formats.filenames import for_people
from tinyllm.formats.manifest import BrokenEntry, Entry, load
from tinyllm.formats.report import write_report
from tinyllm.metrics import Metric, estimate, own_facts
from tinyllm.models import find_family, hf
from tinyllm.report.assemble import report_document, run_facts
from tinyllm.report.rows import Row, blank_row, failed_row, interrupted_row, missing_row
from tinyllm.result import Result
from tinyllm.rng import PCG32, stream
from tinyllm.scoring.forward import Model, as_ids
from tinyllm.scoring.threads import one_thread

__all__ = [
    "kind_of",
    "lm_token_nlls",
    "load_model",
    "read_config",
    "run_zoo",
    "score_entry",
    "write_report",
]

OnProgress = Callable[[int, int], None]


class Scored(NamedTuple):
    """An entry's row, and the result behind it (None where the row has no number)."""

    row: Row
    result: Result | None


def kind_of(config: Mapping[str, Any], *, folder: Path | None = None) -> str | None:
    """What a checkpoint is scored as, or None for a family that is not known.

    Parameters
    ----------
    config
        As `read_config` returns it: ``tl_arch`` names a family, ``model_type`` a Hugging Face folder (always ``lm``).
    folder
        The manifest's, whose ``models/`` may hold families of the user's own.
    """
    if "tl_arch" not in config:
        return "lm" if "model_type" in config else None
    try:
        return str(find_family(str(config["tl_arch"]), folder=folder).KIND)
    except UnknownFamilyError:
        return None


def load_model(dir: str | Path, *, folder: Path | None = None) -> Any:  # noqa: A002 (the contract's name)
    """Load a checkpoint through its family's own loader.

    Parameters
    ----------
    dir
        A folder with ``config.json`` and ``model.safetensors``, a single ``.safetensors`` file whose metadata names its
        ``tl_arch`` (the n-gram), or a folder in Hugging Face layout.
    folder
        The manifest's, whose ``models/`` may hold families of the user's own.

    Raises
    ------
    UnknownFamilyError
        When ``tl_arch`` names no family.
    CheckpointError
        When it names no family at all, or is not exactly what its family asks for.
    ExtensionError
        When its family is the user's own and cannot be used.
    """
    path = Path(dir)
    config = read_config(path)
    if "tl_arch" not in config and "model_type" in config:
        return hf.load_hf(path)
    arch = config.get("tl_arch")
    if not isinstance(arch, str) or not arch:
        fault = f"must name its family in tl_arch (a folder in Hugging Face layout: model_type), got {arch!r}"
        raise CheckpointError(path, fault, where="config")
    family = find_family(arch, folder=folder)
    return getattr(family, f"load_{arch}")(path)


def loader(code: Path | None) -> Loader:
    """`load_model` for the entries of a manifest in the folder `code`, with what families lie there."""
    return load_model if code is None or not (code / "models").is_dir() else partial(load_model, folder=code)


def lm_token_nlls(
    model: Any, ids: ArrayLike, ctx_len: int | None = None, stride: int | None = None
) -> NDArray[np.float64]:
    """The family's own NLL of tokens 1 … n−1: its ``nll`` where it has one, strided windows where its context is fixed.

    Parameters
    ----------
    model
        From `load_model`.
    ids
        int64 ``[n]``.
    ctx_len, stride
        Of the windows, in tokens; by default the model's own context and half of it. Only for models without ``nll``.

    Returns
    -------
    float64 ``[n − 1]``, in nats.

    Raises
    ------
    ValueError
        For ctx_len or stride with a family that scores whole texts, and for a ctx_len beyond the model's.
    """
    return _token_nlls(model, ids, window_settings(model, ctx_len, stride), None)


def _token_nlls(
    model: Any, ids: ArrayLike, settings: Mapping[str, int], on_progress: OnProgress | None
) -> NDArray[np.float64]:
    if not settings:
        return checked_nlls(model, as_ids(ids))
    return strided_nlls(model, ids, **settings, on_window=on_progress)


def checked_nlls(model: Any, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """The family's own NLLs of a text, held to what they must be: a family may be the user's own.

    Raises
    ------
    ValueError
        For another number of them than n − 1, a NaN, and one below 0 (beyond rounding).
    """
    found = np.asarray(model.nll(ids))
    if found.dtype.kind not in "fiu":
        raise ValueError(f"{type(model).__name__}.nll must give real numbers, got dtype {found.dtype}")
    nlls: NDArray[np.float64] = found.astype(np.float64)
    if nlls.shape != (len(ids) - 1,):
        got = f"got shape {list(nlls.shape)} for {len(ids)} tokens"
        raise ValueError(f"{type(model).__name__}.nll must give one NLL for each token but the first, {got}")
    wrong = ~(nlls > -1e-6)  # NaN compares false
    if wrong.any():
        at = int(np.argmax(wrong))
        must = f"{type(model).__name__}.nll must give NLLs, in nats and so of at least 0"
        raise ValueError(f"{must}, got {nlls[at]!s} for token {at + 1}")
    return nlls


def score_entry(entry: Entry | BrokenEntry, rng: PCG32) -> Row:
    """Score one entry of a manifest; whatever goes wrong is in the row.

    Parameters
    ----------
    entry
        From `tinyllm.formats.manifest.load`.
    rng
        The row's own stream, ``stream(base key, entry's name)``.

    Returns
    -------
    A row as ``formats/eval-results.schema.json`` has it.
    """
    return evaluate_entry(entry, rng).row


def evaluate_entry(
    entry: Entry | BrokenEntry,
    rng: PCG32,
    *,
    load: Loader | None = None,
    limit: Limit | None = None,
    on_progress: OnProgress | None = None,
) -> Scored:
    """`score_entry`, with the per-item result beside the row.

    Parameters
    ----------
    entry, rng
        As `score_entry`.
    load
        Loads a checkpoint; a caller that scores many entries passes one that remembers.
    limit
        How much of the data is scored; None for all of it.
    on_progress
        Called with (done, total) while a long entry is scored.
    """
    del rng  # kind lm draws nothing; kinds that mask or resample do
    row = blank_row(entry.name)
    if isinstance(entry, BrokenEntry):
        row = _failed(row, "error", entry.error, entry.folder)
        return Scored({**row, "gate": unjudged(row) if entry.gated else None}, None)
    try:
        with one_thread():
            row, result = _score(entry, row, load or loader(entry.code), limit, on_progress)
    except _Stopped as stopped:
        row, result = _failed(stopped.row, stopped.status, stopped.cause, entry.folder), None
    row["gate"] = judge(row, entry.min, entry.max)
    return Scored(row, result)


class _Stopped(Exception):  # noqa: N818 (not an error of its own: it carries one to the row)
    """An entry could not be scored; what is known of its row, and why."""

    def __init__(self, row: Row, cause: BaseException) -> None:
        super().__init__(said(cause))
        self.row, self.cause = row, cause
        self.status = "skipped" if isinstance(cause, UnknownFamilyError) else "error"


def _failed(row: Row, status: str, cause: BaseException, folder: Path | None) -> Row:
    """The row; its message names paths from the manifest's folder, so that it does not depend on who runs it where."""
    message = said(cause) if folder is None else said(cause).replace(f"{folder}/", "")
    return failed_row(row, status, type(cause).__name__, for_people(message))


def _score(entry: Entry, row: Row, load: Loader, limit: Limit | None, on_progress: OnProgress | None) -> Scored:
    known = dict(row)
    try:
        config = read_config(entry.dir)
        known["arch"] = str(config.get("tl_arch") or config.get("model_type") or "") or None
        known["kind"] = kind_of(config, folder=entry.code)
        known["task"] = entry.task or task_name(entry)
        model, digest = load_pinned(entry, load)
        known["checkpoint"] = {"sha256": digest}
        if entry.has_items:
            metric, result = _score_choices(entry, known, model, limit, on_progress)
        else:
            metric, result = _score_text(entry, known, model, limit, on_progress)
    except FOREIGN as error:
        raise _Stopped(known, error) from error
    known |= {"unit": metric.unit, "interval": metric.interval, "status": "ok", "error": None, "n": result.n}
    known["value"] = result.value
    has_interval = math.isfinite(result.lo) and math.isfinite(result.hi)
    known["lo"], known["hi"] = (result.lo, result.hi) if has_interval else (None, None)
    return Scored(known, result)


def _score_text(
    entry: Entry, row: Row, model: Any, limit: Limit | None, on_progress: OnProgress | None
) -> tuple[Metric, Result]:
    data = prepare_text(entry, row, model)
    metric, windows = metric_of(entry, row), row["settings"]
    data = limit_text(data, row, limit)
    nlls = _token_nlls(model, data.ids, windows, on_progress)
    value, lo, hi = estimate(metric, nlls, data.n_bytes)
    row["notes"] = {"n_bytes": data.n_bytes, "worse_than_uniform": bool(nlls.mean() > math.log(data.vocab_size))}
    row["notes"] |= own_facts(metric)
    return metric, Result(value, lo, hi, len(nlls), nlls)


def _score_choices(
    entry: Entry, row: Row, model: Model, limit: Limit | None, on_progress: OnProgress | None
) -> tuple[Metric, Result]:
    items, tok, max_len, metric = prepare_choices(entry, row, model)
    items = limit_items(items, row, limit)
    own = None if metric.score is None else metric.of_item
    scores = score_items(model, tok, items, metric.name, max_len=max_len, score=own, on_item=on_progress)
    counts = np.bincount(scores.predicted, minlength=max(len(item.choices) for item in items))
    row["notes"] = {
        "n_merged": scores.n_merged,
        "n_truncated": scores.n_truncated,
        "predicted": counts.tolist(),
        "constant": bool((counts > 0).sum() == 1),
    }
    row["notes"] |= own_facts(metric)
    value, lo, hi = estimate(metric, scores.per_item, None)
    return metric, Result(value, lo, hi, len(items), scores.per_item, tuple(item.id for item in items))


def run_zoo(manifest: str | Path | Mapping[str, Any], rng: PCG32 | None, seed: int = 0) -> dict[str, Any]:
    """Score every entry of a manifest, in its order.

    Parameters
    ----------
    manifest
        A TOML or JSON file, or what one holds. Relative paths are relative to the file (to the current folder).
    rng
        One 64-bit base key is drawn from it; each row's stream is a function of the key and the row's name, so that
        adding, removing or reordering entries changes no other row. None stands for ``PCG32(seed)``.
    seed
        Recorded in the report.

    Returns
    -------
    The report (``formats/eval-results.schema.json``): one row an entry, in manifest order.

    Raises
    ------
    UsageError
        For a manifest that is itself wrong. An entry's faults are its row.
    """
    return evaluate_manifest(manifest, rng, seed)[0]


def evaluate_manifest(
    manifest: str | Path | Mapping[str, Any],
    rng: PCG32 | None,
    seed: int = 0,
    *,
    limit: int | Fraction | None = None,
    on_row: Callable[[str], OnProgress | None] | None = None,
    on_report: Callable[[dict[str, Any], dict[str, Result]], None] | None = None,
) -> tuple[dict[str, Any], dict[str, Result]]:
    """`run_zoo`, with the per-item results by row name.

    Parameters
    ----------
    manifest, rng, seed
        As `run_zoo`.
    limit
        How many items of each row are scored, or which share of them; None for all.
    on_row
        Told each row's name as it begins; what it returns follows the row's progress.
    on_report
        Given the report as it stands, with a row for every entry, and the results: at the start, and as each row begins
        and ends. Whoever writes it down loses nothing but the row that was being scored.
    """
    started = datetime.now(UTC)
    suite = load(manifest)
    base_key = (PCG32(seed) if rng is None else rng).next_u64()
    part = None if limit is None else Limit(limit, base_key)
    names = [entry.name for entry in suite.entries]
    rows: dict[str, Row] = {name: missing_row(name, selected=True) for name in names}
    results: dict[str, Result] = {}
    facts = partial(
        run_facts,
        started,
        base_key=base_key,
        manifest=str(manifest) if isinstance(manifest, str | Path) else None,
        workers=0,
        limit=None if limit is None else str(limit),
    )
    document = partial(report_document, suite=suite.name, seed=seed, names=names)

    def tell() -> None:
        if on_report is not None:
            on_report(document(rows=with_gates(rows, suite), run=facts(ended=False), ended=False), results)

    tell()
    remembered = Checkpoints(loader(suite.code))
    needed = Counter(entry.dir for entry in suite.entries if isinstance(entry, Entry))
    for entry in suite.entries:
        rows[entry.name] = interrupted_row(entry.name)
        tell()
        on_progress = on_row(entry.name) if on_row is not None else None
        own = stream(base_key, entry.name)
        rows[entry.name], result = evaluate_entry(entry, own, load=remembered, limit=part, on_progress=on_progress)
        if result is not None:
            results[entry.name] = result
        tell()
        if isinstance(entry, Entry):
            needed[entry.dir] -= 1
            if not needed[entry.dir]:
                remembered.forget(entry.dir)
    return document(rows=rows, run=facts()), results
