"""The bigram recipe: counts of byte pairs with k added to each (Lidstone 1920), as a table of log-probabilities.

table[a, b] = log((c(a b) + k) / (Σ_v c(a v) + 256 k))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyllm.models.bigram import BigramLM

FAMILY = "bigram"
TEXTS = (("stories", "train"), ("pydoc", "train"))
SAVE: dict[str, Any] = {}

VOCAB_SIZE = 256
RECIPE = {"add_k": 0.1}


def train(text: bytes | Sequence[bytes], *, seed: int = 0, add_k: float = RECIPE["add_k"]) -> BigramLM:
    """Count the byte pairs of a text.

    Parameters
    ----------
    text
        At least one byte, or several texts, which are joined; a byte that is never a first one gets a uniform row.
    seed
        Not used: nothing is drawn. It is here because every recipe has one.
    add_k
        k > 0, added to each of the 65,536 counts.

    Returns
    -------
    BigramLM
        V = 256; each row's logits are log-probabilities.

    Raises
    ------
    ValueError
        If text is empty, or add_k is not a positive number.
    """
    del seed
    text = text if isinstance(text, bytes) else b"".join(text)
    if not text:
        raise ValueError(f"text must hold at least one byte, got {text!r}")
    if not 0 < add_k < math.inf:
        raise ValueError(f"add_k must be a positive number, got {add_k!r}")
    ids = np.frombuffer(text, dtype=np.uint8).astype(np.int64)
    pairs = np.bincount(ids[:-1] * VOCAB_SIZE + ids[1:], minlength=VOCAB_SIZE**2).reshape(VOCAB_SIZE, VOCAB_SIZE)
    smoothed = pairs + add_k
    return BigramLM(np.log(smoothed / smoothed.sum(axis=1, keepdims=True)))
