"""``tinyllm eval``: perplexity of one model, a suite, or one or two models on a task, without a manifest."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyllm.cli.progress import bar
from tinyllm.errors import UsageError
from tinyllm.metrics import METRICS, TEXT_METRICS
from tinyllm.report.reportfile import ReportFile
from tinyllm.report.rows import Row, passes
from tinyllm.report.store import check_writable, write_run
from tinyllm.report.table import number, table_lines

if TYPE_CHECKING:
    from tinyllm.result import Result

TEXT_OPTIONS = ("data", "layout", "vocab_size", "ctx_len", "stride")


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "eval",
        help="score models",
        description="One of: eval ppl --model DIR --data FILE; eval --suite NAME; eval --model DIR --task FILE.jsonl.",
    )
    parser.add_argument(
        "what", nargs="?", choices=("ppl",), help="ppl: perplexity and bits per byte of one model on one text"
    )
    parser.add_argument("--suite", metavar="NAME", help="a manifest: evals/NAME.toml, or its path")
    parser.add_argument(
        "--model", metavar="DIR", action="append", default=[], type=Path, help="a checkpoint; two to compare"
    )
    parser.add_argument("--data", metavar="FILE", help="a token file, or text:NAME/SPLIT for a built-in text")
    parser.add_argument("--layout", choices=("tinyllm", "llm.c", "nanogpt"), help="of a token file (default: tinyllm)")
    parser.add_argument("--vocab-size", type=int, metavar="V", help="of a token file whose layout does not say it")
    parser.add_argument("--task", metavar="FILE.jsonl", type=Path, help="a multiple-choice file")
    parser.add_argument("--metric", choices=("acc", "acc_norm"), help="of a task (default: acc)")
    parser.add_argument("--ctx-len", type=int, metavar="C", help="tokens a window (default: the model's context)")
    parser.add_argument("--stride", type=int, metavar="S", help="tokens between windows, 1 <= S < C (default: C // 2)")
    parser.add_argument(
        "--max-len", type=int, metavar="N", help="tokens of context plus choice (default: the model's context)"
    )
    parser.add_argument("--seed", type=int, help="of the run's random streams (default: the manifest's, or 0)")
    parser.add_argument(
        "--report", metavar="DIR", type=Path, help="write report.json and items.safetensors (suite: eval-report)"
    )
    parser.add_argument("--limit", metavar="N|0.1", help="suite: score N items of each row, or a share of them")
    parser.add_argument(
        "--overwrite", action="store_true", default=None, help="suite: an unfinished run replaces a complete report"
    )
    parser.add_argument(
        "--undecided", choices=("fail", "warn"), default="fail", help="what an undecided gate counts as"
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the form that was asked for."""
    if options.what == "ppl":
        _only(options, "eval ppl", set(TEXT_OPTIONS))
        return _perplexity(options)
    if options.suite is not None:
        _only(options, "eval --suite", {"suite", "seed", "report", "limit", "overwrite"})
        return _suite(options)
    if options.task is not None:
        _only(options, "eval --task", {"task", "metric", "max_len", "seed", "report"})
        return _task(options)
    raise UsageError(
        "tinyllm eval needs ppl with --model and --data, --suite NAME, or --model and --task; see tinyllm eval --help"
    )


def _only(options: argparse.Namespace, form: str, used: set[str]) -> None:
    every = {*TEXT_OPTIONS, "suite", "task", "metric", "max_len", "seed", "report", "limit", "overwrite"}
    wrong = [key for key in sorted(every - used) if getattr(options, key) is not None]
    if form == "eval --suite" and options.model:
        wrong.append("model")
    if wrong:
        raise UsageError(f"tinyllm {form} does not take --{wrong[0].replace('_', '-')}")


def _models(options: argparse.Namespace, most: int) -> list[Path]:
    if not 1 <= len(options.model) <= most:
        raise UsageError(f"--model must be given {'once' if most == 1 else 'once or twice'}, got {len(options.model)}")
    return list(options.model)


def _entry(name: str, model: Path, keys: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in keys.items() if value is not None}
    return {"name": name, "dir": str(model.absolute()), **given}


def _perplexity(options: argparse.Namespace) -> int:
    from tinyllm.eval.zoo import evaluate_manifest

    (model,) = _models(options, 1)
    if options.data is None:
        raise UsageError("tinyllm eval ppl needs --data FILE")
    keys = {key: getattr(options, key) for key in TEXT_OPTIONS} | {"metric": "ppl"}
    manifest = {"suite": {"name": "ppl"}, "entry": [_entry("model", model, keys)]}
    _check_arguments(manifest)
    report, results = evaluate_manifest(manifest, None, on_row=lambda _: bar(model.name))
    (row,) = report["rows"]
    if row["status"] != "ok":
        print(f"tinyllm: {model}: {row['error']['type']}: {row['error']['message']}", file=sys.stderr)
        return 1
    numbers = _text_numbers(row, results["model"])
    if options.json:
        print(json.dumps(numbers, allow_nan=False))
        return 0
    for name in TEXT_METRICS:
        if name in numbers:
            lo, hi = numbers[f"{name}_lo"], numbers[f"{name}_hi"]
            interval = "no interval" if lo is None or hi is None else f"[{number(lo)}, {number(hi)}]"
            print(f"{name}  {number(numbers[name])}  {interval}  {METRICS[name].unit}")
    settings = ", ".join(f"{key} {value}" for key, value in row["settings"].items())
    print(f"n    {row['n']:,} tokens{', ' if settings else ''}{settings}")
    return 0


