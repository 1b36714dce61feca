"""The recipe of the zoo's GPT: bytes, random windows, AdamW, a warm-up and a cosine.

Deterministic: the same texts, seed, recipe, thread count and machine give the same weights, bit by bit. The draws, in
order: torch's generator seeded with `seed` fills the weights; the PCG32 stream ``(seed, "gpt.windows")`` then gives,
for each row of each step, one `random()` that picks the text and one `bounded(n − ctx_len)` that picks the window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tinyllm.models.gpt import GPT, GPTConfig
from tinyllm.rng import PCG32, stream

VOCAB_SIZE = 256


@dataclass(frozen=True)
class Recipe:
    """Every choice of a training run but the texts and the seed.

    Attributes
    ----------
    ctx_len, n_layer, n_head, n_embd
        The model's shape (`GPTConfig`); the vocabulary is the 256 bytes.
    batch, steps
        Windows of `ctx_len` + 1 bytes per step; optimiser steps.
    lr, warmup_steps
        The peak learning rate, reached linearly after the warm-up, then a half cosine down to zero.
    weight_decay, beta1, beta2
        AdamW (Loshchilov and Hutter 2019); decay acts on matrices only, never on biases and norms.
    clip_norm
        The gradient's greatest global 2-norm.
    threads
        torch's threads while training; sums, and so the weights, depend on it.
    """

    ctx_len: int = 128
    n_layer: int = 4
    n_head: int = 5
    n_embd: int = 160
    batch: int = 16
    steps: int = 3000
    lr: float = 3e-3
    warmup_steps: int = 100
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.98
    clip_norm: float = 1.0
    threads: int = 1


RECIPE: dict[str, Any] = asdict(Recipe())

FAMILY = "gpt"
TEXTS = (("stories", "train"), ("pydoc", "train"))
MIX: dict[str, Any] = {"shares": [0.75, 0.25]}  # pydoc is an eighth of the bytes and by far the harder text
SAVE: dict[str, Any] = {"dtype": "float16"}


def learning_rate(step: int, recipe: Recipe) -> float:
    """The rate of optimiser step `step` (0-based): a linear warm-up to `lr`, then half a cosine to zero
    (Loshchilov and Hutter 2017, eq. 5, without restarts). The last step's rate is just above zero.
    """
    if step < recipe.warmup_steps:
        return recipe.lr * (step + 1) / recipe.warmup_steps
    done = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    return recipe.lr * 0.5 * (1.0 + math.cos(math.pi * done))


def draw_windows(
    texts: Sequence[np.ndarray[Any, Any]], shares: Sequence[float], rng: PCG32, *, batch: int, ctx_len: int
) -> Tensor:
    """Random windows of the texts.

    Parameters
    ----------
    texts
        uint8 arrays, each longer than `ctx_len`.
    shares
        Each text's probability; they sum to 1.
    rng
        Consumed: per row one `random()` for the text, then one `bounded()` for the place.
    batch, ctx_len
        B rows of `ctx_len` + 1 bytes.

    Returns
    -------
    Tensor
        int64 ``[B, ctx_len + 1]``: all but the last byte are the ids, all but the first the targets.
    """
    ends, rows = np.cumsum(shares), []
    for _ in range(batch):
        text = texts[min(int(np.searchsorted(ends, rng.random(), side="right")), len(texts) - 1)]
        start = rng.bounded(len(text) - ctx_len)
        rows.append(text[start : start + ctx_len + 1])
    return torch.from_numpy(np.stack(rows).astype(np.int64))


def _checked(
    text: bytes | Sequence[bytes], shares: Sequence[float] | None, ctx_len: int
) -> tuple[list[np.ndarray[Any, Any]], list[float]]:
    """The texts as arrays, with one share each."""
    texts = [np.frombuffer(t, dtype=np.uint8) for t in ([text] if isinstance(text, bytes) else text)]
    total = sum(map(len, texts))
    if not texts or min(map(len, texts)) <= ctx_len:
        raise ValueError(f"each text must be longer than ctx_len = {ctx_len} bytes, got {[len(t) for t in texts]}")
    chosen = [len(t) / total for t in texts] if shares is None else list(shares)
    if len(chosen) != len(texts) or min(chosen) < 0.0 or not math.isclose(sum(chosen), 1.0):
        raise ValueError(f"shares must be {len(texts)} probabilities that sum to 1, got {chosen}")
    return texts, chosen


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _new_model(recipe: Recipe, seed: int) -> GPT:
    """A fresh GPT whose draws leave torch's global generator alone."""
    with torch.device("meta"):
        model = GPT(GPTConfig(VOCAB_SIZE, recipe.ctx_len, recipe.n_layer, recipe.n_head, recipe.n_embd))
    model.to_empty(device="cpu")
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model


def _optimizer(model: GPT, recipe: Recipe) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim != 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.lr, betas=(recipe.beta1, recipe.beta2))


def train(
    text: bytes | Sequence[bytes],
    *,
    seed: int,
    shares: Sequence[float] | None = None,
    on_step: Callable[[int, float], None] | None = None,
    **recipe: Any,
) -> GPT:
    """Train a byte-level GPT.

    Parameters
    ----------
    text
        The training bytes, or several texts of them.
    seed
        Of the weights and of the windows.
    shares
        The probability that a window comes from each text; in proportion to their bytes when None.
    on_step
        Called after each step with its number (from 0) and its loss in nats per byte.
    **recipe
        Fields of `Recipe` that differ from `RECIPE`.

    Returns
    -------
    GPT
        Trained, in eval mode, float32.

    Raises
    ------
    TypeError
        If a recipe key is not a field of `Recipe`.
    ValueError
        If a text is not longer than `ctx_len`, or the shares are not one probability a text.
    """
    chosen = replace(Recipe(), **recipe)
    texts, probabilities = _checked(text, shares, chosen.ctx_len)
    rng = stream(seed, "gpt.windows")
    with _torch_threads(chosen.threads):
        model = _new_model(chosen, seed).train()
        optimizer = _optimizer(model, chosen)
        for step in range(chosen.steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, chosen)
            window = draw_windows(texts, probabilities, rng, batch=chosen.batch, ctx_len=chosen.ctx_len)
            _, loss = model(window[:, :-1], window[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), chosen.clip_norm)
            optimizer.step()
            if on_step is not None:
                on_step(step, loss.item())
    return model.eval()
