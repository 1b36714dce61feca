"""The families, one file each, found by file name: `models/gpt.py` is the family ``gpt``.

A family's file has ``ARCH`` (its own name), ``KIND`` (what it is scored as) and ``load_<ARCH>(path)``. A ``tl_arch`` is
looked up among these files' names; nothing a checkpoint says is ever imported.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from tinyllm.errors import UnknownFamilyError, nearest


def families() -> Iterator[ModuleType]:
    """Every family's module, by name. A file without ``ARCH`` is not a family."""
    for info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{info.name}")
        if getattr(module, "ARCH", None) == info.name:
            yield module


def find_family(arch: str) -> ModuleType:
    """The module of the family that calls itself `arch`.

    Raises
    ------
    UnknownFamilyError
        When none does; the message has the nearest known one.
    """
    known = {module.ARCH: module for module in families()}
    if arch not in known:
        msg = f"unknown family {arch!r}; {nearest(arch, known)}"
        raise UnknownFamilyError(msg)
    return known[arch]
