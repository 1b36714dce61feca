"""``tinyllm train FAMILY``: run a family's recipe on the built-in texts and write its checkpoint."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

from tinyllm.cli.progress import bar


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train", help="train a family of the zoo on the built-in texts"
    )
    parser.add_argument("family", help="bigram, ngram, gpt, …")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="where the checkpoint is written")
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, save, say where."""
    raise NotImplementedError


_ = (hashlib, bar)
