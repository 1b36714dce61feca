"""An entry made ready to be scored: its text or its items opened, and held against the model, before any forward.

`tinyllm.eval.zoo` scores what is prepared here and `tinyllm.eval.plan` counts it, so that a plan and a run agree.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinyllm import extensions, texts
from tinyllm.errors import FormatError
from tinyllm.formats.choices import ChoiceItem, read_choices
from tinyllm.formats.filenames import for_people
from tinyllm.formats.manifest import Entry
from tinyllm.formats.tokens import TokenFile, byte_tokens, open_tokens
from tinyllm.metrics import CHOICE_METRICS, METRICS, TEXT_METRICS, Metric, find_metric
from tinyllm.report.rows import Row
from tinyllm.tasks import Task, find_task, read_task

if TYPE_CHECKING:
    from tinyllm.scoring.choices import Tokenizer


BYTES = 256
"""The vocabulary of a model whose tokens are bytes."""


class ChoiceTask(NamedTuple):
    """A multiple-choice task, how one model reads it, and its metric; max_len is None where the model has no limit."""

    items: list[ChoiceItem]
    tok: Tokenizer
    max_len: int | None
    metric: Metric


def task_name(entry: Entry) -> str:
    """The row's label where the entry has none: the text's name, or the file's up to its first dot."""
    if entry.text is not None:
        return entry.text[0]
    if entry.own_task is not None:
        return entry.own_task
    path = entry.choices or entry.data_path
    return for_people(path.name).split(".")[0] if path is not None else ""


def metric_of(entry: Entry, row: Row) -> Metric:
    """The entry's metric, or its kind's first; the name goes into the row.

    Raises
    ------
    ValueError
        For a metric that there is none of, or that is of texts where the entry has items, or the other way round.
    ExtensionError
        For a metric of the user's own that cannot be used.
    """
    allowed, what = (CHOICE_METRICS, "a multiple-choice task") if entry.has_items else (TEXT_METRICS, "a text")
    name = entry.metric or (_own_task(entry).metric if entry.own_task is not None else allowed[0])
    own = extensions.known("metrics", entry.code) - METRICS.keys()
    if name not in allowed and name not in own:
        msg = f"metric of {what} must be one of {', '.join((*allowed, *sorted(own)))}, got {name!r}"
        raise ValueError(msg)
    metric = find_metric(name, folder=entry.code)
    if name in own and (metric.score is None) == entry.has_items:
        has = "no score of an item" if metric.score is None else "a score of an item"
        msg = f"metric of {what} must be one of {', '.join(allowed)}, or like them, got {name!r}, which has {has}"
        raise ValueError(msg)
    row["metric"] = name
    return metric


def whole(model: Any, name: str) -> int | None:
    """A model's ``vocab_size`` or ``ctx_len``, or None where it does not say.

    Raises
    ------
    ValueError
        For what is no whole number of at least 1: a family may be the user's own.
    """
    value = getattr(model, name, None)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
        raise ValueError(f"{type(model).__name__}.{name} must be a whole number of at least 1, got {value!r}")
    return None if value is None else int(value)


