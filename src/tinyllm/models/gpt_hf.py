"""Hugging Face's GPT-2 in our terms: what its config must say for our GPT to be the same function, and which of its
tensors are which of ours. transformers itself is not imported.

Config keys that transformers' own GPT-2 does not read in a forward pass without dropout (token ids, dropout rates,
summary heads, generation defaults …) are free; every key that it does read is held to the value our GPT stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tinyllm.errors import CheckpointError
from tinyllm.formats.checkpoints import FLOATS, load_tensors, read_header
from tinyllm.formats.config import ConfigKey, check_config, integer, number, one_of, string

_HEAD = "lm_head.weight"
_PREFIX = "transformer."
_MASK = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # constant buffers of old files

# key: (transformers' default, what we ask of it)
_KEYS: dict[str, tuple[Any, ConfigKey]] = {
    "model_type": (None, one_of("gpt2")),
    "vocab_size": (50257, integer()),
    "n_positions": (1024, integer()),
    "n_embd": (768, integer()),
    "n_layer": (12, integer()),
    "n_head": (12, integer()),
    "layer_norm_epsilon": (1e-5, number(0.0)),
    "activation_function": ("gelu_new", one_of("gelu_new", "gelu_pytorch_tanh")),
    "scale_attn_weights": (True, one_of(True)),
    "scale_attn_by_inverse_layer_idx": (False, one_of(False)),
    "add_cross_attention": (False, one_of(False)),
    "tie_word_embeddings": (True, one_of(True)),
    "quantization_config": (None, ConfigKey("null (weights as they are)", lambda value: value is None)),
}


def config_fields(config: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """The fields of `GPTConfig`, from a Hugging Face config.

    Parameters
    ----------
    config
        What ``config.json`` holds, or ``model.config.to_dict()``. A key that is not there has transformers' default.
    path
        Where it comes from, for the message.

    Raises
    ------
    CheckpointError
        If the config asks for another function than our GPT; the message names the key and its value.
    """
    read = {key: config.get(key, default) for key, (default, _) in _KEYS.items()}
    rules = {key: rule for key, (_, rule) in _KEYS.items()}
    check_config(read, {"tl_arch": string(required=False), **rules}, path)  # tl_arch is our own key, never theirs
    if config.get("n_inner") not in (None, 4 * read["n_embd"]):
        must = f"must be null or 4 × n_embd = {4 * read['n_embd']}"
        raise CheckpointError(path, f"{must}, got {config['n_inner']!r}", where="config.n_inner")
    return {
        "vocab_size": read["vocab_size"],
        "ctx_len": read["n_positions"],
        "n_layer": read["n_layer"],
        "n_head": read["n_head"],
        "n_embd": read["n_embd"],
        "layer_norm_eps": read["layer_norm_epsilon"],
    }


def _our_names(names: Iterable[str], path: str | Path) -> dict[str, str]:
    """Our name for each of theirs: without ``transformer.``, which old files lack anyway. No two may meet."""
    ours: dict[str, str] = {}
    for theirs in names:
        name = theirs.removeprefix(_PREFIX)
        if name in ours.values():
            raise CheckpointError(path, f"must hold one tensor {name!r}, got it with and without {_PREFIX!r}")
        ours[theirs] = name
    return ours


def _without_head(tensors: dict[str, Tensor], path: str | Path) -> dict[str, Tensor]:
    """Drop the copy of the embedding that stands for the head, if it is one."""
    head = tensors.pop(_HEAD, None)
    if head is not None and "wte.weight" in tensors and not torch.equal(head, tensors["wte.weight"]):
        raise CheckpointError(
            path, "must equal wte.weight (our head is tied), got other values", where=f"tensor {_HEAD!r}"
        )
    return tensors


def file_tensors(path: str | Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The weights of a Hugging Face file under our names.

    Parameters
    ----------
    path
        The safetensors file; names with or without ``transformer.``.
    shapes
        Our names, with the shape each must have.

    Returns
    -------
    dict[str, Tensor]
        float32, mapped from the file where it is float32. Masks and the tied head's copy are left out.

    Raises
    ------
    CheckpointError
        On a missing, extra, misshapen or non-finite tensor, or a head that is no copy of the embedding.
    """
    header = read_header(path)
    ours = _our_names(header.tensors, path)
    theirs = {name: their for their, name in ours.items()}
    wanted = {**shapes, _HEAD: shapes["wte.weight"]} if _HEAD in theirs else dict(shapes)
    prefix = _PREFIX if any(their.startswith(_PREFIX) for their in ours) else ""
    spec: dict[str, tuple[tuple[int, ...], str | tuple[str, ...]]] = {
        theirs.get(name, prefix + name): (shape, FLOATS) for name, shape in wanted.items()
    }
    masks = {their for their, name in ours.items() if _MASK.fullmatch(name)}
    spec.update({their: (header.tensors[their].shape, header.tensors[their].dtype) for their in masks})
    loaded = load_tensors(path, spec)
    return _without_head({ours[their]: torch.from_numpy(a) for their, a in loaded.items() if their not in masks}, path)


def object_tensors(source: Any, path: str | Path) -> dict[str, Tensor]:
    """The weights of a transformers model under our names.

    Parameters
    ----------
    source
        A ``GPT2LMHeadModel``.
    path
        What to call it in a message.

    Returns
    -------
    dict[str, Tensor]
        Copies on the CPU, half precision widened to float32. Masks and the tied head's copy are left out.

    Raises
    ------
    CheckpointError
        On a non-finite weight, or a head that is no copy of the embedding.
    """
    state = source.state_dict()
    tensors = {}
    for theirs, name in _our_names(state, path).items():
        if not _MASK.fullmatch(name):
            tensor = state[theirs].detach()
            tensors[name] = tensor.to("cpu", torch.promote_types(tensor.dtype, torch.float32), copy=True)
            if not tensors[name].isfinite().all():
                raise CheckpointError(path, "must be finite, got NaN or infinity", where=f"tensor {theirs!r}")
    return _without_head(tensors, path)
