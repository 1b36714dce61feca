"""What is known of every row while a run goes on: the row itself, or why there is none yet.

A row that arrived is never replaced by a reason: a worker that dies after scoring takes nothing with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyllm.report.rows import Row, blank_row, failed_row, interrupted_row, missing_row, unasked_row
from tinyllm.result import Result


class Ledger:
    """Rows, their results, the reasons of rows that did not come, and which items stand for which entries."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}
        self._rows: dict[str, Row] = {}
        self._reasons: dict[str, Row] = {}
        self._ids: set[str] = set()
        self._entries: dict[str, str] = {}
        self._tests: set[str] = set()
        self._uncollected: list[str] = []
        self._collected = False

    @property
    def collection_failed(self) -> bool:
        """Whether a file could not be collected, or the run ended before any was."""
        return bool(self._uncollected) or not self._collected

    @property
    def concerned(self) -> bool:
        """Whether an entry was scored, or an item that stands for one was selected."""
        return bool(self._entries or self._rows or self._reasons)

    def collected(self, ids: Iterable[str]) -> None:
        """The node ids that were selected."""
        self._collected = True
        self._ids.update(ids)

    def not_collected(self, node_id: str) -> None:
        """A file could not be collected: nobody knows which entries its items would have stood for."""
        self._uncollected.append(node_id)

    def stands_for(self, item: str, name: str) -> None:
        """The item of that node id is the entry's; so are the items of the same test for the other entries."""
        self._entries[item] = name
        if item.endswith(f"[{name}]"):
            self._tests.add(item.removesuffix(f"[{name}]"))

    def entry(self, item: str) -> str | None:
        """The entry that an item stands for, or None."""
        if item in self._entries:
            return self._entries[item]
        test, bracket, name = item.rpartition("[")
        return name.removesuffix("]") if bracket and test in self._tests else None

    def arrived(self, row: Row, result: Result | None) -> None:
        """A row is there."""
        self._rows[row["name"]] = row
        if result is not None:
            self.results[row["name"]] = result

    def began(self, name: str) -> None:
        """A row is being scored: what it says should the run end now."""
        self._reasons[name] = interrupted_row(name)

    def ended(self, name: str, status: str, error_type: str, message: str) -> None:
        """A row's test ended without the row: why."""
        self._reasons[name] = failed_row(blank_row(name), status, error_type, message)

    def waits(self, name: str) -> bool:
        """Whether the row was begun and nothing is known of how it ended."""
        return name not in self._rows and self._reasons.get(name) == interrupted_row(name)

    def known(self, name: str) -> bool:
        """Whether the row is there, or how its test ended."""
        return name in self._rows or (name in self._reasons and not self.waits(name))

    def rows(self, names: Sequence[str], reason: str = "", *, whole: bool = False) -> dict[str, Row]:
        """A row for each of `names`, and those of evals in plain Python.

        Parameters
        ----------
        names
            The manifest's entries.
        reason
            Why the run ended, if it did.
        whole
            Every test of the suite was selected: a row without one is not deselected, but has none.
        """
        unknown = not self._entries and self.collection_failed
        if unknown and self._uncollected:
            reason = f"{', '.join(sorted(set(self._uncollected)))} could not be collected"
        rows = {}
        named = set(self._entries.values())
        for name in names:
            selected = name in named or any(f"{test}[{name}]" in self._ids for test in self._tests)
            if whole and not selected and not self.collection_failed:
                rows[name] = unasked_row(name)
            else:
                rows[name] = missing_row(name, selected=selected or unknown, reason=reason)
        return rows | self._reasons | self._rows
