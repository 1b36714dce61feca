"""Two texts to train and score on, each in a training and a held-out part that share no 50-byte piece."""

from functools import lru_cache

from tinyllm.errors import UsageError, nearest
from tinyllm.texts import cloze, pydoc, stories
from tinyllm.texts.cloze import cloze_items
from tinyllm.texts.overlap import joined_apart, windows

__all__ = ["cloze_items", "load"]

STORIES_TRAIN_BYTES = 2_000_000
STORIES_HELDOUT_BYTES = 32_768


def _stories_heldout() -> bytes:
    return stories.text("stories/heldout", STORIES_HELDOUT_BYTES)


def _stories_train() -> bytes:
    """Return stories of another stream, without those that share a window with the held-out text or the task."""
    held_out = windows(_stories_heldout())
    for word in cloze.drawn():
        held_out |= windows(word.context + word.true)
    return joined_apart(stories.whole_stories("stories/train"), held_out, n_bytes=STORIES_TRAIN_BYTES)[0]


TEXTS = {
    ("stories", "train"): _stories_train,
    ("stories", "heldout"): _stories_heldout,
    ("pydoc", "train"): pydoc.training,
    ("pydoc", "heldout"): pydoc.held_out,
}


@lru_cache
def load(name: str, split: str) -> bytes:
    """Return one part of one text.

    Parameters
    ----------
    name
        "stories" (2,000,000 and 32,768 bytes, the same on every machine) or "pydoc" (differs between Python versions).
    split
        "train" or "heldout".

    Raises
    ------
    UsageError
        When there is no such text or part.
    TinyllmError
        When this Python has no `pydoc_data`.
    """
    if (name, split) not in TEXTS:
        known = [f"{a}/{b}" for a, b in TEXTS]
        raise UsageError(
            f"text must be one of the built-in ones, got {name!r}/{split!r}; {nearest(f'{name}/{split}', known)}"
        )
    return TEXTS[name, split]()
