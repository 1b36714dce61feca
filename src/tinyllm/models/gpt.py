"""GPT: a decoder-only Transformer in GPT-2's exact layout (Radford et al. 2019, "Language Models are Unsupervised
Multitask Learners"), with learned positions, layer norm before each sublayer, and a head tied to the token embedding.

Glossary: B batch, T tokens of one window, V `vocab_size`, C `n_embd` (channels), L `n_layer`, H `n_head`, D = C / H.
Every weight of a projection is stored [in, out], as GPT-2 stores it: y = x W + b.

Not here: dropout (the texts are read about three times, a small model does not overfit them) and a key-value cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from tinyllm.errors import CheckpointError
from tinyllm.formats.checkpoints import FLOATS, check_config, load_tensors, read_config, save, weights_path
from tinyllm.formats.config import ConfigKey, integer, number, one_of
from tinyllm.models import gpt_hf, undrawn

ARCH = "gpt"
KIND = "lm"
CONFIG: dict[str, ConfigKey] = {
    "tl_arch": one_of(ARCH),
    "vocab_size": integer(1, 2**31),
    "ctx_len": integer(1, 2**31),
    "n_layer": integer(1, 2**10),
    "n_head": integer(1, 2**20),
    "n_embd": integer(1, 2**20),
    "layer_norm_eps": number(0.0),
    "training": ConfigKey("an object", lambda value: isinstance(value, dict), required=False),
}


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT: what `config.json` holds beside ``tl_arch`` and ``training``.

    Attributes
    ----------
    vocab_size
        V: ids are 0 … V − 1, and each position has V logits.
    ctx_len
        The most tokens of one window: the number of learned positions.
    n_layer, n_head, n_embd
        L blocks of H heads over C channels; H must divide C. The inner layer of each MLP has 4 C channels.
    layer_norm_eps
        Added to the variance inside each layer norm.

    Raises
    ------
    ValueError
        If a size is below 1, H does not divide C, or the epsilon is not positive and finite.
    """

    vocab_size: int
    ctx_len: int
    n_layer: int
    n_head: int
    n_embd: int
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        for key in ("vocab_size", "ctx_len", "n_layer", "n_head", "n_embd"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} must be at least 1, got {getattr(self, key)!r}")
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd must be a multiple of n_head, got {self.n_embd} and {self.n_head}")
        if not 0.0 < self.layer_norm_eps < math.inf:
            raise ValueError(f"layer_norm_eps must be positive and finite, got {self.layer_norm_eps!r}")


