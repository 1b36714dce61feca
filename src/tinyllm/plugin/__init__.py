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

from tinyllm.errors import UsageError
from tinyllm.formats.manifest import BrokenEntry, Manifest, load
from tinyllm.plugin.controller import Controller, check_writable
from tinyllm.plugin.evaluations import SENT, Evaluate, Evaluation, Evaluations, UndecidedGateWarning
from tinyllm.plugin.options import DEFAULT_MANIFEST, Options, add_options, read_options

__all__ = ["Evaluate", "Evaluation", "UndecidedGateWarning"]

OPTIONS = pytest.StashKey[Options]()
EVALUATIONS = pytest.StashKey[Evaluations]()


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
    """Read the manifest before anything runs; its own faults end the run with exit status 4."""
    options = _options(config)
    if not options.active:
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # inherited by workers; torch's own count is set while scoring
    manifest = _evaluations(config).manifest
    if not hasattr(config, "workerinput"):
        if not config.option.collectonly:
            check_writable(options.report)
        config.pluginmanager.register(Controller(config, options, manifest), "tinyllm-controller")


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
        config.stash[EVALUATIONS] = Evaluations(manifest, options.undecided)
    return config.stash[EVALUATIONS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item per manifest entry, its checkpoint a session-scoped parameter, by which pytest groups the items."""
    if "zoo_entry" not in metafunc.fixturenames:
        return
    entries = _evaluations(metafunc.config).manifest.entries
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
    """Models stay loaded when an eval in plain Python may ask for one after its own items are done."""
    plain = (set(getattr(item, "fixturenames", ())) for item in items)
    if any("zoo_entry" not in names and names & {"evaluate", "checkpoint"} for names in plain):
        _evaluations(config).keep_models = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send an item's rows with its report, each as one string."""
    report = yield
    sent = item.stash.get(SENT, [])
    if sent:
        report.tinyllm = list(sent)  # type: ignore[attr-defined]
        sent.clear()
    return report


@pytest.fixture(scope="session")
def zoo_checkpoint(request: pytest.FixtureRequest) -> Generator[Path | None, None, None]:
    """The folder of an entry's checkpoint; when its items are done, its model is let go."""
    path: Path | None = request.param
    yield path
    if path is not None:
        _evaluations(request.config).release(path)


@pytest.fixture
def evaluate(request: pytest.FixtureRequest) -> Evaluate:
    """``evaluate("gpt")`` scores a manifest entry; ``evaluate.compare("gpt", "bigram").p`` compares two."""
    return Evaluate(request.node, _evaluations(request.config))


@pytest.fixture(scope="session")
def checkpoint(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """``checkpoint("gpt")`` is the loaded model of a manifest entry, loaded at most once a process."""
    evaluations = _evaluations(request.config)

    def load_checkpoint(name: str) -> Any:
        entry = evaluations.entry(name)
        if isinstance(entry, BrokenEntry):
            raise entry.error
        return evaluations.checkpoints(entry.dir)

    return load_checkpoint
