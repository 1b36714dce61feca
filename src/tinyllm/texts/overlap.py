"""The rule that keeps training text apart from held-out text: they share no piece of 50 bytes."""

from collections.abc import Iterable

WINDOW_BYTES = 50


def windows(data: bytes) -> set[bytes]:
    """Return every piece of `WINDOW_BYTES` bytes of a text; empty when the text is shorter."""
    return {data[start : start + WINDOW_BYTES] for start in range(len(data) - WINDOW_BYTES + 1)}


def joined_apart(pieces: Iterable[bytes], held_out: set[bytes], *, n_bytes: int | None = None) -> tuple[bytes, int]:
    """Join pieces of text, leaving out each one that would bring a held-out window in.

    A piece is looked at together with the end of what stands before it, so that no join makes a held-out window either.

    Parameters
    ----------
    pieces
        Stories or paragraphs, with their separators.
    held_out
        The windows of the held-out text.
    n_bytes
        Stop here, cutting the last piece; None takes all pieces.

    Returns
    -------
    (bytes, int)
        The text, and how many pieces were left out.
    """
    joined = bytearray()
    dropped = 0
    for piece in pieces:
        candidate = bytes(joined[-(WINDOW_BYTES - 1) :]) + piece
        if held_out.isdisjoint(
            candidate[start : start + WINDOW_BYTES] for start in range(len(candidate) - WINDOW_BYTES + 1)
        ):
            joined += piece
        else:
            dropped += 1
        if n_bytes is not None and len(joined) >= n_bytes:
            return bytes(joined[:n_bytes]), dropped
    return bytes(joined), dropped