def window_settings(model: Any, ctx_len: int | None, stride: int | None) -> dict[str, int]:
    """How a text is cut for a model: ``ctx_len`` and ``stride``, or nothing for a family that scores whole texts.

    Raises
    ------
    ValueError
        For ctx_len or stride with a family that scores whole texts, and for a ctx_len beyond the model's.
    """
    if hasattr(model, "nll"):
        if ctx_len is not None or stride is not None:
            got = f"got {ctx_len} and {stride} for {type(model).__name__}, which scores whole texts"
            msg = f"ctx_len and stride are for models of a fixed context, {got}"
            raise ValueError(msg)
        return {}
    longest = whole(model, "ctx_len")
    if ctx_len is None and longest is None:
        msg = f"ctx_len must be given: {type(model).__name__} does not say how long its context is"
        raise ValueError(msg)
    length = longest if ctx_len is None else ctx_len
    assert length is not None
    if longest is not None and length > longest:
        msg = f"ctx_len must be at most the model's {longest}, got {length}"
        raise ValueError(msg)
    if length < 2:
        msg = f"ctx_len must be at least 2, a token and one of context, got {length}"
        raise ValueError(msg)
    return {"ctx_len": length, "stride": length // 2 if stride is None else stride}


def open_text(entry: Entry) -> TokenFile:
    """The tokens of an entry with ``data``."""
    if entry.text is not None:
        return byte_tokens(texts.load(*entry.text), "/".join(entry.text))
    assert entry.data_path is not None
    return open_tokens(
        entry.data_path, layout=entry.layout or "tinyllm", vocab_size=entry.vocab_size, n_bytes=entry.n_bytes
    )


def prepare_text(entry: Entry, row: Row, model: Any) -> TokenFile:
    """Open a text for a model; ``metric``, ``data`` and ``settings`` go into the row as they become known.

    Raises
    ------
    ValueError
        For a metric that is none of a text, a text with nothing to score, a vocabulary larger than the model's, and
        windows that do not fit the model.
    FormatError
        For a faulty token file.
    """
    metric = metric_of(entry, row)
    data = open_text(entry)
    row["data"] = {"name": entry.data, "sha256": data.sha256}
    if len(data.ids) < 2:
        msg = f"a text must have at least 2 tokens, got {len(data.ids)}: the first has no context, and is not scored"
        raise FormatError(data.name, msg)
    vocab_size = whole(model, "vocab_size")
    if vocab_size is not None and data.vocab_size > vocab_size:
        sizes = f"got {data.vocab_size} for the text and {vocab_size} for the model"
        msg = f"the text's vocabulary must fit the model's, {sizes}; they use different tokenizers"
        raise ValueError(msg)
    if data.tokenizer_sha256 is not None and vocab_size == BYTES:
        msg = f"a model of bytes needs a text of bytes, got one of tokenizer {data.tokenizer_sha256[:12]}…"
        raise FormatError(data.name, msg)
    if metric.name == "bpb" and data.n_bytes is None:
        raise FormatError(data.name, "bits per byte need its bytes: give n_bytes, or ask for metric 'nll' or 'ppl'")
    row["settings"] = window_settings(model, entry.ctx_len, entry.stride)
    return data


def tokenizer_of(model: Any) -> Tokenizer:
    """The model's own tokenizer, or the byte tokenizer for a vocabulary of the 256 bytes.

    Raises
    ------
    ValueError
        When the model has neither.
    """
    from tinyllm.eval.lm import ByteTokenizer

    own: Tokenizer | None = getattr(model, "tokenizer", None)
    if own is not None:
        return own
    vocab_size = whole(model, "vocab_size")
    if vocab_size != ByteTokenizer.vocab_size:
        has = f"{type(model).__name__} has none, and a vocabulary of {vocab_size} where 256 would be bytes"
        msg = f"a task of texts needs a tokenizer; {has}"
        raise ValueError(msg)
    return ByteTokenizer()


def prepare_choices(entry: Entry, row: Row, model: Any) -> ChoiceTask:
    """Read a multiple-choice file for a model; ``metric``, ``data`` and ``settings`` go into the row.

    Raises
    ------
    ValueError
        For a metric that is none of such a task, and a model without a tokenizer.
    FormatError
        For a faulty file.
    """
    metric = metric_of(entry, row)
    if entry.own_task is not None:
        items, digest = read_task(_own_task(entry))
        row["data"] = {"name": f"task:{entry.own_task}", "sha256": digest}
    else:
        assert entry.choices is not None
        items = read_choices(entry.choices)
        row["data"] = {"name": for_people(entry.choices.name), "sha256": _file_sha256(entry.choices)}
    tok = tokenizer_of(model)
    longest = whole(model, "ctx_len")
    max_len = entry.max_len or longest
    if max_len is not None and longest is not None and max_len > longest:
        msg = f"max_len must be at most the model's context of {longest}, got {max_len}"
        raise ValueError(msg)
    row["settings"] = {"max_len": max_len, "bos": tok.bos_id is not None}
    return ChoiceTask(items, tok, max_len, metric)


def _own_task(entry: Entry) -> Task:
    assert entry.own_task is not None
    return find_task(entry.own_task, folder=entry.code)


def _file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
