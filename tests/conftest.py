"""Hypothesis profiles; `--hypothesis-profile=mutation` is for runs that must go the same way every time."""

from __future__ import annotations

try:
    from hypothesis import settings
except ImportError:  # pytest reads this file for --help too, where only the evals are set up
    pass
else:
    settings.register_profile("default", deadline=None)  # a slow machine is not a wrong number
    settings.register_profile("mutation", deadline=None, derandomize=True, database=None)
    settings.load_profile("default")


LONG = ("test_docs.py", "plugin", "bad_input")


def pytest_configure(config) -> None:
    """With `-n` a worker gets few tests at a time: the long ones lie together, and no worker is to get them all."""
    if getattr(config.option, "maxschedchunk", 0) is None:
        config.option.maxschedchunk = 4


def pytest_collection_modifyitems(items) -> None:
    """What takes long comes first, and is not what one worker does when the others are done."""
    items.sort(key=lambda item: next((i for i, name in enumerate(LONG) if name in item.path.parts), len(LONG)))
