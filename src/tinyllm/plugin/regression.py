"""The regression gate of a run: the baseline is read before anything runs, the rows are held against it at the end.

The verdicts are the rows' ``baseline`` in the report; what is red is printed after the table and fails the run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tinyllm.errors import TinyllmError
from tinyllm.eval.baseline import RED, hold_against, summary_lines
from tinyllm.formats.manifest import Entry, Manifest
from tinyllm.plugin.options import Options
from tinyllm.report.baselines import StoredRun, check_new_name, read_baseline, save_baseline
from tinyllm.report.rows import Row
from tinyllm.report.store import check_writable
from tinyllm.result import Result

FOLDER = "baselines"
"""Beside the manifest."""


class Regression:
    """What a run is held against and what it is saved as, either or neither.

    Parameters
    ----------
    options
        Of the run: ``baseline`` and ``save_baseline`` are names, or empty.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._root = options.manifest.parent / FOLDER if options.manifest is not None else Path(FOLDER)
        self._stored: StoredRun | None = None
        self._margins: dict[str, float | None] = {}
        self._lines: list[str] = []
        self._failed = False

    def start(self, manifest: Manifest) -> None:
        """Read the baseline, and refuse a name or a folder that the run could not be saved to.

        Raises
        ------
        pytest.UsageError
            For a baseline that is missing or harmed: nothing runs.
        """
        self._margins = {entry.name: entry.margin for entry in manifest.entries if isinstance(entry, Entry)}
        try:
            if self._options.baseline:
                self._stored = read_baseline(self._root, self._options.baseline)
            if self._options.save_baseline:
                check_new_name(self._options.save_baseline)
                check_writable(self._root / self._options.save_baseline)
        except TinyllmError as error:
            raise pytest.UsageError(str(error)) from error

    def judge(self, report: dict[str, Any], results: Mapping[str, Result]) -> dict[str, Any]:
        """The report with its rows' verdicts, once the run has ended; as it is where no baseline was named."""
        if self._stored is None:
            return report
        rows: list[Row] = report["rows"]
        verdicts = hold_against(self._stored, rows, results, self._margins)
        self._lines.extend(summary_lines(verdicts, self._stored.label))
        answers = {one["answer"] for one in verdicts.values()}
        self._failed = not answers.isdisjoint(RED)
        if answers <= {"not-selected"}:
            self._nothing_compared()
        return report | {"rows": [row | {"baseline": verdicts[row["name"]]} for row in rows]}

    def end(self, session: pytest.Session, report: Mapping[str, Any], results: Mapping[str, Result]) -> None:
        """Save the run if that was asked for; exit status 1 for a run that would be green but for its baseline."""
        if self._options.save_baseline:
            self._save(self._options.save_baseline, report, results)
        self._fail(session)

    def nothing_scored(self, session: pytest.Session) -> None:
        """The run had no entry to score: asked for a comparison, it does not pass."""
        if self._options.baseline or self._options.save_baseline:
            self._nothing_compared()
        self._fail(session)

    def _nothing_compared(self) -> None:
        if self._options.baseline_asked:  # an ini line is there for every run, and says nothing about this one
            self._lines.append("FAILED no row was scored, so nothing was compared with a baseline or saved as one")
            self._failed = True

    def _save(self, name: str, report: Mapping[str, Any], results: Mapping[str, Result]) -> None:
        if self._failed:
            self._lines.append(f"not saved as baseline {name}: the run is red against its own baseline")
            return
        try:
            folder = save_baseline(self._root, name, report, results)
        except TinyllmError as error:
            self._lines.append(f"FAILED the baseline was not saved: {error}")
            self._failed = True
            return
        self._lines.append(f"saved as baseline {name}/{folder.name}: {os.path.relpath(folder)}")
        without = [row["name"] for row in report["rows"] if row["status"] != "ok"]
        if without:
            self._lines.append(f"rows without a number, which it cannot hold anything to: {', '.join(without)}")

    def _fail(self, session: pytest.Session) -> None:
        if self._failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def print_to(self, terminal: pytest.TerminalReporter) -> None:
        """The summary's lines, below the table."""
        for line in self._lines:
            terminal.line(line, red=line.startswith("FAILED"))
