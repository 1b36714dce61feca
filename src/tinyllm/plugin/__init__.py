"""The pytest plugin: hooks of a few lines over two objects, `Evaluations` (scores) and `Controller` (reports).

``pytest evals/ -n auto`` is the eval run. A test that asks for ``zoo_entry`` becomes one item per manifest entry;
``evaluate`` and ``checkpoint`` are for evals in plain Python. Imported in every pytest run: no torch at import, nothing
done in a run that does not concern evaluations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tinyllm.errors import TinyllmError, UnknownFamilyError, UsageError
from tinyllm.formats.manifest import BrokenEntry, Manifest, load
from tinyllm.plugin import hookspecs
from tinyllm.plugin.controller import Controller
from tinyllm.plugin.evaluations import SENT, Evaluate, Evaluation, Evaluations, UndecidedGateWarning
from tinyllm.plugin.items import entry_of, why_no_row
from tinyllm.plugin.journal import Journal, Recorder
from tinyllm.plugin.options import DEFAULT_MANIFEST, Options, add_options, read_options

__all__ = ["Evaluate", "Evaluation", "UndecidedGateWarning"]

OPTIONS = pytest.StashKey[Options]()
EVALUATIONS = pytest.StashKey[Evaluations]()
NO_MANIFEST = pytest.StashKey[pytest.UsageError]()
KEEP_MODELS = pytest.StashKey[bool]()
RECORDER = pytest.StashKey[Recorder]()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others implement."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    """With ``-n``, have idle workers steal: items of one checkpoint stay together, and it is loaded once a worker."""
    asked = getattr(config.option, "numprocesses", None)
    if asked and config.option.dist == "no" and _options(config).active:
        config.option.dist = "worksteal"
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Have one process report: the only one, or xdist's controller."""
    options = _options(config)
    if options.active:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # inherited by workers; torch's own count is set while scoring
        config.option.continue_on_collection_errors = True  # as xdist does: one bad file loses no other's rows
    if hasattr(config, "workerinput"):
        if "tinyllm_journal" in config.workerinput:
            folder, run_id = config.workerinput["tinyllm_journal"]
            config.stash[RECORDER] = Journal(Path(folder), run_id, config.workerinput["workerid"])
        return
    controller = Controller(config, options, lambda: _evaluations(config).manifest)
    config.pluginmanager.register(controller, "tinyllm-controller")
    if not getattr(config.option, "tx", None):  # in one process it is told directly; xdist's controller scores nothing
        config.stash[RECORDER] = controller
    if options.active:
        _let_every_row_crash(config)


def _let_every_row_crash(config: pytest.Config) -> None:
    """Have xdist replace a crashed worker once a row, beyond what it does by itself; read when xdist configures."""
    workers = getattr(config.option, "numprocesses", None)
    if not workers or config.option.maxworkerrestart is not None:
        return
    try:
        rows = len(_evaluations(config).manifest.entries)
    except pytest.UsageError:  # said when the session starts; --help works without a manifest
        return
    config.option.maxworkerrestart = str(4 * workers + rows)


def _options(config: pytest.Config) -> Options:
    if OPTIONS not in config.stash:
        config.stash[OPTIONS] = read_options(config)
    return config.stash[OPTIONS]


