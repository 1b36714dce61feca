"""The exceptions tinyllm raises about its input; each message says what, where, what came, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class TinyllmError(Exception):
    """The root: anything wrong with what a user gave us. Never raised for a fault of our own."""


class UsageError(TinyllmError):
    """The run itself was asked for wrongly (a manifest's own fault, a wrong option): nothing runs, exit status 4."""


class FormatError(TinyllmError, ValueError):
    """A file is not what its format says.

    Parameters
    ----------
    path
        The file (or a name that stands for it).
    message
        What must hold, what came, and the fix.
    where
        The place inside the file: ``"line 3"``, ``"entry[2].max"``, ``"header bytes 8-12"``. Empty for the whole file.
    """

    def __init__(self, path: str | Path, message: str, *, where: str = "") -> None:
        self.path, self.where, self.reason = str(path), where, message
        super().__init__(f"{path}: {where}: {message}" if where else f"{path}: {message}")


class CheckpointError(FormatError):
    """A checkpoint folder or file does not hold exactly what its family asks for."""


class UnknownFamilyError(TinyllmError, LookupError):
    """``tl_arch`` names no family that is installed: the row is skipped, not an error."""


class ExtensionError(TinyllmError):
    """A family, metric or task of the user's own cannot be imported, or is not what its place asks for."""


FOREIGN = (Exception, SystemExit, GeneratorExit)
"""What code that is not ours (a model, a metric, a hook) may raise: the fault of its row, never the end of the run."""


def said(error: BaseException) -> str:
    """An exception's message; where it has none, or none that can be had, its type says so."""
    name = type(error).__name__
    try:
        text = str(error)
    except FOREIGN:
        return f"{name}, whose message cannot be shown"
    return text if text.strip() else f"{name} without a message"


def nearest(key: str, known: Iterable[str]) -> str:
    """A hint for a misspelt key: ``"did you mean 'stride'?"``, or the list of known keys when none is near.

    Parameters
    ----------
    key
        What came.
    known
        What would have been right.
    """
    names = sorted(known)
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
