"""The journal: each row on disk from the moment a worker has it, for the worker may not live to send it.

One folder a run (``<report>/journal``), made by the controller before the workers start and removed once the report has
every row. ``NAME.json`` is a scored row as `wire.pack` has it; ``NAME.WORKER.mark`` says that a worker is scoring the
row, and stays when it dies; ``WORKER.items`` names the entry that each collected item stands for. Every record carries
the run's id: what an earlier run left is never taken for this one's. A worker on another machine finds no folder, and
its rows go by report alone.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from tinyllm.errors import FormatError
from tinyllm.formats.atomic import write_atomic
from tinyllm.plugin.wire import pack, unpack
from tinyllm.report.rows import Row
from tinyllm.result import Result

JOURNAL = "journal"


class Recorder(Protocol):
    """Told of each row as it is scored: a worker's journal, or in one process the controller itself."""

    def began(self, name: str) -> None:
        """The row is being scored from now on."""

    def finished(self, row: Row, result: Result | None) -> None:
        """The row is there, whatever became of it."""

    def stopped(self, name: str, error_type: str, message: str) -> None:
        """The test was taken out of the scoring (a timeout), and the run goes on."""


class Journal:
    """The folder of one run, written by workers and read by the controller.

    Parameters
    ----------
    folder
        The folder; without one, or when it cannot be written, nothing is recorded: the rows still travel by report.
    run_id
        What tells this run's records from another's.
    worker
        The id of the worker that writes; empty in the controller.
    """

    def __init__(self, folder: Path, run_id: str, worker: str = "") -> None:
        self.folder, self.run_id, self._worker = folder, run_id, worker

    def began(self, name: str) -> None:
        """Mark the row as being scored."""
        self._mark(name, None)

    def stopped(self, name: str, error_type: str, message: str) -> None:
        """Say in the mark why the scoring ended without a row."""
        self._mark(name, [error_type, message])

    def finished(self, row: Row, result: Result | None) -> None:
        """Keep the row, then take the mark away."""
        self._write(f"{quote(row['name'], safe='')}.json", {"packed": pack(row, result)})
        with contextlib.suppress(OSError):
            self._mark_path(row["name"]).unlink(missing_ok=True)

    def collected(self, entries: Mapping[str, str]) -> None:
        """Say which entry each collected item stands for, by node id."""
        self._write(f"{self._worker}.items", {"entries": dict(entries)})

    def rows(self) -> Iterator[tuple[Row, Result | None]]:
        """Every row that this run's workers finished."""
        for record in self._records("*.json"):
            yield unpack(record["packed"])

    def marks(self) -> Iterator[tuple[str, str, tuple[str, str] | None]]:
        """(name, worker, why) of every row begun and not finished; `why` is None where nobody could say."""
        for record in self._records("*.mark"):
            why = record["why"]
            yield record["name"], record["worker"], None if why is None else (why[0], why[1])

    def entries(self) -> dict[str, str]:
        """The entry that each collected item stands for, by node id."""
        return {item: name for record in self._records("*.items") for item, name in record["entries"].items()}

    def open(self) -> None:
        """Make the folder, empty."""
        self.clear()
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Remove the records of every run, and the folder."""
        with contextlib.suppress(OSError):
            for path in self.folder.iterdir():
                if path.suffix in (".json", ".mark", ".items", ".tmp"):
                    path.unlink(missing_ok=True)
            self.folder.rmdir()

    def _mark_path(self, name: str) -> Path:
        return self.folder / f"{quote(name, safe='')}.{self._worker}.mark"

    def _mark(self, name: str, why: list[str] | None) -> None:
        self._write(self._mark_path(name).name, {"name": name, "worker": self._worker, "why": why})

    def _write(self, file_name: str, record: Mapping[str, Any]) -> None:
        if not self.folder.is_dir():
            return
        with contextlib.suppress(FormatError):  # a full disk must not cost the row that is about to be sent
            write_atomic(self.folder / file_name, json.dumps({"run": self.run_id, **record}).encode("ascii"))

    def _records(self, pattern: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob(pattern)):
            with contextlib.suppress(OSError, ValueError):  # ValueError: no whole JSON, as after a power cut
                record = json.loads(path.read_bytes())
                if record["run"] == self.run_id:
                    yield record
