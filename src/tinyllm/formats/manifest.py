"""The manifest (``formats/manifest.schema.json``): the one place that knows an entry's keys and defaults.

A fault of the manifest itself is a `UsageError`: nothing runs. A fault inside one entry is that entry's alone: it
becomes a `BrokenEntry`, whose row says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinyllm.errors import FormatError, UsageError
from tinyllm.formats.filenames import for_system
from tinyllm.formats.regular import regular
from tinyllm.formats.schema import load_schema, validate
from tinyllm.formats.strict_json import parse

ENTRY_KEYS: tuple[str, ...] = tuple(load_schema("manifest")["$defs"]["entry"]["properties"])

_SLUG = re.compile(load_schema("manifest")["$defs"]["slug"]["pattern"].removesuffix("$") + r"\Z")
_TEXT = re.compile(r"text:([A-Za-z0-9._-]+)/([A-Za-z0-9._-]+)")
_TASK = re.compile(r"task:([A-Za-z_][A-Za-z0-9_]*)")
_TOKEN_KEYS = ("layout", "vocab_size", "n_bytes")


@dataclass(frozen=True)
class Entry:
    """One thing to score, checked; paths are absolute, absent keys are None.

    Attributes
    ----------
    name
        The row's name, a slug.
    dir
        The checkpoint's folder or file.
    sha256
        What its files must hash to, as `tinyllm.formats.checkpoints.weights_sha256` has it; None pins nothing.
    data
        As written: a path or ``text:NAME/SPLIT``.
    data_path, text
        What `data` means: a file, or the (name, split) of a built-in text. At most one is set.
    layout, vocab_size, n_bytes
        How to open a foreign token file.
    choices
        The rows of a log-likelihood task, in place of `data`: a file.
    own_task
        Or a task of the user's own, written ``choices = "task:NAME"``.
    task, metric
        The label and the metric's name, where the kind's default is not meant.
    ctx_len, stride, max_len
        In tokens.
    min, max
        The gate: bounds that the whole interval must respect.
    margin
        The drop against a baseline that is let pass, in the unit of per-item scores.
    folder
        What relative paths were relative to: the manifest's folder. Messages name paths from there.
    code
        The folder of a manifest that is a file, whose ``models/`` and ``metrics/`` may hold the user's own; None for a
        mapping, which no code is looked for beside.
    """

    name: str
    dir: Path
    sha256: str | None = None
    data: str | None = None
    data_path: Path | None = None
    text: tuple[str, str] | None = None
    layout: str | None = None
    vocab_size: int | None = None
    n_bytes: int | None = None
    choices: Path | None = None
    own_task: str | None = None
    task: str | None = None
    metric: str | None = None
    ctx_len: int | None = None
    stride: int | None = None
    max_len: int | None = None
    min: float | None = None
    max: float | None = None
    margin: float | None = None
    folder: Path | None = field(default=None, compare=False, repr=False)
    code: Path | None = field(default=None, compare=False, repr=False)

    @property
    def has_items(self) -> bool:
        """Whether it is a log-likelihood task, and no text."""
        return self.choices is not None or self.own_task is not None

    @property
    def gated(self) -> bool:
        """Whether the row carries a gate."""
        return self.min is not None or self.max is not None


@dataclass(frozen=True)
class BrokenEntry:
    """An entry that cannot be scored as written: its name, the fault, whether it had a gate, the folder."""

    name: str
    error: FormatError
    gated: bool
    folder: Path


@dataclass(frozen=True)
class Manifest:
    """A checked manifest.

    Attributes
    ----------
    name, seed
        Of the suite; the file's stem and 0 where it says none.
    entries
        In manifest order.
    path
        The file, or None for a mapping.
    digest
        SHA-256 over the canonical JSON of the document.
    """

    name: str
    seed: int
    entries: tuple[Entry | BrokenEntry, ...]
    path: Path | None
    digest: str

    @property
    def code(self) -> Path | None:
        """As an entry's `code`."""
        return self.path.absolute().parent if self.path is not None else None


