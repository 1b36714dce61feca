"""Loaded checkpoints: remembered, a failure as well as a success, and each with the hash of the files that it is of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tinyllm.errors import FOREIGN, CheckpointError, UnknownFamilyError
from tinyllm.formats.checkpoints import files_stamp, weights_sha256
from tinyllm.formats.manifest import Entry

Loader = Callable[[Path], Any]


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

    def __init__(self, load: Loader) -> None:
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


def load_pinned(entry: Entry, load: Loader) -> tuple[Any, str]:
    """The model and the hash of its files, which are those that it was loaded from.

    Where the manifest pins the files by their hash, a flipped bit that still loads is refused too.
    """
    unknown: UnknownFamilyError | None = None
    before = files_stamp(entry.dir)
    try:
        model = load(entry.dir)
    except UnknownFamilyError as error:  # the family's name may be what is damaged
        unknown = error
    found = weights_sha256(entry.dir)
    if files_stamp(entry.dir) != before:
        raise CheckpointError(entry.dir, "must not change while it is read, got other files; score it again")
    if entry.sha256 is not None and found != entry.sha256:
        fix = "restore the files, or write the new hash into the manifest"
        raise CheckpointError(entry.dir, f"must hash to the manifest's sha256 {entry.sha256}, got {found}; {fix}")
    if unknown is not None:
        raise unknown
    return model, found