class _Projection(nn.Module):
    """y = x W + b with W stored [in, out] (GPT-2's "Conv1D"; `nn.Linear` stores the transpose)."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], self.bias.shape[0])


class _Attention(nn.Module):
    """Causal self-attention in H heads, scores scaled by 1/√D (Vaswani et al. 2017, section 3.2)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = _Projection(config.n_embd, 3 * config.n_embd)
        self.c_proj = _Projection(config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.c_attn(x).view(b, t, 3, self.n_head, c // self.n_head).permute(2, 0, 3, 1, 4)  # (b, h, t, d)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # (b, h, t, d)
        out: Tensor = self.c_proj(y.transpose(1, 2).reshape(b, t, c))  # (b, t, c)
        return out


class _MLP(nn.Module):
    """C → 4 C → C with the tanh approximation of GELU (Hendrycks and Gimpel 2016, section 2)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = _Projection(config.n_embd, 4 * config.n_embd)
        self.c_proj = _Projection(4 * config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))
        return out


class _Block(nn.Module):
    """x + attention(norm x), then x + mlp(norm x)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_eps)
        self.attn = _Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_eps)
        self.mlp = _MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class GPT(nn.Module):
    """A GPT-2 of any size: ``model(ids) -> (logits, loss | None)``.

    Parameters
    ----------
    config
        Its shape. Weights are drawn as GPT-2 draws them (`reset_parameters`), from torch's global generator.

    Attributes
    ----------
    config, vocab_size, ctx_len
        The configuration, and the two sizes that scoring needs.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config, self.vocab_size, self.ctx_len = config, config.vocab_size, config.ctx_len
        self.wte = undrawn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = undrawn.Embedding(config.ctx_len, config.n_embd)
        self.h = nn.ModuleList([_Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_eps)
        if not self.wte.weight.is_meta:  # a loader's, which takes the file's tensors
            self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw every weight anew: N(0, 0.02²), divided by √(2 L) where a sublayer joins the residual stream; norms are
        the identity and biases zero (Radford et al. 2019, section 2.3).

        Parameters
        ----------
        generator
            Where the draws come from; torch's global generator when None.
        """
        joins_residual = 0.02 / math.sqrt(2 * self.config.n_layer)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.endswith("bias"):
                    parameter.zero_()
                elif ".ln_" in name or name.startswith("ln_f"):
                    parameter.fill_(1.0)
                else:
                    std = joins_residual if name.endswith("c_proj.weight") else 0.02
                    parameter.normal_(0.0, std, generator=generator)

    def hidden(self, ids: Tensor) -> Tensor:
        """The states before the head, after the last norm.

        Parameters
        ----------
        ids
            int64 ``[B, T]`` (a numpy array will do), 1 ≤ T ≤ `ctx_len`.

        Returns
        -------
        Tensor
            ``[B, T, C]``; `head` of any selection of its rows gives those rows' logits.

        Raises
        ------
        ValueError
            If T is 0 or above `ctx_len`, or an id is not in 0 … `vocab_size` − 1.
        """
        ids = torch.as_tensor(ids, device=self.wte.weight.device)
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= self.ctx_len:
            raise ValueError(f"ids must be [B, T] with 1 <= T <= ctx_len = {self.ctx_len}, got {list(ids.shape)}")
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.vocab_size:
            raise ValueError(
                f"ids must lie in 0 … {self.vocab_size - 1} (vocab_size = {self.vocab_size}), "
                f"got {int(ids.min())} … {int(ids.max())}"
            )
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]  # (b, t, c)
        for block in self.h:
            x = block(x)
        out: Tensor = self.ln_f(x)
        return out

    def head(self, hidden: Tensor) -> Tensor:
        """Logits ``[…, V]`` of states ``[…, C]``: the token embedding read the other way."""
        return functional.linear(hidden, self.wte.weight)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Logits of the next token at each position, and the mean cross-entropy when targets are given.

        Parameters
        ----------
        ids
            int64 ``[B, T]``, 1 ≤ T ≤ `ctx_len`.
        targets
            int64 ``[B, T]``: the token that follows each position; or None.

        Returns
        -------
        logits
            ``[B, T, V]``: those at position t predict token t + 1, from tokens 0 … t.
        loss
            A scalar, nats per token; None without targets.

        Raises
        ------
        ValueError
            If T is 0 or above `ctx_len`, an id is not below `vocab_size`, or targets have another shape than ids.
        """
        logits = self.head(self.hidden(ids))  # (b, t, v)
        if targets is None:
            return logits, None
        if targets.shape != logits.shape[:-1]:
            raise ValueError(f"targets must have ids' shape {list(logits.shape[:-1])}, got {list(targets.shape)}")
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _on_meta(shape: Mapping[str, Any], path: str | Path) -> GPT:
    """A GPT without memory: it knows every name and shape, and takes the loaded tensors as they lie."""
    try:
        config = GPTConfig(**shape)
    except ValueError as error:
        raise CheckpointError(path, str(error), where="config") from error
    with torch.device("meta"):
        return GPT(config)


def _shapes(model: GPT) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def load_gpt(path: str | Path) -> GPT:
    """Load a checkpoint of this family (``formats/checkpoints.md``).

    Parameters
    ----------
    path
        A folder with ``config.json`` (the keys of `CONFIG`) and ``model.safetensors``.

    Returns
    -------
    GPT
        In eval mode, float32. Weights stored as float32 stay mapped to the file; float16 is widened into memory.

    Raises
    ------
    CheckpointError
        On a missing, extra, misshapen or non-finite tensor, an unknown config key or a bad value, by name.
    """
    config = read_config(path)
    check_config(config, CONFIG, path)
    model = _on_meta({field.name: config[field.name] for field in fields(GPTConfig)}, path)
    spec = {name: (shape, FLOATS) for name, shape in _shapes(model).items()}
    tensors = {name: torch.from_numpy(array) for name, array in load_tensors(path, spec).items()}
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def save_gpt(
    path: str | Path,
    model: GPT,
    *,
    dtype: Literal["float32", "float16"] = "float32",
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint that `load_gpt` reads; equal models give equal bytes.

    Parameters
    ----------
    path
        The folder; made when missing.
    model
        Any GPT.
    dtype
        How weights are stored; float16 halves the file and rounds each weight to 11 bits.
    training
        Where the model comes from (recipe, seed, hashes of the texts): JSON values, recorded and not read.

    Raises
    ------
    ValueError
        If a weight is not finite, or overflows float16.
    """
    config: dict[str, Any] = {"tl_arch": ARCH, **asdict(model.config)}
    if training is not None:
        config["training"] = dict(training)
    save(path, config, {name: tensor.cpu().float().numpy() for name, tensor in model.state_dict().items()}, dtype=dtype)


def load_hf_gpt2(source: Any) -> GPT:
    """A GPT with the weights of a Hugging Face GPT-2.

    Parameters
    ----------
    source
        A folder with ``config.json`` (``model_type`` "gpt2") and ``model.safetensors`` (float32 or float16; names with
        or without ``transformer.``), read without transformers; or a ``transformers.GPT2LMHeadModel``, whose weights
        are copied.

    Returns
    -------
    GPT
        In eval mode, float32 (float64 if the object is). It differs from transformers' only in rounding: logits of
        either agree within 1e-5 in float32.

    Raises
    ------
    CheckpointError
        If the config asks for another function (key and value named), the head is not tied to the embedding, or the
        tensors are not exactly GPT-2's (the copy ``lm_head.weight`` and the buffers ``attn.bias`` and
        ``attn.masked_bias`` may be there).
    """
    if isinstance(source, str | Path):
        path: str | Path = weights_path(source)
        model = _on_meta(gpt_hf.config_fields(read_config(source), source), source)
        tensors = gpt_hf.file_tensors(path, _shapes(model))
    else:
        path = type(source).__name__
        model = _on_meta(gpt_hf.config_fields(source.config.to_dict(), path), path)
        tensors = gpt_hf.object_tensors(source, path)
    try:
        model.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise CheckpointError(path, f"must hold exactly GPT-2's tensors: {error}") from error
    return model.eval()
