"""The reporting side of the plugin: it gathers the rows that items send, and writes one report, from one process.

The report is on disk from the start (every row "not run", ``complete`` false), again when a row begins and when it is
there, and at the end: whatever ends the run, its report has a row for each entry that says what became of it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from tinyllm.errors import TinyllmError
from tinyllm.eval.gate import with_gates
from tinyllm.formats.manifest import Manifest
from tinyllm.plugin.crashes import how_it_ended
from tinyllm.plugin.items import entry_of
from tinyllm.plugin.journal import JOURNAL, Journal
from tinyllm.plugin.ledger import Ledger
from tinyllm.plugin.options import Options
from tinyllm.plugin.regression import Regression
from tinyllm.plugin.updates import updated_report
from tinyllm.plugin.wire import unpack
from tinyllm.report.assemble import report_document, run_facts
from tinyllm.report.reportfile import ReportFile
from tinyllm.report.rows import Row
from tinyllm.report.store import check_writable
from tinyllm.report.table import table_lines
from tinyllm.result import Result
from tinyllm.rng import PCG32

CRASHED = "WorkerCrashed"
DRY = ("collectonly", "setuponly", "showfixtures", "show_fixtures_per_test", "cacheshow")
"""pytest's options whose sessions run no test."""


class Controller:
    """Registered as a plugin where the report is written: in the only process, or in xdist's controller.

    In one process it is also the `Recorder` of the evaluations.

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
        self._dry = any(config.getoption(option, default=False) for option in DRY)
        limited = options.limit is not None
        self._file = ReportFile(
            options.report, overwrite=options.overwrite, option="--tinyllm-overwrite", limited=limited
        )
        run_id = f"{self._started.isoformat()} {os.getpid()} {secrets.token_hex(4)}"
        self._journal = Journal(options.report / JOURNAL, run_id)
        self.ledger = Ledger()
        self._regression = Regression(options)
        self._workers: set[str] = set()
        self._interrupted: set[str] = set()
        self._reason = ""
        self._hook_fault = ""
        self._deselected = False
        self._unasked: list[str] = []
        self._written: list[Row] | None = None

    # the run: start, what was selected, end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Read the manifest before anything runs; its own faults end the run with exit status 4."""
        if not self._options.active:
            return
        self._manifest()
        if self._dry:
            return
        try:
            check_writable(self._options.report)
        except TinyllmError as error:
            raise pytest.UsageError(f"{error}; choose another with --tinyllm-report") from error
        self._regression.start(self._manifest())
        self._file.begin(self._report(ended=False))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the journal is; its folder is made for the first."""
        if not self._options.active or self._dry:
            return
        if not self._workers:
            self._journal.open()
        self._workers.add(node.gateway.id)
        node.workerinput["tinyllm_journal"] = [str(self._journal.folder), self._journal.run_id]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Iterable[str]) -> None:
        """Under xdist only the workers know what was selected."""
        self._workers.add(node.gateway.id)
        self.ledger.collected(ids)
        for item, name in self._journal.entries().items():
            self.ledger.stands_for(item, name)
        self._save()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """In one process the items are here."""
        self.ledger.collected(str(item.nodeid) for item in session.items)
        for item in session.items:
            if entry := entry_of(item):
                self.ledger.stands_for(str(item.nodeid), entry.name)
        self._save()

    def pytest_deselected(self) -> None:
        """Tests were left out, by whatever plugin."""
        self._deselected = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember what could not be collected."""
        if report.failed:
            self.ledger.not_collected(str(report.nodeid))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember why the run ended."""
        message = str(excinfo.value)
        self._reason = message if message and "keyboard-interrupt" not in message else "keyboard interrupt"

    # the rows, as they come

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """An entry's item begins: should the run end now, its row says so."""
        if name := self.ledger.entry(str(nodeid)):
            self.began(name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the rows off a report, or why there is none."""
        if name := getattr(report, "tinyllm_entry", ""):
            self.ledger.stands_for(str(report.nodeid), name)
        rows = getattr(report, "tinyllm", ())
        for text in rows:
            self.ledger.arrived(*unpack(text))
        why = getattr(report, "tinyllm_why", "")
        if why:
            self.ledger.ended(name, *json.loads(why))
        crashed = str(report.when) == "???"
        if crashed:
            self._crashed(report)
        if rows or why or crashed:
            self._save()

    def began(self, name: str) -> None:
        """A row is being scored from now on."""
        self.ledger.began(name)
        self._save()

    def finished(self, row: Row, result: Result | None) -> None:
        """A row is there; its test may yet not live to report it."""
        self.ledger.arrived(row, result)
        self._save()

    def stopped(self, name: str, error_type: str, message: str) -> None:
        """The scoring of a row was broken off, and the run goes on."""
        self.ledger.ended(name, "error", error_type, message)
        self._save()

    # workers that die

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker that a keyboard interrupt ended did not crash."""
        if error == "keyboard-interrupt":
            self._interrupted.add(node.gateway.id)

    def _crashed(self, report: pytest.TestReport) -> None:
        """Take what the worker left in the journal; what it was at has crashed."""
        node = report.node
        self._take_journal()
        if node.gateway.id in self._interrupted:
            return
        message = f"the worker process ended while this row's test ran: {how_it_ended(node)}"
        marks = [name for name, worker, why in self._journal.marks() if worker == node.gateway.id and why is None]
        names = {name for name in marks if self.ledger.waits(name)}
        if entry := self.ledger.entry(str(report.nodeid)):
            names.add(entry)
        for name in names:
            self.ledger.ended(name, "error", CRASHED, message)

    def _take_journal(self) -> None:
        for row, result in self._journal.rows():
            self.ledger.arrived(row, result)
        for name, _, why in self._journal.marks():
            if not self.ledger.known(name):
                if why is None:
                    self.ledger.began(name)
                else:
                    self.ledger.ended(name, "error", *why)

    # the report

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the report, if an entry was scored or its item selected, or if nobody could find out."""
        if self._dry or not (self._options.active or self.ledger.concerned):
            return
        self._take_journal()
        self._reason = self._reason or str(session.shouldfail or session.shouldstop or "")
        lost = self.ledger.collection_failed and exitstatus != pytest.ExitCode.USAGE_ERROR
        if not (self.ledger.concerned or lost):
            self._journal.clear()
            self._file.withdraw()
            self._regression.nothing_scored(session)
            return
        report = self._regression.judge(self._report(ended=True), self.ledger.results)
        report, self._hook_fault = updated_report(self._config, report)
        self._written = report["rows"]
        self._file.end(report, self.ledger.results)
        if self._file.error is not None:  # after hours of work: the table is still shown
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        else:
            self._journal.clear()
        if self._hook_fault and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._fail_for_gates_without_a_test(session, report["rows"])
        self._regression.end(session, report, self.ledger.results)

    def _fail_for_gates_without_a_test(self, session: pytest.Session, rows: list[Row]) -> None:
        for row in rows:
            if row["gate"] is not None and row["error"] is not None and row["error"]["type"] == "NotAsked":
                self._unasked.append(f"FAILED {row['name']}: it has a gate, and {row['error']['message']}")
        if self._unasked and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _save(self) -> None:
        if self.ledger.concerned and not self._dry:
            self._file.save(self._report(ended=False), self.ledger.results)

    def _report(self, *, ended: bool) -> dict[str, Any]:
        manifest = self._manifest()
        names = [entry.name for entry in manifest.entries]
        run = run_facts(
            self._started,
            base_key=PCG32(manifest.seed).next_u64(),
            manifest=os.path.relpath(manifest.path) if manifest.path else None,
            workers=len(self._workers),
            ended=ended,
            limit=str(self._options.limit) if self._options.limit is not None else None,
        )
        whole = ended and self._options.whole and not self._deselected
        rows = with_gates(self.ledger.rows(names, self._reason, whole=whole), manifest)
        return report_document(suite=manifest.name, seed=manifest.seed, names=names, rows=rows, run=run, ended=ended)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, and where the report is."""
        if self._written is not None:
            terminalreporter.section(self._manifest().name)
            for line in table_lines(self._written):
                terminalreporter.line(line)
            for line in self._file.lines():
                terminalreporter.line(line, red=self._file.error is not None)
        for line in self._unasked:
            terminalreporter.line(line, red=True)
        if self._hook_fault:
            terminalreporter.line(f"FAILED {self._hook_fault}", red=True)
        self._regression.print_to(terminalreporter)
