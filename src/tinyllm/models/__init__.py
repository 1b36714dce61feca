"""The families, one file each, found by file name: `models/gpt.py` is the family ``gpt``.

A family's file has ``ARCH`` (its own name), ``KIND`` (what it is scored as) and ``load_<ARCH>(path)``. A ``tl_arch`` is
looked up among these files' names, and then among the user's own (`tinyllm.extensions`): files in ``models/`` beside
the manifest, and entry points of the group ``tinyllm.models``. Nothing a checkpoint says is ever imported.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tinyllm import extensions
from tinyllm.errors import ExtensionError, UnknownFamilyError, nearest

KINDS = ("lm",)
"""What a family can be scored as."""


def families() -> Iterator[ModuleType]:
    """Every family's module, by name. A file without ``ARCH`` is not a family."""
    for info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{info.name}")
        if getattr(module, "ARCH", None) == info.name:
            yield module


def find_family(arch: str, *, folder: Path | None = None) -> ModuleType:
    """The module of the family that calls itself `arch`: built in, or the user's own.

    Parameters
    ----------
    arch
        The family's name.
    folder
        The manifest's, whose ``models/`` may hold families; None where there is no manifest.

    Raises
    ------
    UnknownFamilyError
        When none does; the message has the nearest known one.
    ExtensionError
        When the user's own has the name of another, cannot be imported, or is no family.
    """
    known = {module.ARCH: module for module in families()}
    own = extensions.find("models", arch, folder, builtin=known)
    if own is not None:
        return _checked(arch, *own)
    if arch not in known:
        msg = f"unknown family {arch!r}; {nearest(arch, {*known, *extensions.known('models', folder)})}"
        raise UnknownFamilyError(msg)
    return known[arch]


def _checked(arch: str, module: ModuleType, source: str) -> ModuleType:
    """What a built-in family's tests show, as far as it can be seen without a checkpoint."""
    if getattr(module, "ARCH", None) != arch:
        fault = f"ARCH must be {arch!r}, the name that it is found by, got {getattr(module, 'ARCH', None)!r}"
    elif getattr(module, "KIND", None) not in KINDS:
        fault = f"KIND must be one of {', '.join(map(repr, KINDS))}, got {getattr(module, 'KIND', None)!r}"
    elif not callable(getattr(module, f"load_{arch}", None)):
        fault = f"a family must define load_{arch}(path), which returns the model of a checkpoint"
    else:
        return module
    raise ExtensionError(f"{source}: {fault}")
