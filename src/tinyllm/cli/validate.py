"""``tinyllm validate FILE``: is a file what its format says?"""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser("validate", help="check a file against its format")
    parser.add_argument("file")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check."""
    raise NotImplementedError
