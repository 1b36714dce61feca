"""Which file a run reports to, and when: a run that is not complete never replaces a complete report unless told to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinyllm.errors import TinyllmError
from tinyllm.formats.report import Written
from tinyllm.report.store import (
    PARTIAL_REPORT_FILE,
    REPORT_FILE,
    has_complete_report,
    remove_run,
    write_report_alone,
    write_run,
)
from tinyllm.result import Result

Report = Mapping[str, Any]


class ReportFile:
    """The report of one run, rewritten while it goes on.

    Beside a complete report the run writes ``report.partial.json`` and its items, and replaces the report only when it
    is complete itself. Where nothing changed nothing is written.

    Parameters
    ----------
    folder
        The report folder.
    overwrite
        Replace a complete report from the start.
    option
        What a person sets for that, as ``--tinyllm-overwrite``.
    limited
        The run scores a part of the items, and so is not complete beside a report that has all of them.
    """

    def __init__(self, folder: Path, *, overwrite: bool, option: str, limited: bool = False) -> None:
        self._folder, self._overwrite, self._option, self._limited = folder, overwrite, option, limited
        self._kept = ""
        self._placed: bool | None = None
        self._partial: bool | None = None
        self._rows: list[Any] = []
        self._written: Written = {}
        self._results: set[str] | None = None
        self._path = folder / REPORT_FILE
        self.error: TinyllmError | None = None

    def begin(self, report: Report) -> None:
        """Where no file is in the way, have a report with no row run: the run may end before it knows its items."""
        partial = (self._folder / REPORT_FILE).exists()
        if partial and (self._overwrite or (self._folder / PARTIAL_REPORT_FILE).exists()):
            return
        if partial and not has_complete_report(self._folder):
            return
        self._placed = partial
        self._write(report, {}, partial=partial)

    def save(self, report: Report, results: Mapping[str, Result]) -> None:
        """Write what is known, if it changed; the run goes on whatever the disk says."""
        if report["rows"] == self._rows and set(results) == self._results:
            return
        self._write(report, results, partial=self._is_partial())

    def end(self, report: Report, results: Mapping[str, Result]) -> None:
        """Write the last word; `error` is why, when it cannot be written."""
        partial = self._is_partial() and not self._replaces(report)
        self._results = None
        self._write(report, results, partial=partial)
        if not partial and self.error is None:
            remove_run(self._folder, partial=True)

    def withdraw(self) -> None:
        """The run does not concern the report: take away what `begin` put there."""
        if self._placed is not None:
            remove_run(self._folder, partial=self._placed)

    def lines(self) -> list[str]:
        """Where the report is, for a person."""
        if self.error is not None:
            return [f"the report was not written: {self.error}"]
        lines = [f"report: {os.path.relpath(self._path)}"]
        if self._path.name != REPORT_FILE:
            kept = f"{os.path.relpath(self._folder / REPORT_FILE)} is"
            lines.append(f"{self._kept}, and {kept}: it was left as it was ({self._option} replaces it)")
        return lines

    def _replaces(self, report: Report) -> bool:
        if not report["complete"]:
            self._kept = "this run is not complete"
            return False
        self._kept = "this run is not of all items"
        return not (self._limited and has_complete_report(self._folder, limited=False))

    def _is_partial(self) -> bool:
        if self._partial is None:
            self._partial = not self._overwrite and self._placed is not False and has_complete_report(self._folder)
        return self._partial

    def _write(self, report: Report, results: Mapping[str, Result], *, partial: bool) -> None:
        try:
            if set(results) == self._results:
                self._path = write_report_alone(self._folder, report, partial=partial, written=self._written)
            else:
                self._path = write_run(self._folder, report, results, partial=partial, written=self._written)
            self.error = None
        except TinyllmError as error:
            self.error, self._results = error, None
            return
        self._rows, self._results = report["rows"], set(results)
