"""Baselines on disk: numbered folders that are written once, ``evals/baselines/main/0001/``, ``0002/``, ….

Each holds a run as `tinyllm.report.store` writes it, ``report.json`` and ``items.safetensors``, and ``SHA256SUMS`` over
the two, in the form that ``sha256sum -c`` reads: a flipped bit in a score is still a score, and must not pass for one.
Example: ``main`` is the newest of main's, ``main/0002`` is that one.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyllm.errors import FormatError, UsageError, nearest
from tinyllm.formats.atomic import write_atomic
from tinyllm.formats.regular import regular
from tinyllm.report.rows import Row, is_unfinished
from tinyllm.report.store import ITEMS_FILE, REPORT_FILE, read_run, write_run
from tinyllm.result import Result

SUMS_FILE = "SHA256SUMS"
_NAME = re.compile(r"(?P<name>(?!\.+(/|\Z))[A-Za-z0-9._-]{1,64})(/(?P<number>[0-9]{4,}))?")
_NUMBER = re.compile(r"[0-9]{4,}")


@dataclass(frozen=True)
class StoredRun:
    """A run that others are held against.

    Attributes
    ----------
    label
        What messages call it, such as ``main/0002``.
    rows
        Its rows by name.
    results
        The per-item results of those that have a number.
    """

    label: str
    rows: Mapping[str, Row]
    results: Mapping[str, Result]


def split_name(text: str) -> tuple[str, str | None]:
    """A baseline's name and number; the number is None where the newest is meant.

    Raises
    ------
    UsageError
        For what is neither ``NAME`` nor ``NAME/0001``.
    """
    match = _NAME.fullmatch(text)
    if match is None:
        slug = "NAME a slug of 1 to 64 characters A-Z a-z 0-9 . _ -"
        raise UsageError(f"a baseline's name must be NAME or NAME/0001, {slug}, got {text!r}")
    return match["name"], match["number"]


def numbers_in(folder: Path) -> list[str]:
    """The numbered folders of one baseline, oldest first; none where there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted((path.name for path in folder.iterdir() if _NUMBER.fullmatch(path.name)), key=int)


def read_baseline(root: Path, text: str) -> StoredRun:
    """Read a baseline, whole and unharmed or not at all.

    Parameters
    ----------
    root
        The folder of all baselines.
    text
        ``NAME`` (its newest) or ``NAME/0001``.

    Raises
    ------
    UsageError
        For a name that is none, or that stands for nothing.
    FormatError
        For a file that is missing, was changed since it was saved, or is not of a complete run. An older number never
        stands in for it.
    """
    name, number = split_name(text)
    known = numbers_in(root / name)
    if not known:
        names = sorted(path.name for path in root.iterdir() if numbers_in(path)) if root.is_dir() else []
        hint = f"{nearest(name, names)}; " if names else ""
        raise UsageError(
            f"{root / name}: there is no baseline {name!r}; {hint}save one with --tinyllm-save-baseline {name}"
        )
    if number is not None and number not in known:
        raise UsageError(f"{root / name}: baseline {name!r} has no number {number}; it has {', '.join(known)}")
    return read_stored(root / name / (number or known[-1]), f"{name}/{number or known[-1]}")


def read_stored(folder: Path, label: str) -> StoredRun:
    """Read one numbered folder; see `read_baseline`."""
    _check_sums(folder)
    report, results = read_run(folder)
    if not report["complete"]:
        raise FormatError(folder / REPORT_FILE, "a baseline must be a complete run, got one that is not; save another")
    return StoredRun(label, {row["name"]: row for row in report["rows"]}, results)


def save_baseline(root: Path, name: str, report: Mapping[str, Any], results: Mapping[str, Result]) -> Path:
    """Write a run as the next number of a baseline; what is there already is never touched.

    Parameters
    ----------
    root
        The folder of all baselines.
    name
        The baseline's name, without a number.
    report, results
        As `tinyllm.report.store.write_run` takes them.

    Returns
    -------
    The new folder; its files are read-only.

    Raises
    ------
    UsageError
        For a name that is none, or has a number.
    FormatError
        For a run that is not complete, and where the folder cannot be written.
    """
    check_new_name(name)
    if not report["complete"]:
        unrun = [row["name"] for row in report["rows"] if is_unfinished(row)]
        raise FormatError(
            root / name, f"a baseline must be a complete run, but not run was {', '.join(unrun[:5]) or 'a row'}"
        )
    folder = root / name
    temporary = folder / f".{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        write_run(temporary, report, results)
        sums = "".join(f"{_sha256(temporary / file)}  {file}\n" for file in (ITEMS_FILE, REPORT_FILE))
        write_atomic(temporary / SUMS_FILE, sums.encode("ascii"))
        for file in temporary.iterdir():
            file.chmod(0o444)
        return _rename_to_next_number(temporary, folder)
    except OSError as error:
        raise FormatError(folder, f"the baseline's folder must be writable, got {error.strerror!r}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_new_name(name: str) -> None:
    """Refuse a name that a baseline cannot be saved under: numbers are given, not chosen.

    Raises
    ------
    UsageError
        With the name.
    """
    if split_name(name)[1] is not None:
        raise UsageError(f"a baseline is saved under a name without a number, which is given to it, got {name!r}")


def _rename_to_next_number(temporary: Path, folder: Path) -> Path:
    while True:  # another run may take the number first: a folder that is not empty cannot be renamed over
        known = numbers_in(folder)
        target = folder / f"{int(known[-1]) + 1 if known else 1:04d}"
        try:
            return temporary.rename(target)
        except OSError:
            if not target.exists():
                raise


def _check_sums(folder: Path) -> None:
    path = folder / SUMS_FILE
    try:
        lines = regular(path).read_bytes().decode("ascii").removesuffix("\n").split("\n")
    except OSError as error:
        raise FormatError(path, f"must be a readable file, got {error.strerror!r}; {_NO_GO}") from error
    except UnicodeDecodeError as error:
        raise FormatError(path, f"must be ASCII, got byte {error.object[error.start]:#04x}; {_NO_GO}") from error
    said = {file: digest for digest, _, file in (line.partition("  ") for line in lines)}
    if said.keys() != {ITEMS_FILE, REPORT_FILE}:
        raise FormatError(path, f"must have the sums of {ITEMS_FILE} and {REPORT_FILE}, got {sorted(said)}; {_NO_GO}")
    for file, digest in said.items():
        try:
            got = _sha256(folder / file)
        except OSError as error:
            raise FormatError(folder / file, f"must be a readable file, got {error.strerror!r}; {_NO_GO}") from error
        if got != digest:
            changed = f"must be the file that was saved, of SHA-256 {digest[:12]}…, got {got[:12]}…"
            raise FormatError(folder / file, f"{changed}; {_NO_GO}")


_NO_GO = "restore the baseline, or save another"


def _sha256(path: Path) -> str:
    return hashlib.sha256(regular(path).read_bytes()).hexdigest()
