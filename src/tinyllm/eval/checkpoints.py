"""Loaded checkpoints, remembered: once a worker and checkpoint, a failure as well as a success."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


class Checkpoints:
    """A loader that remembers. Four rows of one checkpoint load it once; four rows of a broken one try it once.

    Parameters
    ----------
    load
        The loader, `tinyllm.eval.zoo.load_model`.
    """

    def __init__(self, load: Callable[[Path], Any]) -> None:
        self._load = load
        self._models: dict[Path, Any] = {}
        self._failures: dict[Path, Exception] = {}

    def __call__(self, path: Path) -> Any:
        """The model at `path`; raises what loading it raised."""
        if path in self._failures:
            raise self._failures[path]
        if path not in self._models:
            try:
                self._models[path] = self._load(path)
            except Exception as error:
                self._failures[path] = error
                raise
        return self._models[path]

    def forget(self, path: Path) -> None:
        """Let go of a model that is no longer needed, so that the next one finds the memory free."""
        self._models.pop(path, None)
