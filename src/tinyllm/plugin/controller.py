"""The reporting side of the plugin: it gathers the rows that items send, and writes one report, from one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from tinyllm.errors import TinyllmError
from tinyllm.formats.manifest import Manifest
from tinyllm.plugin.options import Options
from tinyllm.plugin.wire import unpack
from tinyllm.report.assemble import report_document, run_facts
from tinyllm.report.rows import Row, missing_row
from tinyllm.report.store import REPORT_FILE, check_writable, write_run
from tinyllm.report.table import table_lines
from tinyllm.result import Result
from tinyllm.rng import PCG32


class Controller:
    """Registered as a plugin where the report is written: in the only process, or in xdist's controller.

    Parameters
    ----------
    config, options
        Of the run.
    manifest
        Reads the manifest (once); not called in a run that does not concern it.
    """

    def __init__(self, config: pytest.Config, options: Options, manifest: Callable[[], Manifest]) -> None:
        self._config, self._options, self._manifest = config, options, manifest
        self._started = datetime.now(UTC)
        self._dry = bool(config.option.collectonly or config.getoption("setuponly", default=False))
        self._ids: set[str] = set()
        self._tests: set[str] = set()
        self._workers: set[str] = set()
        self._rows: dict[str, Row] = {}
        self._results: dict[str, Result] = {}
        self._written: list[Row] | None = None
        self._fault = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Read the manifest before anything runs; its own faults end the run with exit status 4."""
        if not self._options.active:
            return
        self._manifest()
        try:
            if not self._dry:
                check_writable(self._options.report)
        except TinyllmError as error:
            raise pytest.UsageError(f"{error}; choose another with --tinyllm-report") from error

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Iterable[str]) -> None:
        """Under xdist only the workers know what was selected."""
        self._workers.add(node.gateway.id)
        self._ids.update(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """In one process the items are here."""
        self._ids.update(str(item.nodeid) for item in session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the rows off a report, and learn which tests stand for entries."""
        if entry := getattr(report, "tinyllm_entry", ""):
            self._tests.add(str(report.nodeid).removesuffix(f"[{entry}]"))
        for text in getattr(report, "tinyllm", ()):
            row, result = unpack(text)
            self._rows[row["name"]] = row
            if result is not None:
                self._results[row["name"]] = result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, if an entry was scored or its item begun."""
        if self._dry or not (self._tests or self._rows):
            return
        report = self._report()
        self._written = report["rows"]
        try:
            write_run(self._options.report, report, self._results)
        except TinyllmError as error:  # after hours of work: the table is still shown
            self._fault = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _report(self) -> dict[str, Any]:
        manifest = self._manifest()
        names = [entry.name for entry in manifest.entries]
        for name in names:
            selected = any(f"{test}[{name}]" in self._ids for test in self._tests)
            self._rows.setdefault(name, missing_row(name, selected=selected))
        run = run_facts(
            self._started,
            base_key=PCG32(manifest.seed).next_u64(),
            manifest=os.path.relpath(manifest.path) if manifest.path else None,
            workers=len(self._workers),
        )
        return report_document(suite=manifest.name, seed=manifest.seed, names=names, rows=self._rows, run=run)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, and where the report is."""
        if self._written is None:
            return
        terminalreporter.section(self._manifest().name)
        for line in table_lines(self._written):
            terminalreporter.line(line)
        if self._fault:
            terminalreporter.line(f"the report was not written: {self._fault}", red=True)
        else:
            terminalreporter.line(f"report: {os.path.relpath(self._options.report / REPORT_FILE)}")
