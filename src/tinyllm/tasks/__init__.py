"""Tasks, one file each, found by file name: ``tasks/quiz.py`` beside a manifest is its ``choices = "task:quiz"``.

A task's file has ``TASK``, whose function gives the rows of a multiple-choice task (``formats/choices.md``): for items
that are made, or that lie in another form. Items that lie in a JSON Lines file need no code. Example row:
``{"context": "2 + 2 =", "choices": [" 4", " 5"], "answer": 0}``. None is built in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tinyllm import extensions
from tinyllm.errors import FOREIGN, ExtensionError, nearest, said
from tinyllm.formats.choices import ChoiceItem, parse_choices


@dataclass(frozen=True)
class Task:
    """A multiple-choice task.

    Attributes
    ----------
    name
        As its file, and as manifests write it.
    items
        Gives the rows, the same ones each time: ``context``, ``choices``, ``answer``, and maybe ``id`` and ``cluster``.
    metric
        Where the entry names none.
    """

    name: str
    items: Callable[[], Iterable[Mapping[str, Any]]]
    metric: str = "acc"


class TaskItems(NamedTuple):
    """A task's checked items, and the SHA-256 of their rows as JSON Lines with sorted keys, in ASCII."""

    items: list[ChoiceItem]
    sha256: str


def find_task(name: str, *, folder: Path | None = None) -> Task:
    """The task of that name, of the user's own (`tinyllm.extensions`).

    Raises
    ------
    ExtensionError
        When there is none, with the nearest; when it cannot be imported, or is no task of that name.
    """
    own = extensions.find("tasks", name, folder, builtin=())
    if own is None:
        known = extensions.known("tasks", folder)
        hint = nearest(name, known) if known else "a task is a file tasks/NAME.py beside the manifest"
        raise ExtensionError(f"unknown task {name!r}; {hint}")
    return extensions.held(own, "TASK", Task, name)


def read_task(task: Task) -> TaskItems:
    """The task's items, checked as those of a file; a row's line is its number from 1.

    Raises
    ------
    ExtensionError
        When the task's function raises, or gives what is no JSON.
    FormatError
        For a bad row, and for none.
    """
    label, digest = f"task:{task.name}", hashlib.sha256()
    try:
        lines = [json.dumps(row, sort_keys=True, allow_nan=False) for row in task.items()]
    except FOREIGN as error:
        raise ExtensionError(
            f"{label}: items() must give rows of JSON, got {type(error).__name__}: {said(error)}"
        ) from error

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(lines, 1):
            digest.update(line.encode("ascii") + b"\n")
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ExtensionError(f"{label}: items() must give objects, got {line[:80]} as row {number}")
            yield number, row

    return TaskItems(parse_choices(rows(), label), digest.hexdigest())
