"""Whole files or none: what a reader sees is the old content or the new, never a part of it."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from tinyllm.errors import FormatError


def write_atomic(path: str | Path, data: bytes) -> None:
    """Write `data` to a temporary file beside `path`, flush it to the disk, and rename it over `path`.

    Missing parent folders are made. A failure leaves the old file as it was and no temporary file behind.

    Parameters
    ----------
    path
        The file to write; replaced when it exists.
    data
        The whole content.

    Raises
    ------
    FormatError
        When the folder cannot be made or written (read-only, a file in the way, disk full), with the system's reason.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # os.open instead of tempfile: the file gets the permissions the user's umask asks for, not 0600
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(target)
    except OSError as error:
        raise FormatError(
            target, f"must be writable, got {error.strerror!r}; choose a folder that can be written"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
