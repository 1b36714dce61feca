"""Token files (``formats/tokens-bin.md``): a 128-byte header and the ids, memory-mapped.

Also opens, when told so, the ``.bin`` layouts of llm.c (``dev/data/data_common.py``: 256 int32 of header) and nanoGPT
(``data/openwebtext/prepare.py``: bare uint16).
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.errors import FormatError, nearest
from tinyllm.formats.atomic import write_atomic
from tinyllm.formats.regular import regular

MAGIC = b"TLTOKENS"
VERSION = 1
HEADER = struct.Struct("<8sIIQQQ32s56s")  # magic, version, width, vocab_size, count, n_bytes, tokenizer, zeros
LAYOUTS = ("tinyllm", "llm.c", "nanogpt")

_LLMC_HEADER_BYTES = 256 * 4
_LLMC_EVAL_MAGIC = 20240522
_LLMC = {20240520: (1, 2, 50257), 20240801: (7, 4, 128256)}  # magic: (version, width, vocabulary of its tokenizer)
_CHUNK = 1 << 22  # ids compared at a time, so that a file larger than memory can be checked


@dataclass(frozen=True, eq=False)
class TokenFile:
    """An opened token file.

    Attributes
    ----------
    ids
        Unsigned integers ``[n]``, memory-mapped and read-only. May be empty: what refuses an empty text is the metric.
    vocab_size
        Every id lies below it.
    n_bytes
        UTF-8 bytes of tokens 1 … n−1 (token 0 is never scored), or None where the layout does not say.
    tokenizer_sha256
        Hex hash of the tokenizer, or None for bytes.
    sha256
        Hex hash of the whole file; of the bytes themselves for a text in memory.
    name
        The path, or the name of a text in memory.
    """

    ids: NDArray[np.unsignedinteger[Any]]
    vocab_size: int
    n_bytes: int | None
    tokenizer_sha256: str | None
    sha256: str
    name: str


@dataclass(frozen=True)
class _Layout:
    """What a header says."""

    offset: int
    width: int
    count: int
    vocab_size: int
    n_bytes: int | None
    tokenizer_sha256: str | None


def _check_length(path: Path, size: int, header_bytes: int, count: int, width: int) -> None:
    expected = header_bytes + count * width
    if size != expected:
        verdict = "it is cut short" if size < expected else f"{size - expected} bytes trail"
        fault = f"must be {expected} bytes ({header_bytes} + {count} tokens × {width}), got {size}: {verdict}"
        raise FormatError(path, fault, where="file length")


def _parse_tinyllm(path: Path, head: bytes, size: int) -> _Layout:
    if not head:
        raise FormatError(path, f"must hold a header of {HEADER.size} bytes, got an empty file", where="file length")
    if not head.startswith(MAGIC):
        llmc = len(head) >= 4 and int.from_bytes(head[:4], "little") in _LLMC
        fix = 'it is llm.c\'s: say layout = "llm.c"' if llmc else f"a foreign file needs layout = one of {LAYOUTS[1:]}"
        raise FormatError(path, f"must start with {MAGIC!r}, got {head[:8]!r}; {fix}", where="header bytes 0-8")
    if len(head) < HEADER.size:
        raise FormatError(
            path, f"must hold a header of {HEADER.size} bytes, got {size}: cut short", where="file length"
        )
    _, version, width, vocab_size, count, n_bytes, tokenizer, zeros = HEADER.unpack(head[: HEADER.size])
    if version != VERSION:
        raise FormatError(path, f"version must be {VERSION}, got {version}", where="header bytes 8-12")
    if width not in (1, 2, 4):
        raise FormatError(path, f"bytes per token must be 1, 2 or 4, got {width}", where="header bytes 12-16")
    if not 1 <= vocab_size <= 256**width:
        fault = f"vocabulary size must lie in 1 … {256**width} for {width}-byte tokens, got {vocab_size}"
        raise FormatError(path, fault, where="header bytes 16-24")
    _check_length(path, size, HEADER.size, count, width)
    is_bytes = vocab_size == 256 and width == 1 and not any(tokenizer)
    if is_bytes and n_bytes != max(count - 1, 0):
        fault = f"bytes of tokens 1 … n−1 must be {max(count - 1, 0)} for {count} byte tokens, got {n_bytes}"
        raise FormatError(path, fault, where="header bytes 32-40")
    if (n_bytes == 0) != (count < 2):
        fault = f"bytes of tokens 1 … n−1 must be 0 exactly when there are none, got {n_bytes} for {count} tokens"
        raise FormatError(path, fault, where="header bytes 32-40")
    if any(zeros):
        raise FormatError(path, f"must be zeros, got {zeros!r}", where="header bytes 72-128")
    return _Layout(HEADER.size, width, count, vocab_size, n_bytes, tokenizer.hex() if any(tokenizer) else None)


def _parse_llmc(path: Path, head: bytes, size: int) -> _Layout:
    if len(head) < _LLMC_HEADER_BYTES:
        raise FormatError(path, f"must hold a header of {_LLMC_HEADER_BYTES} bytes, got {size}", where="file length")
    magic, version, count, *rest = struct.unpack("<256i", head)
    if magic not in _LLMC:
        hint = "; that one is a multiple-choice file" if magic == _LLMC_EVAL_MAGIC else ""
        raise FormatError(path, f"magic must be one of {sorted(_LLMC)}, got {magic}{hint}", where="header int 0")
    wanted, width, vocab_size = _LLMC[magic]
    if version != wanted:
        raise FormatError(path, f"version must be {wanted} for magic {magic}, got {version}", where="header int 1")
    if count < 0:
        raise FormatError(path, f"count must not be negative, got {count}", where="header int 2")
    if any(rest):
        place = 3 + next(i for i, value in enumerate(rest) if value)
        raise FormatError(path, f"must be 0, got {rest[place - 3]}", where=f"header int {place}")
    _check_length(path, size, _LLMC_HEADER_BYTES, count, width)
    return _Layout(_LLMC_HEADER_BYTES, width, count, vocab_size, None, None)


def _parse_nanogpt(path: Path, size: int, vocab_size: int | None) -> _Layout:
    if vocab_size is None:
        raise FormatError(path, "needs vocab_size, got None: a nanoGPT file has no header to say it")
    _check_length(path, size, 0, size // 2, 2)
    return _Layout(0, 2, size // 2, vocab_size, None, None)


def _agreed(path: Path, found: _Layout, layout: str, vocab_size: int | None, n_bytes: int | None) -> _Layout:
    """What the caller says, laid over what the header says; our own header cannot be overruled."""
    for key, told, read in (("vocab_size", vocab_size, found.vocab_size), ("n_bytes", n_bytes, found.n_bytes)):
        if layout == "tinyllm" and told is not None and told != read:
            raise FormatError(path, f"{key} must be what the header says ({read}), got {told}; leave it out")
        if told is not None and told < 0:
            raise FormatError(path, f"{key} must not be negative, got {told}")
    vocabulary = found.vocab_size if vocab_size is None else vocab_size
    if not 1 <= vocabulary <= 256**found.width:
        fault = f"vocab_size must lie in 1 … {256**found.width} for {found.width}-byte tokens, got {vocabulary}"
        raise FormatError(path, fault)
    told_bytes = found.n_bytes if n_bytes is None else n_bytes
    return _Layout(found.offset, found.width, found.count, vocabulary, told_bytes, found.tokenizer_sha256)


def _first_at_least(ids: NDArray[Any], bound: int) -> int | None:
    """Position of the first id that is not below `bound`."""
    for start in range(0, len(ids), _CHUNK):
        bad = ids[start : start + _CHUNK] >= bound
        if bad.any():
            return start + int(bad.argmax())
    return None


def open_tokens(
    path: str | Path, *, layout: str = "tinyllm", vocab_size: int | None = None, n_bytes: int | None = None
) -> TokenFile:
    """Open a token file; every header field and every id is checked here and trusted afterwards.

    Parameters
    ----------
    path
        The file.
    layout
        ``"tinyllm"`` (``formats/tokens-bin.md``), ``"llm.c"`` or ``"nanogpt"``. Never guessed.
    vocab_size
        For foreign layouts. nanoGPT needs it; llm.c's default is the vocabulary of the tokenizer its magic names.
    n_bytes
        For foreign layouts: UTF-8 bytes of tokens 1 … n−1, which they do not carry.

    Raises
    ------
    FormatError
        When the file cannot be read, a header field is wrong, the file is longer or shorter than its header says, or an
        id is not below the vocabulary size (the first such position is named).
    ValueError
        On an unknown `layout`.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {LAYOUTS}, got {layout!r}; {nearest(layout, LAYOUTS)}")
    path = Path(path)
    try:
        with regular(path).open("rb") as handle:
            head = handle.read(_LLMC_HEADER_BYTES)
            handle.seek(0)
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
            size = handle.tell()
    except OSError as error:
        raise FormatError(path, f"must be a readable file, got {error.strerror!r}") from error
    if layout == "nanogpt":
        found = _parse_nanogpt(path, size, vocab_size)
    else:
        found = (_parse_tinyllm if layout == "tinyllm" else _parse_llmc)(path, head, size)
    found = _agreed(path, found, layout, vocab_size, n_bytes)
    dtype = np.dtype(f"<u{found.width}")
    ids: NDArray[Any] = np.empty(0, dtype)  # an empty map is not allowed
    if found.count:
        ids = np.memmap(path, dtype, mode="r", offset=found.offset, shape=(found.count,)).view(np.ndarray)
    if found.vocab_size < 256**found.width and (bad := _first_at_least(ids, found.vocab_size)) is not None:
        fault = f"must lie below the vocabulary size {found.vocab_size}, got {ids[bad]}"
        raise FormatError(path, fault, where=f"token {bad}")
    return TokenFile(ids, found.vocab_size, found.n_bytes, found.tokenizer_sha256, digest, str(path))


