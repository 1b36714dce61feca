"""What the plugin is told: options, their ini twins, and whether a run concerns evaluations at all.

The plugin is imported in every pytest run of its environment. It does nothing in a run that does not reach the
manifest's folder, unless a manifest is named on the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from tinyllm.errors import UsageError
from tinyllm.eval.limit import parse_limit

DEFAULT_MANIFEST = "evals/zoo.toml"
DEFAULT_REPORT = "eval-report"


@dataclass(frozen=True)
class Options:
    """The settings of one run.

    Attributes
    ----------
    manifest
        The manifest's path, or None where none was named and the default does not exist.
    report
        The folder that the report is written to.
    undecided
        ``fail`` or ``warn``: what becomes of a gate whose interval straddles the bound.
    overwrite
        Whether a run that is not complete replaces a complete report.
    baseline, save_baseline
        The names of the baseline to hold the run against, and of the one to save it as; empty for none.
    baseline_asked
        Whether the command line named either: a run that then has nothing to compare does not pass.
    limit
        How many items of each row are scored, or which share of them; None for all.
    active
        Whether this run concerns the manifest's evaluations.
    whole
        Whether it selects all of their tests, as far as the command line says.
    """

    manifest: Path | None
    report: Path
    undecided: str
    overwrite: bool
    baseline: str
    save_baseline: str
    baseline_asked: bool
    limit: int | Fraction | None
    active: bool
    whole: bool


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini twin."""
    group = parser.getgroup("tinyllm", "language-model evaluation")
    group.addoption(
        "--tinyllm-manifest",
        metavar="PATH",
        help=f"the manifest of evaluations (ini: tinyllm_manifest; {DEFAULT_MANIFEST})",
    )
    group.addoption(
        "--tinyllm-report",
        metavar="DIR",
        help=f"the folder the report is written to (ini: tinyllm_report; {DEFAULT_REPORT})",
    )
    group.addoption(
        "--tinyllm-undecided",
        choices=("fail", "warn"),
        help="what becomes of a gate whose interval straddles its bound (ini: tinyllm_undecided; fail)",
    )
    group.addoption(
        "--tinyllm-overwrite",
        action="store_true",
        default=None,
        help="let a run that is not complete replace a complete report (ini: tinyllm_overwrite; off)",
    )
    group.addoption(
        "--tinyllm-baseline",
        metavar="NAME",
        help="fail for rows worse than this stored run's: NAME (its newest) or NAME/0001 (ini: tinyllm_baseline)",
    )
    group.addoption(
        "--tinyllm-save-baseline",
        metavar="NAME",
        help="store this run as the next number of a baseline, baselines/NAME/ beside the manifest",
    )
    group.addoption(
        "--tinyllm-limit",
        metavar="N|0.1",
        help="score N items of each row, or a share of them: always the same ones (ini: tinyllm_limit; all)",
    )
    parser.addini("tinyllm_limit", "how many items of each row are scored, or which share of them", default="")
    parser.addini("tinyllm_baseline", "the stored run that rows must not be worse than", default="")
    parser.addini("tinyllm_manifest", "the manifest of evaluations", default="")
    parser.addini("tinyllm_report", "the folder the report is written to", default=DEFAULT_REPORT)
    parser.addini("tinyllm_overwrite", "let a run that is not complete replace a complete report", "bool", False)
    parser.addini("tinyllm_undecided", "fail or warn, for a gate whose interval straddles its bound", default="fail")


def read_options(config: pytest.Config) -> Options:
    """The settings: an option is relative to where pytest was started, an ini value to the root folder.

    Raises
    ------
    pytest.UsageError
        For a value of ``tinyllm_undecided`` that is neither fail nor warn, and for a limit that is none.
    """
    for name in ("manifest", "report", "baseline", "save_baseline", "limit"):
        if config.getoption(f"tinyllm_{name}") == "":
            option = f"--tinyllm-{name.replace('_', '-')}"
            msg = f"{option} must not be empty: that is what a shell makes of a variable that is not set"
            if name in ("baseline", "limit"):
                msg += f"; to leave an ini line out say -o tinyllm_{name}="
            raise pytest.UsageError(msg)
    named = _path(config, "manifest")
    manifest = named or config.rootpath / DEFAULT_MANIFEST
    report = _path(config, "report")
    undecided = config.getoption("tinyllm_undecided") or config.getini("tinyllm_undecided")
    if undecided not in ("fail", "warn"):
        msg = f"tinyllm_undecided must be fail or warn, got {undecided!r}"
        raise pytest.UsageError(msg)
    exists = named is not None or manifest.is_file()
    active = config.getoption("tinyllm_manifest") is not None or (exists and _reaches(config, manifest.parent))
    options = [config.getoption(f"tinyllm_{name}") for name in ("baseline", "save_baseline")]
    baseline, save_baseline = options
    if any(options) and not active:
        msg = "--tinyllm-baseline and --tinyllm-save-baseline need a run that reaches the evaluations, as pytest evals/"
        raise pytest.UsageError(f"{msg}; name their manifest with --tinyllm-manifest")
    limit = config.getini("tinyllm_limit") if config.getoption("tinyllm_limit") is None else config.option.tinyllm_limit
    try:
        most = parse_limit(limit) if limit else None
    except UsageError as error:
        raise pytest.UsageError(f"tinyllm_limit: {error}") from error
    return Options(
        manifest=manifest if exists else None,
        report=report or config.rootpath / DEFAULT_REPORT,
        undecided=undecided,
        overwrite=bool(config.getoption("tinyllm_overwrite") or config.getini("tinyllm_overwrite")),
        baseline=config.getini("tinyllm_baseline") if baseline is None else baseline,
        save_baseline=save_baseline or "",
        baseline_asked=any(options),
        limit=most,
        active=active,
        whole=active and not _selects(config) and _covers(config, manifest.parent),
    )


def _path(config: pytest.Config, name: str) -> Path | None:
    option = config.getoption(f"tinyllm_{name}")
    if option is not None:
        return Path(config.invocation_params.dir, option)
    ini = config.getini(f"tinyllm_{name}")
    return config.rootpath / ini if ini else None


SELECTING = ("keyword", "markexpr", "deselect", "lf", "stepwise", "ignore", "ignore_glob")
"""pytest's options that leave tests out."""


def _selects(config: pytest.Config) -> bool:
    return any(config.getoption(option, default=None) for option in SELECTING)


def _covers(config: pytest.Config, folder: Path) -> bool:
    """Whether an argument of the run is the folder, or one that it lies in."""
    target = folder.resolve()
    args = [Path(config.invocation_params.dir, str(arg)).resolve() for arg in config.args]
    return any(path == target or path in target.parents for path in args)


def _reaches(config: pytest.Config, folder: Path) -> bool:
    target = folder.resolve()
    for arg in config.args:
        path = Path(config.invocation_params.dir, str(arg).split("::")[0]).resolve()
        if path == target or path in target.parents or target in path.parents:
            return True
    return False