def _text_numbers(row: Row, result: Result) -> dict[str, Any]:
    """``nll, nll_lo, nll_hi, ppl, …, n`` as `eval_ppl` has them; an end that does not exist is null."""
    out: dict[str, Any] = {}
    for name in TEXT_METRICS:
        n_bytes = row["notes"]["n_bytes"]
        if name == "bpb" and not n_bytes:
            continue
        ends = METRICS[name].estimate(result.per_item, n_bytes)
        keys = (name, f"{name}_lo", f"{name}_hi")
        out |= {key: end if abs(end) != float("inf") else None for key, end in zip(keys, ends, strict=True)}
    return {**out, "n": result.n}


def find_suite(name: str) -> Path:
    """The manifest that a suite's name stands for: a path as it is, else ``evals/NAME.toml``."""
    path = Path(name)
    if path.suffix in (".toml", ".json"):
        return path
    return Path("evals", f"{name}.toml")


def _suite(options: argparse.Namespace) -> int:
    from tinyllm.eval.limit import parse_limit
    from tinyllm.eval.zoo import evaluate_manifest
    from tinyllm.formats.manifest import load

    path = find_suite(options.suite)
    seed = load(path).seed if options.seed is None else options.seed
    limit = None if options.limit is None else parse_limit(options.limit)
    folder = options.report or Path("eval-report")
    check_writable(folder)
    file = ReportFile(folder, overwrite=bool(options.overwrite), option="--overwrite", limited=limit is not None)
    begun = False

    def save(report: dict[str, Any], results: dict[str, Result]) -> None:
        nonlocal begun
        file.save(report, results) if begun else file.begin(report)
        begun = True

    report, results = evaluate_manifest(path, None, seed, limit=limit, on_row=bar, on_report=save)
    file.end(report, results)
    _print_report(report, as_json=options.json)  # before what was wrong with the file: it does not cost the numbers
    if file.error is not None:
        raise file.error
    for line in file.lines():
        print(line, file=sys.stderr if options.json else sys.stdout)
    return _status(report["rows"], options.undecided)


def _task(options: argparse.Namespace) -> int:
    from tinyllm.eval.comparison import compare_rows
    from tinyllm.eval.zoo import evaluate_manifest

    models = _models(options, 2)
    names = _names(models)
    keys = {"choices": str(options.task.absolute()), "metric": options.metric, "max_len": options.max_len}
    entries = [_entry(name, model, keys) for name, model in zip(names, models, strict=True)]
    if options.report is not None:
        check_writable(options.report)
    seed = options.seed or 0
    suite = _slug(options.task.name.split(".")[0], "task")
    manifest = {"suite": {"name": suite, "seed": seed}, "entry": entries}
    _check_arguments(manifest)
    report, results = evaluate_manifest(manifest, None, seed, on_row=bar)
    _print_report(report, as_json=options.json)
    if options.report is not None:
        write_run(options.report, report, results)
    if len(results) == 2 and not options.json:
        a, b = report["rows"]
        found = compare_rows(a, results[names[0]], b, results[names[1]])
        print(
            f"{names[0]} − {names[1]}: {found.delta:+.4f}, p = {found.p:.4g} (paired permutation test, n = {found.n:,})"
        )
    return 0 if len(results) == len(models) else 1  # each was asked for by name: none may be skipped


def _names(models: list[Path]) -> list[str]:
    stems = [model.resolve().name.removesuffix(".safetensors") for model in models]
    names = [_slug(stem, "model") for stem in stems]
    return [f"{name}-{i + 1}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _slug(stem: str, otherwise: str) -> str:
    """A file's name as the name of a row or a suite; `otherwise` where nothing of it can stand in one."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:60].strip("-") or otherwise


def _check_arguments(manifest: dict[str, Any]) -> None:
    """A value that no entry of a manifest could have was given as an argument: say so by the argument's name."""
    from tinyllm.formats.manifest import BrokenEntry, load

    for entry in load(manifest).entries:
        if isinstance(entry, BrokenEntry):
            _, _, key = entry.error.where.partition(" of ")[0].rpartition(".")
            raise UsageError(f"--{key.replace('_', '-')} {entry.error.reason}")


def _print_report(report: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report, allow_nan=False))  # in ASCII: JSON on a stream of any encoding
        return
    for line in table_lines(report["rows"]):
        print(line)


def _status(rows: list[Row], undecided: str) -> int:
    return 0 if all(passes(row, undecided=undecided) for row in rows) else 1
