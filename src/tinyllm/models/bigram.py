"""Bigram: one table of logits, a row for the token before and a column for the token after (Shannon 1948, section 3's
"second-order approximation").

Glossary: V `vocab_size`, T tokens. p(x_{t+1} | x_t) = softmax(table[x_t])[x_{t+1}].

Plain numpy: float32 in the file, float64 in every result. V need not be 256.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.errors import CheckpointError
from tinyllm.formats import checkpoints
from tinyllm.formats.config import anything, integer
from tinyllm.models.token_row import token_row

ARCH = "bigram"
KIND = "lm"
CONFIG = {"vocab_size": integer(1), "training": anything()}


class BigramLM:
    """A table of logits.

    Parameters
    ----------
    table
        float32 [V, V], numpy or torch; row = the token before, column = the token after. A −inf is a probability of 0.

    Attributes
    ----------
    table, vocab_size
        As given, and V.

    Raises
    ------
    ValueError
        If the table is not square, holds NaN or +inf, or has a row of nothing but −inf.
    """

    def __init__(self, table: ArrayLike) -> None:
        self.table: NDArray[np.float32] = np.asarray(table, dtype=np.float32)
        if self.table.ndim != 2 or self.table.shape[0] != self.table.shape[1] or not self.table.size:
            raise ValueError(f"table must have shape [V, V] with V >= 1, got {list(self.table.shape)}")
        bad = ~(self.table < np.inf)  # NaN compares false
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(f"table must hold no NaN or +inf, got {self.table[row, column]} at [{row}, {column}]")
        peak = self.table.max(axis=1)
        if np.isneginf(peak).any():
            raise ValueError(f"every row of table needs a finite logit, row {int(np.isneginf(peak).argmax())} has none")
        self.vocab_size: int = self.table.shape[0]
        shifted = self.table.astype(np.float64) - peak[:, None]
        self._nlls = np.log(np.exp(shifted).sum(axis=1, keepdims=True)) - shifted

    def __call__(self, ids: ArrayLike) -> NDArray[np.float64]:
        """Logits of the token after each position.

        Parameters
        ----------
        ids
            int [1, T], 0 … V − 1, numpy or torch, T ≥ 1.

        Returns
        -------
        float64 [1, T, V]

        Raises
        ------
        ValueError
            If ids is empty, not of that shape, no integers, or an id is outside the table.
        """
        row = token_row(ids, vocab_size=self.vocab_size, ndim=2)
        logits: NDArray[np.float64] = self.table[row][None].astype(np.float64)  # (1, t, v)
        return logits

    def nll(self, ids: ArrayLike) -> NDArray[np.float64]:
        """−log p of tokens 1 … T − 1 in nats, by a log-softmax in float64.

        Parameters
        ----------
        ids
            int [T], 0 … V − 1, numpy or torch, T ≥ 1.

        Returns
        -------
        float64 [T − 1]; empty when T = 1. A table of zeros gives exactly ``math.log(V)``.

        Raises
        ------
        ValueError
            As for a call.
        """
        row = token_row(ids, vocab_size=self.vocab_size, ndim=1)
        nlls: NDArray[np.float64] = self._nlls[row[:-1], row[1:]]
        return nlls


def load_bigram(path: str | Path) -> BigramLM:
    """The model of a checkpoint folder (``formats/checkpoints.md``).

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    CheckpointError
        On an unknown or missing key or tensor, another shape or dtype, or a logit that is not finite.
    """
    config = checkpoints.read_config(path)
    if config.get("tl_arch") != ARCH:
        raise CheckpointError(path, f"tl_arch must be {ARCH!r}, got {config.get('tl_arch')!r}")
    checkpoints.check_config(config, CONFIG, path)
    V = config["vocab_size"]
    return BigramLM(checkpoints.load_tensors(path, {"table": ((V, V), checkpoints.FLOATS)})["table"])


def save_bigram(path: str | Path, model: BigramLM, *, training: Mapping[str, Any] | None = None) -> None:
    """Write a checkpoint folder; equal input gives equal bytes.

    Parameters
    ----------
    path
        The folder; made when missing.
    model
        Every logit finite.
    training
        Where the model comes from (recipe, seed, hash of the text): JSON values, recorded and not read.

    Raises
    ------
    CheckpointError
        On a non-finite logit.
    """
    config: dict[str, Any] = {"tl_arch": ARCH, "vocab_size": model.vocab_size}
    if training is not None:
        config["training"] = dict(training)
    checkpoints.save(path, config, {"table": model.table})
