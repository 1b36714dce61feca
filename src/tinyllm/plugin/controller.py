"""The reporting side of the plugin: it gathers the rows that items send, and writes one report, from one process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tinyllm.errors import TinyllmError
from tinyllm.formats.manifest import Manifest
from tinyllm.plugin.options import Options
from tinyllm.plugin.wire import unpack
from tinyllm.report.assemble import report_document, run_facts
from tinyllm.report.rows import Row, missing_row
from tinyllm.report.store import REPORT_FILE, write_run
from tinyllm.report.table import table_lines
from tinyllm.result import Result
from tinyllm.rng import PCG32


def check_writable(folder: Path) -> None:
    """Refuse a report folder that cannot be written to, before hours are spent.

    Raises
    ------
    pytest.UsageError
        With the folder and the system's reason.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"the report folder {folder} cannot be written to: {error.strerror}; choose another with --tinyllm-report"
        raise pytest.UsageError(msg) from error


class Controller:
    """Registered as a plugin where the report is written: in the only process, or in xdist's controller."""

    def __init__(self, config: pytest.Config, options: Options, manifest: Manifest) -> None:
        self._config, self._options, self._manifest = config, options, manifest
        self._started = datetime.now(UTC)
        self._selected: set[str] = set()
        self._workers: set[str] = set()
        self._rows: dict[str, Row] = {}
        self._results: dict[str, Result] = {}
        self._written: list[Row] | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Iterable[str]) -> None:
        """Under xdist only the workers know what was selected."""
        self._workers.add(node.gateway.id)
        self._select(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """In one process the items are here."""
        self._select(item.nodeid for item in session.items)

    def _select(self, ids: Iterable[str]) -> None:
        ends = {f"[{entry.name}]": entry.name for entry in self._manifest.entries}
        self._selected.update(name for nodeid in ids for end, name in ends.items() if nodeid.endswith(end))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the rows off a report."""
        for text in getattr(report, "tinyllm", ()):
            row, result = unpack(text)
            self._rows[row["name"]] = row
            if result is not None:
                self._results[row["name"]] = result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the report, if any entry was selected or scored."""
        if self._config.option.collectonly or not (self._selected or self._rows):
            return
        names = [entry.name for entry in self._manifest.entries]
        for name in names:
            self._rows.setdefault(name, missing_row(name, selected=name in self._selected))
        run = run_facts(
            self._started,
            base_key=PCG32(self._manifest.seed).next_u64(),
            manifest=os.path.relpath(self._manifest.path) if self._manifest.path else None,
            workers=len(self._workers),
        )
        report = report_document(
            suite=self._manifest.name, seed=self._manifest.seed, names=names, rows=self._rows, run=run
        )
        try:
            write_run(self._options.report, report, self._results)
        except TinyllmError as error:
            raise pytest.UsageError(str(error)) from error
        self._written = report["rows"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, and where the report is."""
        if self._written is None:
            return
        terminalreporter.section(self._manifest.name)
        for line in table_lines(self._written):
            terminalreporter.line(line)
        terminalreporter.line(f"report: {os.path.relpath(self._options.report / REPORT_FILE)}")
