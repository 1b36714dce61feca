"""``tinyllm plan MANIFEST``: what a run would read, hold and take, without the run."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyllm.cli.evaluate import find_suite
from tinyllm.report.table import aligned

if TYPE_CHECKING:
    from tinyllm.eval.plan import RowPlan

COLUMNS = ("row", "metric", "n", "calls", "tokens read", "cut", "memory", "time", "")
RIGHT = {"n", "calls", "tokens read", "cut", "memory", "time"}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "plan",
        help="what a manifest's rows will take: items, tokens, memory, time",
        description="A dry run: checkpoints are loaded, data is opened and cut; only a probe of a few calls a row is "
        "computed, and timed. Exit status 1 when a row is an error, one with a gate is skipped, or none can be scored.",
    )
    parser.add_argument("manifest", metavar="MANIFEST", help="evals/NAME.toml by its NAME, or a path")
    parser.add_argument(
        "--probe", metavar="N", type=int, default=3, help="calls to time a row; 0: no time estimate (default: 3)"
    )
    parser.add_argument("--limit", metavar="N|0.1", help="of a run with such a limit (default: all items)")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plan every row and print."""
    from tinyllm.eval.checkpoints import Checkpoints
    from tinyllm.eval.limit import Limit, parse_limit
    from tinyllm.eval.plan import plan_entry
    from tinyllm.eval.zoo import loader
    from tinyllm.formats.manifest import Entry, load
    from tinyllm.rng import PCG32

    if options.probe < 0:
        raise ValueError(f"--probe must be at least 0, got {options.probe}")
    path: Path = find_suite(options.manifest)
    suite = load(path)
    limit = None if options.limit is None else Limit(parse_limit(options.limit), PCG32(suite.seed).next_u64())
    remembered = Checkpoints(loader(suite.code))
    needed = Counter(entry.dir for entry in suite.entries if isinstance(entry, Entry))
    plans: list[RowPlan] = []
    for entry in suite.entries:
        plans.append(plan_entry(entry, load=remembered, limit=limit, probe_calls=options.probe))
        if isinstance(entry, Entry):
            needed[entry.dir] -= 1
            if not needed[entry.dir]:
                remembered.forget(entry.dir)
    if options.json:
        print(json.dumps({"suite": suite.name, "rows": list(map(asdict, plans))}, allow_nan=False))
    else:
        for line in plan_lines(plans):
            print(line)
    gated = {entry.name for entry in suite.entries if entry.gated}
    red = (plan.status == "error" or (plan.status == "skipped" and plan.name in gated) for plan in plans)
    return 1 if any(red) or all(plan.status != "ok" for plan in plans) else 0


def plan_lines(plans: Sequence[RowPlan]) -> Iterator[str]:
    """The table, its sums, and what they leave out."""
    yield from aligned([COLUMNS, *map(_cells, plans)], RIGHT)
    ready = [plan for plan in plans if plan.status == "ok"]
    times = [plan.time_s for plan in ready if plan.time_s is not None]
    took = f", about {_seconds(sum(times))} of scoring in one process" if times else ""
    most = max((plan.memory_bytes or 0 for plan in ready), default=0)
    yield (
        f"{len(ready)} of {len(plans)} rows can be scored: {sum(plan.tokens or 0 for plan in ready):,} tokens{took}, "
        f"at most {_bytes(most)} a row besides Python and torch"
    )


def _cells(plan: RowPlan) -> tuple[str, ...]:
    numbers = ("–" if value is None else f"{value:,}" for value in (plan.n, plan.calls, plan.tokens, plan.n_truncated))
    memory = "–" if plan.memory_bytes is None else _bytes(plan.memory_bytes)
    took = "–" if plan.time_s is None else _seconds(plan.time_s)
    why = "" if plan.error is None else f"{plan.status}: {plan.error.splitlines()[0]}"
    return (plan.name, plan.metric or "–", *numbers, memory, took, why)


def _bytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB" if count >= 2**20 else "< 1 MiB"


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "< 0.1 s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
