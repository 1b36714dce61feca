"""Code of the user's own: files beside the manifest and installed entry points, found by name, as in the package.

``evals/models/rwkv.py`` is the family ``rwkv``, ``evals/metrics/brier.py`` the metric ``brier``; so is an entry point
of that name in the group ``tinyllm.models`` or ``tinyllm.metrics``. Only the manifest's own folder is looked in. What
is asked for is looked up among the names that are there, and only that one is imported, when a row needs it: nothing
that a checkpoint says is ever a path or a module, and a file that cannot be imported costs nobody else's row.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import sys
import traceback
from collections.abc import Callable, Collection
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeVar

from tinyllm.errors import FOREIGN, ExtensionError, said

T = TypeVar("T")
Kind = Literal["models", "metrics", "tasks"]
"""A folder beside the manifest, and the last word of an entry point's group."""


class Extension(NamedTuple):
    """What was found: the imported module (or what its entry point names), and where, for messages."""

    value: Any
    source: str


def known(kind: Kind, folder: Path | None) -> set[str]:
    """The names that are there; nothing is imported.

    Parameters
    ----------
    kind
        What is looked for.
    folder
        The manifest's, or None where there is no manifest: then only what is installed is known.
    """
    return {*_files(kind, folder), *(point.name for point in _entry_points(kind))}


def find(kind: Kind, name: str, folder: Path | None, *, builtin: Collection[str]) -> Extension | None:
    """The user's own piece of that name, imported now; None when there is none.

    Parameters
    ----------
    kind, folder
        As `known`.
    name
        What is asked for, whoever says it.
    builtin
        The names that the package has: the user's own must be others.

    Raises
    ------
    ExtensionError
        When the name is taken twice, and when importing fails, with the line.
    """
    file = _files(kind, folder).get(name)
    points = [point for point in _entry_points(kind) if point.name == name]
    sources = [str(file)] if file is not None else []
    sources += [f"entry point {point.group}: {point.name} = {point.value}" for point in points]
    if not sources:
        return None
    if name in builtin:
        raise ExtensionError(f"{sources[0]}: {name!r} is the name of one of the built-in {kind}; rename yours")
    if len(sources) > 1:
        raise ExtensionError(f"{sources[0]}: {name!r} must be one of the {kind}, got it again from {sources[1]}")
    load = functools.partial(_load_file, file) if file is not None else points[0].load
    return Extension(_imported(load, sources[0], file), sources[0])


def held(own: Extension, attribute: str, kind: type[T], name: str) -> T:
    """The METRIC or TASK of what was found, which bears the name that it was found by.

    Raises
    ------
    ExtensionError
        When it has none, or one of another type or name.
    """
    found = getattr(own.value, attribute, None)
    if not isinstance(found, kind):
        raise ExtensionError(f"{own.source}: {attribute} must be a {kind.__module__}.{kind.__name__}, got {found!r}")
    if (said_name := getattr(found, "name", None)) != name:
        raise ExtensionError(f"{own.source}: {attribute}.name must be {name!r}, as it is found by, got {said_name!r}")
    return found


def _files(kind: Kind, folder: Path | None) -> dict[str, Path]:
    if folder is None or not (folder / kind).is_dir():
        return {}
    found = sorted((folder / kind).glob("*.py"))
    return {path.stem: path for path in found if path.stem.isidentifier() and not path.stem.startswith("_")}


@functools.cache
def _entry_points(kind: Kind) -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=f"tinyllm.{kind}"))


def _load_file(path: Path) -> ModuleType:
    """Import a file as a module of a package that is its folder, so that ``from .layers import …`` finds its neighbour.

    The package's name is of the folder's path: two manifests in one process do not meet.
    """
    folder = path.parent.resolve()
    digest = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()
    package = f"tinyllm_own_{folder.name}_{digest[:12]}"
    if package not in sys.modules:
        module = ModuleType(package)
        module.__path__ = [str(folder)]
        sys.modules[package] = module
        importlib.invalidate_caches()
    return importlib.import_module(f"{package}.{path.stem}")


def _imported(load: Callable[[], Any], source: str, file: Path | None) -> Any:
    try:
        return load()
    except FOREIGN as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file]
        line = f" (line {frames[-1].lineno})" if frames else ""
        raise ExtensionError(
            f"{source}: must be importable, got {type(error).__name__}: {said(error)}{line}"
        ) from error
