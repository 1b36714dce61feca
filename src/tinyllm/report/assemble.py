"""From rows to the report document (formats/eval-results.schema.json): manifest order, and what the run was."""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from tinyllm import __version__
from tinyllm.formats.report import SCHEMA
from tinyllm.report.rows import Row, is_unfinished


def run_facts(
    started: datetime,
    *,
    base_key: int,
    manifest: str | None,
    workers: int,
    ended: bool = True,
    limit: str | None = None,
) -> dict[str, Any]:
    """Everything about a run that may differ between two runs with equal rows: time, host, versions, arguments.

    Parameters
    ----------
    started
        When the run began (with a time zone).
    base_key
        The 64-bit key that every row's random stream is derived from.
    manifest
        The manifest's path as given, or None for one that has no file.
    workers
        The number of worker processes; 0 for a run in one process.
    ended
        False while the run goes on: ``finished`` and ``duration_s`` are null.
    limit
        How many items of each row the run was to score, or which share of them; None for all.
    """
    finished = datetime.now(UTC) if ended else None
    packages = ("numpy", "torch", "scipy", "safetensors", "pytest", "pytest-xdist", "transformers")
    return {
        "started": started.isoformat(),
        "finished": finished.isoformat() if finished else None,
        "duration_s": (finished - started).total_seconds() if finished else None,
        "base_key": f"{base_key:016x}",
        "manifest": manifest,
        "workers": workers,
        "limit": limit,
        "threads": 1,
        "tinyllm": __version__,
        "python": platform.python_version(),
        "versions": {name: version for name in packages if (version := _version(name)) is not None},
        "host": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "argv": sys.argv,
    }


@functools.cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def report_document(
    *, suite: str, seed: int, names: Sequence[str], rows: Mapping[str, Row], run: Mapping[str, Any], ended: bool = True
) -> dict[str, Any]:
    """The report: `names` in manifest order, then rows of evals in plain Python that no entry stands for, by name.

    Parameters
    ----------
    suite, seed
        As the manifest has them.
    names
        The manifest's entries, in order; `rows` has one for each.
    rows
        Every row, by name.
    run
        From `run_facts`.
    ended
        False for a report that is written while the run goes on.

    Notes
    -----
    ``complete`` is true when the run has ended and every row was run, whatever came of it.
    """
    extra = sorted(set(rows) - set(names))
    ordered = [rows[name] for name in [*names, *extra]]
    complete = ended and not any(is_unfinished(row) for row in ordered)
    return {"schema": SCHEMA, "suite": suite, "seed": seed, "complete": complete, "run": dict(run), "rows": ordered}
