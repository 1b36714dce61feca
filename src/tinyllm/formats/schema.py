"""JSON Schemas (2020-12) of the formats, and validation whose errors a person can act on."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tinyllm
from tinyllm.errors import FormatError, nearest
from tinyllm.formats.strict_json import is_non_finite, walk


def formats_folder() -> Path:
    """Where the format descriptions lie: in the package when installed, at the top of the repository when not."""
    package = Path(tinyllm.__file__).parent
    installed = package / "schemas"
    return installed if installed.is_dir() else package.parent.parent / "formats"


def schema_path(name: str) -> Path:
    """The file of a schema.

    Parameters
    ----------
    name
        ``"eval-results"`` or ``"manifest"``.

    Raises
    ------
    ValueError
        When there is no schema of that name.
    """
    path = formats_folder() / f"{name}.schema.json"
    if not path.is_file():
        known = [entry.name.removesuffix(".schema.json") for entry in formats_folder().glob("*.schema.json")]
        raise ValueError(f"name must be that of a schema, got {name!r}; {nearest(name, known)}")
    return path


@functools.cache
def load_schema(name: str) -> dict[str, Any]:
    """The schema as a dict; shared, so not to be changed.

    Parameters
    ----------
    name
        ``"eval-results"`` or ``"manifest"``.
    """
    schema: dict[str, Any] = json.loads(schema_path(name).read_text(encoding="utf-8"))
    return schema


def _full_pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    """JSON Schema's ``$`` is the end of the string; Python's also lies before a final newline."""
    from jsonschema import ValidationError

    if isinstance(instance, str) and not re.fullmatch(pattern, instance):
        yield ValidationError(f"must match {pattern}")


@functools.cache
def _validator(name: str, part: str) -> Any:
    from jsonschema import Draft202012Validator, validators

    # JSON Schema calls 1.0 an integer; a manifest's stride = 64.0 is a slip of the pen
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    extend: Any = validators.extend
    strict = extend(Draft202012Validator, {"pattern": _full_pattern}, type_checker=checker)
    schema = load_schema(name)
    return strict({"$defs": schema["$defs"], "$ref": f"#/$defs/{part}"} if part else schema)


def _type_words(types: str | list[str]) -> str:
    listed = [types] if isinstance(types, str) else types
    return " or ".join(f"{'an' if word[0] in 'aeio' else 'a'} {word}" if word != "null" else word for word in listed)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _sentence(error: Any) -> str:
    """What must hold and what came, by the schema's keyword."""
    rule, wanted, value = str(error.validator), error.validator_value, error.instance
    known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
    if rule == "additionalProperties":
        key = next(key for key in value if key not in known)
        return f"unknown key {key!r}; {nearest(str(key), known)}"
    if rule == "required":
        key = next(key for key in wanted if key not in value)
        return f"missing key {key!r}"
    if rule == "oneOf":
        keys = [key for option in wanted for key in option["required"]]
        given = [key for key in keys if key in value]
        return f"must have exactly one of the keys {' and '.join(keys)}, got {' and '.join(given) or 'neither'}"
    must = {
        "type": lambda: f"must be {_type_words(wanted)}",
        "enum": lambda: f"must be one of {', '.join(map(repr, wanted))}",
        "const": lambda: f"must be {wanted!r}",
        "pattern": lambda: f"must match {wanted}",
        "minimum": lambda: f"must be at least {wanted}",
        "maximum": lambda: f"must be at most {wanted}",
        "minLength": lambda: f"must be at least {wanted} character long",
        "minItems": lambda: f"must hold at least {wanted} item",
    }
    hint = f"; {nearest(value, wanted)}" if rule == "enum" and isinstance(value, str) else ""
    because = {"then": " since the status is ok", "else": " since the status is not ok"}
    reason = next((because[step] for step in error.schema_path if step in because), "")
    return f"{must[rule]() if rule in must else error.message}{reason}, got {_short(value)}{hint}"


def _where(prefix: str, path: Iterable[str | int]) -> str:
    place = prefix
    for step in path:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
    return place


def refuse_foreign_values(document: Any, path: str | Path, where: str = "") -> None:
    """Refuse what strict JSON cannot hold: NaN, infinities, keys that are no strings, objects that are no JSON.

    Parameters
    ----------
    document
        Nested plain values.
    path, where
        The file, and the place of `document` in it.

    Raises
    ------
    FormatError
        With the path of the value; ``None`` is how a report says "no value".
    """
    for place, leaf in walk(document, where):
        if is_non_finite(leaf):
            raise FormatError(path, f"must be a finite number or null, got {leaf!r}", where=place)
        plain = (str,) if place.endswith(" (the key)") else (str, int, float, bool, type(None))
        if type(leaf) not in plain:
            fault = f"must be plain JSON, got {_short(leaf)} of type {type(leaf).__name__}"
            raise FormatError(path, fault, where=place)


def validate(document: Any, name: str, path: str | Path, *, part: str = "", where: str = "") -> None:
    """Hold a document against a schema; the outermost fault is raised, the first in document order of several.

    Parameters
    ----------
    document
        Plain JSON values.
    name
        ``"eval-results"`` or ``"manifest"``.
    path
        The file it came from, or a name for it.
    part
        A definition of the schema to hold it against instead of the whole: ``"row"``.
    where
        The path of `document` inside its file: ``"rows[3]"``.

    Raises
    ------
    FormatError
        Its ``where`` is the path into the document (``rows[3].lo``); an unknown key comes with the nearest known one.
    """
    refuse_foreign_values(document, path, where)
    # an unknown key explains the missing one beside it, so it is told first
    errors = sorted(
        _validator(name, part).iter_errors(document),
        key=lambda error: (
            len(error.absolute_path),
            not {"then", "else"}.isdisjoint(error.schema_path),
            [f"{step:09}" if isinstance(step, int) else step for step in error.absolute_path],
            error.validator != "additionalProperties",
        ),
    )
    if errors:
        raise FormatError(path, _sentence(errors[0]), where=_where(where, errors[0].absolute_path))
