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


def pytest_collection_modifyitems(items) -> None:
    """The documents first: their zoo takes longest, and is not to be what one worker does when the others are done."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")
