"""File names under any locale: in our files a name is UTF-8; in ``LC_ALL=C`` Python holds one of bytes it escapes."""

from __future__ import annotations

import os


def for_system(name: str) -> str:
    """A name as a file of ours has it, as this process's file functions want it; the same where they speak UTF-8."""
    try:
        return os.fsdecode(name.encode())
    except UnicodeEncodeError:  # half a surrogate pair: a name that is no text, and stays what it is
        return name


def for_people(text: str) -> str:
    """A name, or a message that holds one, with the bytes that Python escaped read as UTF-8, where they are that."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text
