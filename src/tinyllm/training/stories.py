"""The source of the stories as a checkpoint: nothing is trained, the grammar is the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyllm.models.stories import StoriesLM

FAMILY = "stories"
TEXTS: tuple[tuple[str, str], ...] = ()
RECIPE: dict[str, Any] = {}
SAVE: dict[str, Any] = {}


def train(texts: Sequence[bytes] = (), *, seed: int = 0) -> StoriesLM:
    """The source; it knows its own probabilities."""
    del texts, seed
    return StoriesLM()
