"""``tinyllm train RECIPE``: run a recipe of the zoo on the built-in texts and write its checkpoint."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from tinyllm.cli.progress import bar
from tinyllm.errors import UsageError
from tinyllm.formats.config import CONFIG, WEIGHTS


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="train a checkpoint of the zoo",
        description="Recipe, seed and the texts' hashes are recorded in the checkpoint's config.",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="uniform, stories, bigram, ngram or gpt")
    parser.add_argument("--out", metavar="PATH", type=Path, required=True, help="its folder (ngram: its file)")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: 0)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, write, say where."""
    from tinyllm.training import train_checkpoint

    if not str(options.out).strip("."):
        raise UsageError("--out must name a folder (ngram: a file) of its own, got the current one")
    if not 0 <= options.seed < 2**64:
        raise UsageError(f"--seed must be 0 to 2**64 - 1, got {options.seed}")
    start = time.monotonic()
    train_checkpoint(options.recipe, options.out, seed=options.seed, on_step=bar(options.recipe))
    files = [options.out] if options.out.is_file() else [options.out / name for name in (CONFIG, WEIGHTS)]
    size = sum(path.stat().st_size for path in files)
    print(f"{options.out}: {options.recipe}, {size:,} bytes, trained in {time.monotonic() - start:.0f} s")
    return 0