def _evaluations(config: pytest.Config) -> Evaluations:
    if EVALUATIONS not in config.stash:
        options = _options(config)
        if options.manifest is None:
            msg = f"no manifest: {config.rootpath / DEFAULT_MANIFEST} does not exist; name one with --tinyllm-manifest"
            raise pytest.UsageError(msg)
        try:
            manifest: Manifest = load(options.manifest)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error
        recorder = config.stash.get(RECORDER, None)
        config.stash[EVALUATIONS] = Evaluations(manifest, options.undecided, recorder, limit=options.limit)
    return config.stash[EVALUATIONS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item per manifest entry, its checkpoint a session-scoped parameter, by which pytest groups the items."""
    if "zoo_entry" not in metafunc.fixturenames:
        return
    try:
        entries = _evaluations(metafunc.config).manifest.entries
    except pytest.UsageError as error:
        if hasattr(metafunc.config, "workerinput"):
            raise
        metafunc.config.stash[NO_MANIFEST] = error  # raised when all is collected: here pytest would show a trace
        metafunc.parametrize("zoo_entry", [], scope="session")
        return
    names, indirect = ["zoo_entry"], []
    if "zoo_checkpoint" in metafunc.fixturenames:
        names, indirect = ["zoo_entry", "zoo_checkpoint"], ["zoo_checkpoint"]
    params = []
    for entry in entries:
        checkpoint = None if isinstance(entry, BrokenEntry) else entry.dir
        values = [entry, checkpoint] if indirect else [entry]
        params.append(pytest.param(*values, id=entry.name))
    metafunc.parametrize(names, params, indirect=indirect, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Models stay loaded where one may be asked for after the items that are grouped by it are done.

    By an eval that is not grouped, or by an item that a worker steals.
    """
    if NO_MANIFEST in config.stash:
        raise config.stash[NO_MANIFEST]
    asked = (set(getattr(item, "fixturenames", ())) for item in items)
    ungrouped = any("zoo_checkpoint" not in names and names & {"evaluate", "checkpoint"} for names in asked)
    config.stash[KEEP_MODELS] = ungrouped or hasattr(config, "workerinput")


def pytest_collection_finish(session: pytest.Session) -> None:
    """A worker says which items stand for entries: to the controller their node ids are words."""
    recorder = session.config.stash.get(RECORDER, None)
    if isinstance(recorder, Journal):
        recorder.collected({str(item.nodeid): entry.name for item in session.items if (entry := entry_of(item))})


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A worker marks the entry whose item begins: its word to the controller may not be heard when the run ends now."""
    recorder, entry = item.config.stash.get(RECORDER, None), entry_of(item)
    if isinstance(recorder, Journal) and entry is not None:
        recorder.began(entry.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send an item's rows with its report, each as one string, and the entry that the item stands for."""
    report = yield
    if entry := entry_of(item):
        report.tinyllm_entry = entry.name  # type: ignore[attr-defined]
        report.tinyllm_why = why_no_row(report, call)  # type: ignore[attr-defined]
    sent = item.stash.get(SENT, [])
    if sent:
        report.tinyllm = list(sent)  # type: ignore[attr-defined]
        sent.clear()
    return report


@pytest.fixture(scope="session")
def zoo_checkpoint(request: pytest.FixtureRequest) -> Generator[Path | None, None, None]:
    """The folder of an entry's checkpoint; when its items are done, its model is let go."""
    if not hasattr(request, "param"):
        msg = "zoo_checkpoint goes with zoo_entry: a test asks for both, and runs once an entry"
        raise pytest.UsageError(msg)
    path: Path | None = request.param
    yield path
    if path is not None and not request.config.stash[KEEP_MODELS]:
        _evaluations(request.config).release(path)


@pytest.fixture
def evaluate(request: pytest.FixtureRequest) -> Evaluate:
    """``evaluate("gpt")`` scores a manifest entry; ``evaluate.compare("gpt", "bigram").p`` compares two."""
    return Evaluate(request.node, _evaluations(request.config))


@pytest.fixture(scope="session")
def checkpoint(request: pytest.FixtureRequest) -> Generator[Callable[[str], Any], None, None]:
    """``checkpoint("gpt")`` is the loaded model of a manifest entry, loaded at most once a process.

    Torch has one thread from here on: what a test makes of a model must not differ with the mode of the run.
    """
    from tinyllm.scoring.threads import one_thread

    evaluations = _evaluations(request.config)

    def load_checkpoint(name: str) -> Any:
        __tracebackhide__ = True
        entry = evaluations.entry(name)
        try:
            if isinstance(entry, BrokenEntry):
                raise entry.error
            from tinyllm.eval.checkpoints import load_pinned

            return load_pinned(entry, evaluations.checkpoints)[0]
        except UnknownFamilyError as error:
            pytest.skip(f"{name}: {error}")
        except TinyllmError as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}", pytrace=False)

    with one_thread():
        yield load_checkpoint
