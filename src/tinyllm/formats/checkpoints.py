"""Checkpoints (``formats/checkpoints.md``): a folder of ``config.json`` and ``model.safetensors``, or one file.

Loading is strict and nothing is unpickled. No torch here: arrays are numpy, mapped from the file; ``torch.from_numpy``
shares their memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import CheckpointError, nearest
from tinyllm.formats.atomic import write_atomic
from tinyllm.formats.config import CONFIG, WEIGHTS, check_config, inside, read_config, weights_path
from tinyllm.formats.regular import regular
from tinyllm.formats.tensors import Header, map_tensor, read_header, serialize

__all__ = [
    "FLOATS",
    "check_config",
    "load_tensors",
    "read_config",
    "read_header",
    "save",
    "save_file",
    "weights_path",
    "weights_sha256",
]

FLOATS = ("float32", "float16")
TOKENIZER_FILES = (
    *("added_tokens.json", "merges.txt", "special_tokens_map.json", "tokenizer.json", "tokenizer.model"),
    *("tokenizer_config.json", "vocab.json", "vocab.txt"),
)
"""Of a folder in Hugging Face layout; ours have none."""

TensorSpec = tuple[Sequence[int], str | Sequence[str]]


def _check_header(path: Path, header: Header, spec: Mapping[str, TensorSpec]) -> None:
    for name in sorted(spec.keys() - header.tensors.keys()):
        extra = header.tensors.keys() - spec.keys()
        hint = f"; {nearest(name, extra)}" if extra else ""
        raise CheckpointError(path, f"missing tensor {name!r}{hint}")
    for name in sorted(header.tensors.keys() - spec.keys()):
        raise CheckpointError(path, f"unknown tensor {name!r}; {nearest(name, spec)}")
    for name, (shape, dtypes) in spec.items():
        info = header.tensors[name]
        allowed = (dtypes,) if isinstance(dtypes, str) else tuple(dtypes)
        if info.shape != tuple(shape):
            raise CheckpointError(path, f"must have shape {tuple(shape)}, got {info.shape}", where=f"tensor {name!r}")
        if info.dtype not in allowed:
            must = " or ".join(allowed)
            raise CheckpointError(path, f"must have dtype {must}, got {info.dtype}", where=f"tensor {name!r}")


def _refuse_non_finite(path: Path, name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind == "f" and not (finite := np.isfinite(array)).all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        place = ", ".join(map(str, index))
        raise CheckpointError(path, f"must be finite, got {array[index]} at [{place}]", where=f"tensor {name!r}")


def load_tensors(path: str | Path, spec: Mapping[str, TensorSpec], *, upcast: bool = True) -> dict[str, NDArray[Any]]:
    """The tensors of a checkpoint, each held against its family's list.

    Parameters
    ----------
    path
        The checkpoint folder, or a safetensors file.
    spec
        Name → (shape, dtype or dtypes by numpy's names), every tensor the family has; `FLOATS` is float32 or float16.
    upcast
        Whether float16 comes back as float32 (a copy). The rest is mapped: private, writable, copied only on writing.

    Returns
    -------
    dict[str, ndarray]
        In the order of `spec`.

    Raises
    ------
    CheckpointError
        On a missing or extra tensor (with the nearest name), another shape or dtype (with both), a NaN or an infinity
        (with its index), a file that is no safetensors, a link that leads out of the folder.
    """
    file = weights_path(path)
    header = read_header(file)
    _check_header(file, header, spec)
    arrays = {}
    for name in spec:
        array = map_tensor(file, header, name)
        _refuse_non_finite(file, name, array)
        arrays[name] = array.astype(np.float32) if upcast and array.dtype == np.float16 else array
    return arrays


def _storable(path: Path, tensors: Mapping[str, NDArray[Any]], dtype: str) -> dict[str, NDArray[Any]]:
    if dtype not in FLOATS:
        raise ValueError(f"dtype must be one of {FLOATS}, got {dtype!r}")
    stored = {}
    for name, tensor in tensors.items():
        array = np.asarray(tensor)
        if array.dtype.kind == "f":
            _refuse_non_finite(path, name, array)
            with np.errstate(over="ignore"):  # an overflow is refused by name on the next line
                array = array.astype(dtype)
            _refuse_non_finite(path, name, array)
        stored[name] = array
    return stored


def save(
    path: str | Path, config: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], *, dtype: str = "float32"
) -> None:
    """Write a checkpoint folder; equal input gives equal bytes.

    Parameters
    ----------
    path
        The folder; made when missing.
    config
        JSON values; ``tl_arch`` is written first, the rest in the given order.
    tensors
        Arrays by name. Floats are stored as `dtype`, the others as they are.
    dtype
        ``"float32"`` or ``"float16"``.

    Raises
    ------
    ValueError
        On a config without ``tl_arch``, a non-finite weight or one that overflows `dtype` (a `CheckpointError`).
    """
    if not isinstance(config.get("tl_arch"), str):
        raise ValueError(f"config must name its family in 'tl_arch', got {config.get('tl_arch')!r}")
    folder = Path(path)
    data = serialize(_storable(folder, tensors, dtype))
    ordered = {"tl_arch": config["tl_arch"], **config}
    text = json.dumps(ordered, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(folder / WEIGHTS, data)
    write_atomic(folder / CONFIG, text.encode())


def save_file(path: str | Path, metadata: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a one-file checkpoint, whose metadata is its config; equal input gives equal bytes.

    Parameters
    ----------
    path
        The file.
    metadata
        The config: ``tl_arch`` is stored as it stands, every other value as JSON.
    tensors
        Arrays by name, stored as they are.

    Raises
    ------
    ValueError
        On metadata without ``tl_arch``, or a non-finite weight (a `CheckpointError`).
    """
    if not isinstance(metadata.get("tl_arch"), str):
        raise ValueError(f"metadata must name its family in 'tl_arch', got {metadata.get('tl_arch')!r}")
    for name, array in tensors.items():
        _refuse_non_finite(Path(path), name, np.asarray(array))
    strings = {
        key: value if key == "tl_arch" else json.dumps(value, allow_nan=False, sort_keys=True)
        for key, value in metadata.items()
    }
    write_atomic(path, serialize(tensors, strings))


def _own_files(path: str | Path) -> list[Path]:
    """The files that a checkpoint is made of, in the order of its hash."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    names = [CONFIG] if (path / CONFIG).exists() else []
    names += sorted(entry.name for entry in path.glob("*.safetensors"))
    names += [name for name in TOKENIZER_FILES if names and (path / name).exists()]
    return [inside(path, name) for name in names]


def files_stamp(path: str | Path) -> tuple[tuple[str, int, int, int], ...]:
    """What tells whether a checkpoint's files were written again: name, inode, size and time of each; quick.

    Empty where there is no checkpoint: whoever loads it says so.
    """
    try:
        stats = [(file.name, file.stat()) for file in _own_files(path)]
    except (OSError, CheckpointError):
        return ()
    return tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def weights_sha256(path: str | Path) -> str:
    """The hash that names a checkpoint in a report: ``cat config.json *.safetensors | sha256sum`` in its folder.

    Where the folder holds a tokenizer (Hugging Face layout), its files follow, by name: it is a part of the model.

    Parameters
    ----------
    path
        A folder, or one file (whose own hash it then is).

    Raises
    ------
    CheckpointError
        When a file cannot be read, the folder holds neither, or a link leads out of it.
    """
    files = _own_files(path)
    if not files:
        raise CheckpointError(Path(path), f"must hold {CONFIG} or a .safetensors file, got neither")
    digest = hashlib.sha256()
    for file in files:
        try:
            with regular(file).open("rb") as handle:
                while chunk := handle.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise CheckpointError(file, f"must be a readable file, got {error.strerror!r}") from error
    return digest.hexdigest()
