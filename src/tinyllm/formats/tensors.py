"""safetensors files: deterministic bytes out, memory-mapped arrays in, and plain words for a file that is none.

The library's writer puts metadata in hash order, which changes from run to run; ours sorts: one content, one hash. Its
reader is what judges a header (offsets, overlaps, lengths); the arrays are then mapped, not copied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import CheckpointError
from tinyllm.formats.regular import regular

_CODES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
}
_NAMES = {name: code for code, name in _CODES.items()}
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))


@dataclass(frozen=True)
class TensorInfo:
    """One entry of a header: its dtype by numpy's name (safetensors' own where numpy has none, as BF16), and place."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Header:
    """The header of a safetensors file: ``offset`` bytes in all, then the data that `tensors` points into."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    offset: int


def _disguise(head: bytes) -> str:
    """What a file that is no safetensors is, by its first bytes."""
    if head.startswith(b"PK\x03\x04"):
        return "this is a zip (torch.save writes one), not safetensors; nothing is unpickled: convert it first"
    if head.startswith(_PICKLES):
        return "this is a pickle, not safetensors; nothing is unpickled: convert it first"
    if head.startswith(b"GGUF"):
        return "this is a GGUF file, not safetensors"
    if head.startswith(b"version https://git-lfs"):
        return "this is a git-lfs pointer; fetch the file itself"
    return ""


def read_header(path: str | Path) -> Header:
    """The checked header of a safetensors file.

    Parameters
    ----------
    path
        The file. Nothing in it is executed or unpickled.

    Raises
    ------
    CheckpointError
        When the file cannot be read, is cut short, or is something else (a pickle, a zip).
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    try:
        with regular(path).open("rb") as handle:
            head = handle.read(64)
            with safe_open(path, framework="np"):  # judges the header; a bad one never reaches the lines below
                pass
            handle.seek(8)
            text = handle.read(int.from_bytes(head[:8], "little"))
    except SafetensorError as error:
        hint = _disguise(head) or "cut short or damaged; copy it again"
        raise CheckpointError(path, f"must be a safetensors file, got {error}; {hint}") from error
    except OSError as error:
        raise CheckpointError(path, f"must be a readable file, got {error.strerror or error!r}") from error
    raw: dict[str, Any] = json.loads(text)
    metadata = raw.pop("__metadata__", None) or {}
    tensors = {
        name: TensorInfo(_CODES.get(info["dtype"], info["dtype"]), tuple(info["shape"]), *info["data_offsets"])
        for name, info in raw.items()
    }
    return Header(tensors, metadata, 8 + len(text))


def map_tensor(path: str | Path, header: Header, name: str) -> NDArray[Any]:
    """One tensor as a private mapping of the file: pages are shared until written, and writing never reaches the file.

    Parameters
    ----------
    path, header
        The file and what `read_header` said of it.
    name
        A tensor with a dtype that numpy has.
    """
    info = header.tensors[name]
    dtype = np.dtype(info.dtype)
    if info.start == info.stop:  # an empty map is not allowed
        return np.empty(info.shape, dtype)
    flat = np.memmap(path, np.uint8, mode="c", offset=header.offset + info.start, shape=(info.stop - info.start,))
    return flat.view(np.ndarray).view(dtype).reshape(info.shape)


def serialize(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file; equal input gives equal bytes, whatever the order of the mappings.

    Parameters
    ----------
    tensors
        Arrays of the dtypes numpy and safetensors share. Wide ones come first, so that all are aligned.
    metadata
        Strings by name, sorted in the file.

    Raises
    ------
    ValueError
        On another dtype.
    """
    arrays = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in tensors.items()}
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise ValueError(f"tensor {name!r} must have one of the dtypes {sorted(_NAMES)}, got {array.dtype}")
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    position = 0
    for name in names:
        array = arrays[name]
        stop = position + array.nbytes
        code = _NAMES[array.dtype.name]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [position, stop]}
        position = stop
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    little = (arrays[name].astype(arrays[name].dtype.newbyteorder("<"), copy=False).tobytes() for name in names)
    return len(text).to_bytes(8, "little") + text + b"".join(little)
