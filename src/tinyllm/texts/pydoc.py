"""The pydoc text: the English of the language reference that every Python carries (`pydoc_data.topics`).

Its bytes differ between Python versions, so a score on it has no baseline, and its report names the data's hash.
"""

from collections.abc import Iterator
from hashlib import sha256

from tinyllm.errors import TinyllmError
from tinyllm.texts.overlap import joined_apart, windows

HELDOUT_BYTES = 32_768
HELDOUT_SHARE = 5  # one topic in so many is held out


def topics() -> dict[str, str]:
    """Return the topics by name.

    Raises
    ------
    TinyllmError
        When this Python was installed without `pydoc_data`.
    """
    try:
        from pydoc_data.topics import topics as found
    except ImportError as error:
        raise TinyllmError(
            "text 'pydoc' needs the module pydoc_data.topics of the standard library, which this Python was installed "
            "without; install the full Python, or use text 'stories'"
        ) from error
    return dict(found)


def is_held_out(topic: str) -> bool:
    """Return whether a topic belongs to the held-out text: a hash of its name, the same in every Python version."""
    return sha256(topic.encode()).digest()[0] % HELDOUT_SHARE == 0


def held_out() -> bytes:
    """Return the held-out topics in order of name, at most `HELDOUT_BYTES` bytes."""
    found = topics()
    text = "\n\n".join(found[name] for name in sorted(found) if is_held_out(name))
    return text.encode()[:HELDOUT_BYTES].decode(errors="ignore").encode()  # a character cut in half is left out


def _paragraphs() -> Iterator[bytes]:
    found = topics()
    for name in sorted(found):
        if not is_held_out(name):
            for paragraph in found[name].split("\n\n"):
                yield paragraph.encode() + b"\n\n"


def training() -> bytes:
    """Return the other topics, without the paragraphs that share a 50-byte piece with the held-out text."""
    return joined_apart(_paragraphs(), windows(held_out()))[0]
