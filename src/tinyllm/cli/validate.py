"""``tinyllm validate FILE``: is a file what its format says? A reader's own words when it is not."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyllm.errors import TinyllmError, UsageError
from tinyllm.formats.choices import read_choices
from tinyllm.formats.items import read_items
from tinyllm.formats.jsonl import read_jsonl
from tinyllm.formats.labelled import read_labelled
from tinyllm.formats.lines import read_lines
from tinyllm.formats.manifest import BrokenEntry, load
from tinyllm.formats.pairs import read_pairs
from tinyllm.formats.regular import regular
from tinyllm.formats.report import read_report
from tinyllm.formats.tokens import open_tokens
from tinyllm.formats.wordpairs import read_wordpairs
from tinyllm.report.store import ITEMS_FILE, REPORT_FILE, read_run


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "validate",
        help="check a file against its format",
        description="The format is told by the file's ending and first line; exit status 1 when the file is faulty.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a file, a checkpoint folder or a report folder")
    parser.add_argument("--format", choices=tuple(CHECKS), help="check it as this, whatever it looks like")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check and say so."""
    path: Path = options.file
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    try:
        name = options.format or _guess(path)
        found = CHECKS[name](path) if name else ""
    except TinyllmError as error:
        print(f"invalid: {error}", file=sys.stderr)
        return 1
    if name is None:
        raise UsageError(f"{path}: the ending must tell the format; name it with --format: {', '.join(CHECKS)}")
    print(f"{path}: valid {name}, {found}")
    return 0


def _count(items: Any, what: str) -> str:
    number = len(items)
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _manifest(path: Path) -> str:
    entries = load(path).entries
    for entry in entries:
        if isinstance(entry, BrokenEntry):
            raise entry.error
    return f"{len(entries)} entries"


def _tokens(path: Path) -> str:
    tokens = open_tokens(path)
    return f"{_count(tokens.ids, 'token')} of a vocabulary of {tokens.vocab_size:,}"


def _checkpoint(path: Path) -> str:
    from tinyllm.eval.zoo import load_model, read_config

    config = read_config(path)
    load_model(path)
    return str(config.get("tl_arch") or config.get("model_type"))


CHECKS: dict[str, Callable[[Path], str]] = {
    "report": lambda path: _count(read_report(path)["rows"], "row"),
    "run": lambda path: _count(read_run(path)[0]["rows"], "row"),
    "items": lambda path: _count(read_items(path), "row"),
    "manifest": _manifest,
    "tokens": _tokens,
    "choices": lambda path: _count(read_choices(path), "item"),
    "pairs": lambda path: _count(read_pairs(path), "pair"),
    "labelled": lambda path: _count(read_labelled(path), "sentence"),
    "wordpairs": lambda path: _count(read_wordpairs(path), "pair"),
    "checkpoint": _checkpoint,
}


def _guess(path: Path) -> str | None:
    if path.is_dir():
        return "run" if (path / REPORT_FILE).is_file() else "checkpoint"
    ending = path.name.removesuffix(".gz").rpartition(".")[2]
    by_ending = {"toml": "manifest", "bin": "tokens", "safetensors": "checkpoint"}
    if path.name == ITEMS_FILE:
        return "items"
    if ending in by_ending:
        return by_ending[ending]
    if ending == "json":
        return "report" if re.search(rb'"rows"\s*:', regular(path).read_bytes()) else "manifest"
    if ending == "jsonl":
        return "pairs" if any("src" in row for _, row in read_jsonl(path)) else "choices"
    if ending == "tsv":
        header = next(iter(read_lines(path)), (1, ""))[1]
        return "wordpairs" if "w1" in header.split("\t") else "labelled"
    return None
