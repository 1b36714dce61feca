"""The scoring side of the plugin, one object a process: entries by name, each scored at most once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tinyllm.errors import nearest, said
from tinyllm.eval.limit import Limit
from tinyllm.formats.manifest import BrokenEntry, Entry, Manifest
from tinyllm.plugin.journal import Recorder
from tinyllm.plugin.wire import pack
from tinyllm.report.rows import Row
from tinyllm.result import Result
from tinyllm.rng import PCG32, stream

if TYPE_CHECKING:
    from tinyllm.eval.checkpoints import Checkpoints
    from tinyllm.eval.comparison import Comparison

SENT = pytest.StashKey[list[str]]()
"""The rows that an item has to send with its next report."""


class UndecidedGateWarning(UserWarning):
    """A gate's interval straddles its bound, and the run was told not to fail for that."""


class Evaluation:
    """A scored entry: ``value``, ``lo``, ``hi``, ``n``, ``per_item`` and ``ids`` of its result, and its ``row``."""

    def __init__(self, row: Row, result: Result, undecided: str) -> None:
        self.row, self.result, self._undecided = row, result, undecided
        self.value: float = result.value
        self.lo: float = result.lo
        self.hi: float = result.hi
        self.n: int = result.n
        self.per_item: NDArray[np.float64] = result.per_item
        self.ids: Sequence[str] | None = result.ids

    def __repr__(self) -> str:
        return f"<{self.row['name']}: {self.row['metric']} {self.value!r} [{self.lo!r}, {self.hi!r}], n = {self.n}>"

    def assert_gate(self) -> None:
        """Fail unless the entry's ``min`` and ``max`` hold on the interval; an entry without a gate passes."""
        __tracebackhide__ = True
        gate = self.row["gate"]
        if gate is None or gate["answer"] == "pass":
            return
        message = f"gate {gate['answer']}: {gate['message']}"
        if gate["answer"] == "undecided" and self._undecided == "warn":
            with warnings.catch_warnings():  # also where a run makes errors of warnings: this one was asked for
                warnings.simplefilter("always", UndecidedGateWarning)
                warnings.warn(UndecidedGateWarning(message), stacklevel=2)
            return
        pytest.fail(message, pytrace=False)


class Evaluations:
    """Scores the manifest's entries in this process.

    Parameters
    ----------
    manifest
        The manifest.
    undecided
        As the option says.
    recorder
        Told of each row as it is scored, or None where there is nobody to tell.
    limit
        How many items of each row are scored, or which share of them; None for all.
    """

    def __init__(
        self,
        manifest: Manifest,
        undecided: str,
        recorder: Recorder | None = None,
        *,
        limit: int | Fraction | None = None,
    ) -> None:
        self.manifest = manifest
        self._recorder = recorder
        self.undecided = undecided
        self._base_key = PCG32(manifest.seed).next_u64()
        self._limit = None if limit is None else Limit(limit, self._base_key)
        self._entries = {entry.name: entry for entry in manifest.entries}
        self._scored: dict[str, tuple[Row, Result | None]] = {}
        self._checkpoints: Checkpoints | None = None

    @property
    def checkpoints(self) -> Checkpoints:
        """The loader that remembers; torch is imported when it is first asked for."""
        if self._checkpoints is None:
            from tinyllm.eval.checkpoints import Checkpoints
            from tinyllm.eval.zoo import loader

            self._checkpoints = Checkpoints(loader(self.manifest.code))
        return self._checkpoints

    def entry(self, name: str) -> Entry | BrokenEntry:
        """The entry of that name.

        Raises
        ------
        LookupError
            When the manifest has none; the message has the nearest.
        """
        __tracebackhide__ = True
        if name not in self._entries:
            msg = f"the manifest {self.manifest.path} has no entry {name!r}; {nearest(name, self._entries)}"
            raise LookupError(msg)
        return self._entries[name]

    def score(self, entry: Entry | BrokenEntry) -> tuple[Row, Result | None]:
        """The entry's row and result, scored now or remembered.

        Raises
        ------
        ValueError
            For an entry that is not the one known by its name: the report has one row a name.
        """
        if self._entries.setdefault(entry.name, entry) != entry:
            msg = f"an entry's name must be its own, got {entry.name!r}, which is another entry; rename yours"
            raise ValueError(msg)
        if entry.name not in self._scored:
            self._scored[entry.name] = self._score(entry)
        return self._scored[entry.name]

    def _score(self, entry: Entry | BrokenEntry) -> tuple[Row, Result | None]:
        from tinyllm.eval.zoo import evaluate_entry

        rng = stream(self._base_key, entry.name)
        if self._recorder is None:
            return evaluate_entry(entry, rng, load=self.checkpoints, limit=self._limit)
        self._recorder.began(entry.name)
        try:
            row, result = evaluate_entry(entry, rng, load=self.checkpoints, limit=self._limit)
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise  # the run ends: the row is interrupted, as it says already
        except BaseException as error:  # such as pytest-timeout's: the run goes on
            self._recorder.stopped(entry.name, type(error).__name__, said(error))
            raise
        self._recorder.finished(row, result)
        return row, result

    def release(self, path: Path) -> None:
        """A checkpoint's items are done: let its model go."""
        if self._checkpoints is not None:
            self._checkpoints.forget(path)


class Evaluate:
    """The `evaluate` fixture: ``evaluate("gpt")`` scores a manifest entry, and its row is in the report.

    ``evaluate.compare("gpt", "bigram")`` is their paired comparison, with ``delta``, ``p``, ``n`` and ``better``.
    """

    def __init__(self, node: pytest.Item, evaluations: Evaluations) -> None:
        self._node, self._evaluations = node, evaluations

    def __call__(self, entry: str | Entry | BrokenEntry) -> Evaluation:
        """Score an entry; fails the test when it cannot be scored, skips it when its family is unknown."""
        __tracebackhide__ = True
        if not isinstance(entry, str | Entry | BrokenEntry):
            msg = f"evaluate takes the name of a manifest entry, got {entry!r}"
            raise TypeError(msg)
        found = self._evaluations.entry(entry) if isinstance(entry, str) else entry
        row, result = self._evaluations.score(found)
        self._node.stash.setdefault(SENT, []).append(pack(row, result))
        known = self._node.user_properties
        known.extend(one for one in _properties(row) if one not in known)
        if result is not None:
            return Evaluation(row, result, self._evaluations.undecided)
        reason = f"{row['name']}: {row['status']}: {row['error']['type']}: {row['error']['message']}"
        if row["status"] == "skipped" and row["gate"] is None:
            pytest.skip(reason)
        if row["gate"] is not None:
            reason += " (and it carries a gate)"
        pytest.fail(reason, pytrace=False)

    def compare(self, a: str, b: str) -> Comparison:
        """The paired comparison of two entries on the same items."""
        __tracebackhide__ = True
        from tinyllm.eval.comparison import compare_rows

        x, y = self(a), self(b)
        try:
            return compare_rows(x.row, x.result, y.row, y.result)
        except ValueError as error:
            pytest.fail(str(error), pytrace=False)


def _properties(row: Row) -> list[tuple[str, Any]]:
    keys = ("metric", "value", "lo", "hi", "n", "status")
    known = [(f"tinyllm.{row['name']}.{key}", row[key]) for key in keys if row[key] is not None]
    gate = row["gate"]
    return [*known, (f"tinyllm.{row['name']}.gate", gate["answer"])] if gate else known