def write_tokens(
    path: str | Path, ids: ArrayLike, *, vocab_size: int, n_bytes: int, tokenizer_sha256: str | None = None
) -> None:
    """Write a token file, with the narrowest tokens that hold the vocabulary.

    Parameters
    ----------
    path
        The file; replaced atomically.
    ids
        Integers ``[n]`` in ``[0, vocab_size)``.
    vocab_size
        1 … 2**32.
    n_bytes
        UTF-8 bytes of tokens 1 … n−1; 0 exactly when n < 2.
    tokenizer_sha256
        64 hex digits, or None for bytes.

    Raises
    ------
    ValueError
        When an argument breaks a rule that `open_tokens` would refuse.
    """
    array = np.asarray(ids)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"ids must be one-dimensional integers, got {array.dtype} of shape {array.shape}")
    if not 1 <= vocab_size <= 2**32:
        raise ValueError(f"vocab_size must lie in 1 … 2**32, got {vocab_size}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < vocab_size:
        raise ValueError(f"ids must lie in 0 … {vocab_size - 1}, got {array.min()} … {array.max()}")
    if n_bytes < 0 or (n_bytes == 0) != (array.size < 2):
        raise ValueError(f"n_bytes must be 0 exactly when n < 2, else positive, got {n_bytes} for {array.size} tokens")
    width = next(w for w in (1, 2, 4) if vocab_size <= 256**w)
    if vocab_size == 256 and tokenizer_sha256 is None and n_bytes != max(array.size - 1, 0):
        raise ValueError(f"n_bytes must be {max(array.size - 1, 0)} for {array.size} byte tokens, got {n_bytes}")
    tokenizer = bytes.fromhex(tokenizer_sha256) if tokenizer_sha256 is not None else bytes(32)
    if len(tokenizer) != 32 or (tokenizer_sha256 is not None and not any(tokenizer)):
        raise ValueError(f"tokenizer_sha256 must be 64 hex digits, not all 0, got {tokenizer_sha256!r}")
    header = HEADER.pack(MAGIC, VERSION, width, vocab_size, array.size, n_bytes, tokenizer, bytes(56))
    write_atomic(path, header + array.astype(f"<u{width}").tobytes())


def byte_tokens(data: bytes, name: str) -> TokenFile:
    """A text in memory as byte tokens: token i is byte i, so ``n_bytes`` is n − 1.

    Parameters
    ----------
    data
        The text.
    name
        What to call it in messages and rows.
    """
    ids = np.frombuffer(data, np.uint8)
    return TokenFile(ids, 256, max(len(data) - 1, 0), None, hashlib.sha256(data).hexdigest(), name)
