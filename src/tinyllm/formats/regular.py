"""Files that can be read to their end: a pipe or a device in a file's place is refused, where opening it would wait."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

_OTHER = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def regular(path: Path) -> Path:
    """The path, to be opened.

    Parameters
    ----------
    path
        Of a file; a folder is left to whoever opens it.

    Raises
    ------
    OSError
        When nothing is there, or what is there is no file: ``strerror`` says what it is.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind in _OTHER:
        raise OSError(errno.EINVAL, f"{_OTHER[kind]}, which is no file", str(path))
    return path
