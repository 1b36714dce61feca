"""Per-item scores beside a report (``items.safetensors``), so that any two reports can be compared item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.errors import FormatError
from tinyllm.formats.atomic import write_atomic
from tinyllm.formats.tensors import Header, map_tensor, read_header, serialize

ItemScores = tuple[NDArray[np.float64], list[str] | None]
_PARTS = {"scores": "float64", "id_bytes": "uint8", "id_offsets": "int64"}


def write_items(path: str | Path, results: Mapping[str, tuple[ArrayLike, Sequence[str] | None]]) -> None:
    """Write the per-item scores of a report's rows; equal input gives equal bytes.

    Parameters
    ----------
    path
        The file; replaced atomically.
    results
        Row name → (scores ``[n]``, the items' ids in the same order or None).

    Raises
    ------
    ValueError
        When scores are not one-dimensional or hold a NaN, or the ids are not one per score.
    """
    tensors: dict[str, NDArray[np.generic]] = {}
    for name, (scores, ids) in results.items():
        array = np.asarray(scores, np.float64)
        if array.ndim != 1 or np.isnan(array).any():
            raise ValueError(f"scores of {name!r} must be one-dimensional without NaN, got shape {array.shape}")
        tensors[f"{name}/scores"] = array
        if ids is None:
            continue
        if len(ids) != len(array):
            raise ValueError(f"ids of {name!r} must be one per score ({len(array)}), got {len(ids)}")
        encoded = [identity.encode("utf-8", "surrogatepass") for identity in ids]
        tensors[f"{name}/id_bytes"] = np.frombuffer(b"".join(encoded), np.uint8)
        tensors[f"{name}/id_offsets"] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    write_atomic(path, serialize(tensors))


def _ids(path: str | Path, header: Header, name: str, count: int) -> list[str]:
    data = map_tensor(path, header, f"{name}/id_bytes").tobytes()
    offsets = map_tensor(path, header, f"{name}/id_offsets").tolist()
    if len(offsets) != count + 1 or offsets[0] != 0 or offsets[-1] != len(data) or sorted(offsets) != offsets:
        fault = f"must be {count + 1} rising offsets from 0 to {len(data)}, got {len(offsets)} ({offsets[:3]} …)"
        raise FormatError(path, fault, where=f"{name}/id_offsets")
    try:
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(offsets)]
    except UnicodeDecodeError as error:
        fault = f"must be UTF-8, got byte {error.object[error.start]:#04x}"
        raise FormatError(path, fault, where=f"{name}/id_bytes") from error


def read_items(path: str | Path) -> dict[str, ItemScores]:
    """The per-item scores that `write_items` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict[str, tuple[float64[n], list[str] | None]]
        By row name, sorted.

    Raises
    ------
    FormatError
        When the file is no safetensors file, or its tensors are not those of this format.
    """
    header = read_header(path)
    for key, info in header.tensors.items():
        name, _, part = key.rpartition("/")
        if not name or part not in _PARTS:
            raise FormatError(path, f"unknown tensor {key!r}; known are NAME/{', NAME/'.join(_PARTS)}")
        if (info.dtype, len(info.shape)) != (_PARTS[part], 1):
            fault = f"must be one-dimensional {_PARTS[part]}, got {info.dtype} of shape {info.shape}"
            raise FormatError(path, fault, where=key)
    items: dict[str, ItemScores] = {}
    for name in sorted({key.rpartition("/")[0] for key in header.tensors}):
        parts = {part for part in _PARTS if f"{name}/{part}" in header.tensors}
        if parts not in ({"scores"}, set(_PARTS)):
            raise FormatError(path, f"must hold scores, with both id tensors or none, got {sorted(parts)}", where=name)
        scores = map_tensor(path, header, f"{name}/scores")
        if np.isnan(scores).any():
            raise FormatError(path, f"must hold no NaN, got one at item {int(np.isnan(scores).argmax())}", where=name)
        items[name] = (scores, _ids(path, header, name, len(scores)) if len(parts) > 1 else None)
    return items
