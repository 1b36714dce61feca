"""A checkpoint's config: reading it, and holding it against the keys its family knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyllm.errors import CheckpointError, nearest
from tinyllm.formats.regular import regular
from tinyllm.formats.strict_json import parse
from tinyllm.formats.tensors import read_header

CONFIG = "config.json"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class ConfigKey:
    """What a family asks of one key of its config.

    Attributes
    ----------
    must
        The rule in words: ``"an integer of at least 1"``.
    holds
        The rule.
    required
        Whether the key must be there.
    """

    must: str
    holds: Callable[[Any], bool]
    required: bool = True


def integer(least: int = 1, most: int | None = None, *, required: bool = True) -> ConfigKey:
    """An integer (no bool, no float) in ``least … most``."""
    must = f"an integer of at least {least}" if most is None else f"an integer in {least} … {most}"

    def holds(value: Any) -> bool:
        return type(value) is int and value >= least and (most is None or value <= most)

    return ConfigKey(must, holds, required)


def number(least: float = float("-inf"), most: float = float("inf"), *, required: bool = True) -> ConfigKey:
    """A finite number (no bool) in ``least … most``."""

    def holds(value: Any) -> bool:
        return type(value) in (int, float) and least <= value <= most

    return ConfigKey(f"a number in {least} … {most}", holds, required)


def one_of(*values: str | bool | int, required: bool = True) -> ConfigKey:
    """One of the listed values, of the same type."""
    must = repr(values[0]) if len(values) == 1 else f"one of {', '.join(map(repr, values))}"
    return ConfigKey(must, lambda value: any(type(value) is type(v) and value == v for v in values), required)


def string(*, required: bool = True) -> ConfigKey:
    """A non-empty string."""
    return ConfigKey("a non-empty string", lambda value: isinstance(value, str) and bool(value), required)


def strings(*, required: bool = True) -> ConfigKey:
    """A list of strings."""
    return ConfigKey(
        "a list of strings", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value), required
    )


def anything(*, required: bool = False) -> ConfigKey:
    """Any JSON value, optional unless said: for keys that only record where a checkpoint comes from."""
    return ConfigKey("any value", lambda _: True, required)


def check_config(config: Mapping[str, Any], spec: Mapping[str, ConfigKey], path: str | Path) -> None:
    """Hold a config against the keys of its family.

    Parameters
    ----------
    config
        What `read_config` returned.
    spec
        Every key the family knows. ``tl_arch`` is known everywhere: the list of families has judged it.
    path
        The checkpoint, for the message.

    Raises
    ------
    CheckpointError
        On an unknown key (with the nearest known one), a missing key, a value that breaks its rule.
    """
    known = {"tl_arch": string(), **spec}
    for key in config:
        if key not in known:
            raise CheckpointError(path, f"unknown key {key!r}; {nearest(key, known)}", where="config")
    for key, rule in known.items():
        if key not in config:
            if rule.required:
                raise CheckpointError(path, f"missing key {key!r}, which must be {rule.must}", where="config")
        elif not rule.holds(config[key]):
            raise CheckpointError(path, f"must be {rule.must}, got {config[key]!r}", where=f"config.{key}")


def inside(folder: Path, name: str) -> Path:
    """``folder/name``, refused when it is a link that leads out of the folder.

    Raises
    ------
    CheckpointError
        A checkpoint is what its folder holds; a link to elsewhere could name any file of the machine.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise CheckpointError(path, f"must lie in its folder, got a link to {path.resolve()}; copy the file")
    return path


def weights_path(path: str | Path) -> Path:
    """The safetensors file of a checkpoint: the file itself, the folder's ``model.safetensors``, or its only one.

    Raises
    ------
    CheckpointError
        When there is none, or several and none of that name.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(path, "must be a checkpoint folder or file, got nothing there")
    if path.is_file():
        return path
    found = sorted(entry.name for entry in path.glob("*.safetensors"))
    name = WEIGHTS if WEIGHTS in found else found[0] if len(found) == 1 else None
    if name is None:
        raise CheckpointError(path, f"must hold {WEIGHTS} (or one .safetensors file), got {found or 'none'}")
    return inside(path, name)


def _from_metadata(path: Path) -> dict[str, Any]:
    """The config that a one-file checkpoint carries: ``tl_arch`` as it stands, every other value as JSON."""
    metadata = read_header(path).metadata
    if "tl_arch" not in metadata:
        raise CheckpointError(path, f"must name its tl_arch in the metadata, got keys {sorted(metadata)}")
    config: dict[str, Any] = {"tl_arch": metadata["tl_arch"]}
    for key, value in sorted(metadata.items()):
        if key != "tl_arch":
            config[key] = parse(value, path, where=f"metadata {key}", error=CheckpointError)
    return config


def read_config(path: str | Path) -> dict[str, Any]:
    """The config of a checkpoint, as its file has it.

    Parameters
    ----------
    path
        A folder with ``config.json``; else a safetensors file, or a folder that holds exactly one, whose metadata is
        the config (``tl_arch`` a bare string, every other value JSON).

    Raises
    ------
    CheckpointError
        When there is nothing to read, the JSON is broken or no object, or a link leads out of the folder.
    """
    path = Path(path)
    try:
        present = (path / CONFIG).is_symlink() or (path / CONFIG).exists()
    except OSError as error:  # what is no answer: a name too long, a folder that may not be entered
        raise CheckpointError(path, f"must be a readable checkpoint, got {error.strerror!r}") from error
    if path.is_dir() and not present and len(list(path.glob("*.safetensors"))) != 1:
        raise CheckpointError(path, f"must hold {CONFIG} (or exactly one .safetensors file that carries its config)")
    if not present:
        return _from_metadata(weights_path(path))
    file = inside(path, CONFIG)
    try:
        text = regular(file).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CheckpointError(file, f"must be UTF-8, got byte {error.object[error.start]:#04x}") from error
    except OSError as error:
        raise CheckpointError(file, f"must be a readable file, got {error.strerror!r}") from error
    config = parse(text, file, error=CheckpointError)
    if not isinstance(config, dict):
        raise CheckpointError(file, f"must be a JSON object, got {json.dumps(config)[:60]}")
    return config
