"""Loaded checkpoints, remembered: once a worker and checkpoint, a failure as well as a success."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tinyllm.errors import FOREIGN
from tinyllm.formats.checkpoints import files_stamp


class _Loaded(NamedTuple):
    """What loading gave, and the stamp of the files that it was loaded from."""

    stamp: tuple[Any, ...]
    model: Any = None
    failure: BaseException | None = None


class Checkpoints:
    """A loader that remembers. Four rows of one checkpoint load it once; four rows of a broken one try it once.

    Files that were written again since are another checkpoint, and loaded.

    Parameters
    ----------
    load
        The loader, `tinyllm.eval.zoo.load_model`.
    """

    def __init__(self, load: Callable[[Path], Any]) -> None:
        self._load = load
        self._known: dict[Path, _Loaded] = {}

    def __call__(self, path: Path) -> Any:
        """The model at `path`; raises what loading it raised."""
        stamp = files_stamp(path)
        if path not in self._known or self._known[path].stamp != stamp:
            self._known.pop(path, None)  # before the other is loaded
            try:
                self._known[path] = _Loaded(stamp, self._load(path))
            except FOREIGN as error:
                self._known[path] = _Loaded(stamp, failure=error)
        found = self._known[path]
        if found.failure is not None:
            raise found.failure
        return found.model

    def forget(self, path: Path) -> None:
        """Let go of a model that is no longer needed, so that the next one finds the memory free."""
        if path in self._known and self._known[path].failure is None:
            del self._known[path]
