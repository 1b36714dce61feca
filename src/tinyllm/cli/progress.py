"""A progress bar on long work, when standard error is a terminal."""

from __future__ import annotations

from collections.abc import Callable

from tqdm import tqdm


def bar(label: str) -> Callable[[int, int], None]:
    """A function ``on_progress(done, total)`` that shows a bar while done < total, where stderr is a terminal."""
    shown: list[tqdm[None]] = []

    def on_progress(done: int, total: int) -> None:
        if not shown:
            shown.append(tqdm(total=total, desc=label, leave=False, disable=None))
        shown[0].update(done - shown[0].n)
        if done >= total:
            shown.pop().close()

    return on_progress
