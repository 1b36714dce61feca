"""The console script ``tinyllm``: thin; each command's work is a call or two into the rooms above.

Exit status: 0 done, 1 a row failed (an error, a gate), 4 asked wrongly (pytest's number for a usage error).
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tinyllm import __version__
from tinyllm.cli import compare, evaluate, inspect, plan, train, validate
from tinyllm.errors import TinyllmError, said

USAGE_ERROR = 4
BROKEN_PIPE = 141
"""128 and the number of SIGPIPE, as a shell says it."""


class Parser(argparse.ArgumentParser):
    """argparse, with pytest's exit status for a usage error."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Print usage and the message; exit 4."""
        self.print_usage(sys.stderr)
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(prog="tinyllm", description="Language-model evaluation with an interval on every number.")
    top.add_argument("--version", action="version", version=f"tinyllm {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (evaluate, compare, inspect, plan, validate, train):
        command.add_parser(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):  # what the terminal's encoding lacks is escaped, and costs no number
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = parser().parse_args(argv)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has what they wanted
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (what is left is not tried again)
        return BROKEN_PIPE
    except (TinyllmError, ValueError, OSError) as error:
        print(f"tinyllm: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("tinyllm: interrupted", file=sys.stderr)
        return 130
    except (Exception, SystemExit):  # the first is a fault of ours, and its traceback is wanted
        raise
    except BaseException as error:  # a model's own, such as pytest.skip: nothing that a row could be made of
        print(f"tinyllm: ended by {type(error).__name__}: {said(error)}", file=sys.stderr)
        return 1
    return status