def _plain(value: Any) -> Any:
    """A mapping's values as JSON has them: paths as strings, tuples as lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _read(path: Path) -> Any:
    try:
        text = regular(path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise UsageError(f"{path}: the manifest must be a readable file, got {error.strerror!r}") from error
    except UnicodeDecodeError as error:
        fault = f"got byte {error.object[error.start]:#04x} at byte {error.start}"
        raise UsageError(f"{path}: the manifest must be UTF-8, {fault}") from error
    if path.suffix == ".json":
        return parse(text, path)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: the manifest must be TOML, got a syntax error: {error}") from error


def _check_suite(document: Any, path: str | Path) -> None:
    """The faults that stop a run: everything but the insides of entries."""
    entries = document.get("entry") if isinstance(document, dict) else None
    listed = entries if isinstance(entries, list) else []
    stand_ins = [{"name": "x", "dir": "x", "data": "x"} if isinstance(entry, dict) else entry for entry in listed]
    validate({**document, "entry": stand_ins} if listed else document, "manifest", path)
    first: dict[str, int] = {}
    for index, entry in enumerate(listed):
        name = entry.get("name")
        if not isinstance(name, str) or not _SLUG.match(name):
            fault = f"must be a slug of 1 to 64 characters A-Z a-z 0-9 . _ -, got {name!r}"
            raise FormatError(path, fault, where=f"entry[{index}].name")
        if name in first:
            fault = f"must be unique, got {name!r} again (first in entry[{first[name]}])"
            raise FormatError(path, fault, where=f"entry[{index}].name")
        first[name] = index


def _check_meaning(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    """The key that breaks a rule no schema states, and the rule; None when all is well."""
    data = raw.get("data", "")
    foreign = [key for key in _TOKEN_KEYS if key in raw]
    if data.startswith("text:") and not _TEXT.fullmatch(data):
        return "data", f"must be text:NAME/SPLIT or a path, got {data!r}"
    if raw.get("choices", "").startswith("task:") and not _TASK.fullmatch(raw["choices"]):
        return "choices", f"must be task:NAME, the name of a file tasks/NAME.py, or a path, got {raw['choices']!r}"
    if foreign and ("data" not in raw or data.startswith("text:")):
        return foreign[0], "must go with a token file in 'data', got none; remove it"
    if raw.get("layout") == "nanogpt" and "vocab_size" not in raw:
        return "layout", "must come with vocab_size when it is 'nanogpt', got none: that layout has no header"
    for key, other in (("ctx_len", "choices"), ("stride", "choices"), ("max_len", "data")):
        if key in raw and other in raw:
            return key, f"must not stand beside {other}, which it says nothing about, got {raw[key]!r}; remove it"
    for key in ("min", "max", "margin"):
        if isinstance(raw.get(key), int) and abs(raw[key]) > 2**53:
            return key, f"must be a number of at most 2**53, got {raw[key]}"
    if "min" in raw and "max" in raw and raw["min"] > raw["max"]:
        return "min", f"must not exceed max ({raw['max']!r}), got {raw['min']!r}"
    return None


def _entry(raw: dict[str, Any], index: int, path: str | Path, folder: Path) -> Entry | BrokenEntry:
    name, place = raw["name"], f"entry[{index}]"
    try:
        validate(raw, "manifest", path, part="entry", where=place)
        if fault := _check_meaning(raw):
            raise FormatError(path, fault[1], where=f"{place}.{fault[0]}")
    except FormatError as error:
        where = f"{place} {name!r}" if error.where == place else f"{error.where} of {name!r}"
        return BrokenEntry(name, FormatError(path, error.reason, where=where), "min" in raw or "max" in raw, folder)
    data = raw.get("data")
    match = _TEXT.fullmatch(data) if data else None
    task = _TASK.fullmatch(raw.get("choices", ""))
    resolved: dict[str, Any] = {
        "dir": folder / for_system(raw["dir"]),
        "data_path": folder / for_system(data) if data and not match else None,
        "text": (match[1], match[2]) if match else None,
        "choices": folder / for_system(raw["choices"]) if "choices" in raw and not task else None,
        "own_task": task[1] if task else None,
        "folder": folder,
        "code": folder if isinstance(path, Path) else None,
    }
    resolved |= {key: float(raw[key]) for key in ("min", "max", "margin") if key in raw}
    return Entry(**(raw | resolved))


def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> Manifest:
    """Read and check a manifest.

    Parameters
    ----------
    source
        A path (JSON when it ends in ``.json``, else TOML), or the parsed document. Relative paths in it are relative
        to the manifest's folder, or to the working directory for a mapping.

    Raises
    ------
    UsageError
        On a fault of the manifest itself: unreadable, a syntax error (with line and column), an unknown top-level or
        ``[suite]`` key, no entries, a name that is no slug or stands twice.
    """
    path = None if isinstance(source, Mapping) else Path(source)
    label: str | Path = "manifest" if path is None else path
    try:
        document: Any = _plain(source) if isinstance(source, Mapping) else _read(Path(source))
        _check_suite(document, label)
    except FormatError as error:
        raise UsageError(str(error)) from error
    folder = Path.cwd() if path is None else path.absolute().parent
    entry_label = "manifest" if path is None else path.absolute()
    entries = tuple(_entry(raw, index, entry_label, folder) for index, raw in enumerate(document["entry"]))
    suite = document.get("suite", {})
    stem = path.stem if path is not None and _SLUG.match(path.stem) else "suite"
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    digest = hashlib.sha256(canonical.encode("utf-8", "backslashreplace")).hexdigest()
    return Manifest(suite.get("name", stem), suite.get("seed", 0), entries, path, digest)
