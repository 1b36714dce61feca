r"""Lines of a text file, split at ``\n`` and nowhere else.

`str.splitlines` and universal newlines also split at U+2028, U+0085, vertical tabs and lone carriage returns, which
are legal inside a JSON string: a row would fall into pieces. The encoding is UTF-8 whatever the locale says.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from tinyllm.errors import FormatError
from tinyllm.formats.regular import regular

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"


def _open(path: Path) -> gzip.GzipFile | BufferedReader:
    with regular(path).open("rb") as handle:
        zipped = handle.read(2) == _GZIP
    if path.suffix == ".gz" and not zipped:
        raise FormatError(path, "must be gzip data since it is named .gz, got other bytes; compress it or rename it")
    return gzip.open(path, "rb") if zipped else path.open("rb")


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    r"""Yield the numbered lines of a UTF-8 file (plain or gzip), without their ends.

    A byte order mark, CRLF ends, a missing final newline and blank lines at the end are fine.

    Parameters
    ----------
    path
        The file; gzip is recognised by its first bytes.

    Yields
    ------
    tuple[int, str]
        The line number, counted from 1, and the text.

    Raises
    ------
    FormatError
        When the file cannot be read, is not UTF-8, is a damaged gzip, or has a blank line before its last row.
    """
    path, blank = Path(path), 0
    try:
        with _open(path) as handle:
            for number, raw in enumerate(handle, start=1):
                data = raw.removesuffix(b"\n").removesuffix(b"\r")
                try:
                    line = (data.removeprefix(_BOM) if number == 1 else data).decode("utf-8")
                except UnicodeDecodeError as error:
                    fault = f"must be UTF-8, got byte {data[error.start]:#04x} at byte {error.start} of the line"
                    raise FormatError(path, fault, where=f"line {number}") from error
                if not line.strip(" "):
                    blank = blank or number
                    continue
                if blank:
                    raise FormatError(path, "must hold a row, got a blank line; remove it", where=f"line {blank}")
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(path, f"must be a whole gzip file, got {error}; copy it again") from error
    except OSError as error:
        raise FormatError(path, f"must be a readable file, got {error.strerror!r}") from error
