"""Stories: the source of the built-in text as a model, so that its entropy is a row of the zoo, and the floor.

No weights: the probabilities are those of the grammar (`tinyllm.texts.stories`), exact for every byte. The checkpoint
holds the grammar's hash, so that a score is never of another grammar than the one it was saved with.

Glossary: T tokens, V = 256 bytes. p(x_{t+1} | x_0 … x_t) = (weights of the alternatives that agree with x_0 … x_{t+1})
/ (weights of those that agree with x_0 … x_t), inside the choice that x_{t+1} belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.errors import CheckpointError
from tinyllm.formats import checkpoints
from tinyllm.formats.config import anything, string
from tinyllm.models.token_row import token_row
from tinyllm.texts.choice import next_byte_log_probs, text_nlls
from tinyllm.texts.stories import grammar_sha256, source

ARCH = "stories"
KIND = "lm"
CONFIG = {"grammar_sha256": string(), "training": anything()}


class StoriesLM:
    """The source of the stories. It reads a text from a story's first byte; its memory is the whole text.

    Attributes
    ----------
    vocab_size
        256: a token is a byte.
    """

    vocab_size = 256

    def __call__(self, ids: ArrayLike) -> NDArray[np.float64]:
        """Log-probabilities of the byte after each position.

        Parameters
        ----------
        ids
            int [1, T], 0 … 255, numpy or torch, T ≥ 1, from a story's first byte on; it may end anywhere.

        Returns
        -------
        float64 [1, T, 256]
            Nats; −inf for a byte that cannot follow. After a byte that could not follow, the rows are uniform: there
            is no conditional probability given the impossible.

        Raises
        ------
        ValueError
            If ids is empty, not of that shape, no bytes, or its first byte begins no story.
        """
        data = _bytes_of(ids, ndim=2)
        return next_byte_log_probs(source(), data)[None, 1:]  # (1, t, v)

    def nll(self, ids: ArrayLike) -> NDArray[np.float64]:
        """−log p of bytes 1 … T − 1 in nats.

        Parameters
        ----------
        ids
            int [T], 0 … 255, numpy or torch, T ≥ 1, from a story's first byte on; it may end anywhere.

        Returns
        -------
        float64 [T − 1]; empty when T = 1. Infinite at the first byte that cannot follow, ln 256 after it.

        Raises
        ------
        ValueError
            As for a call.
        """
        return text_nlls(source(), _bytes_of(ids, ndim=1))[1:]


def _bytes_of(ids: ArrayLike, *, ndim: int) -> bytes:
    data = token_row(ids, vocab_size=StoriesLM.vocab_size, ndim=ndim).astype(np.uint8).tobytes()
    if np.isinf(text_nlls(source(), data[:1])[0]):
        raise ValueError(f"ids must begin at a story's first byte, got {data[:1]!r}; pass the text from its start")
    return data


def load_stories(path: str | Path) -> StoriesLM:
    """The model of a checkpoint folder (``formats/checkpoints.md``).

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    CheckpointError
        On an unknown or missing key, a tensor, or the hash of another version of the grammar.
    """
    config = checkpoints.read_config(path)
    if config.get("tl_arch") != ARCH:
        raise CheckpointError(path, f"tl_arch must be {ARCH!r}, got {config.get('tl_arch')!r}")
    checkpoints.check_config(config, CONFIG, path)
    checkpoints.load_tensors(path, {})
    if config["grammar_sha256"] != grammar_sha256():
        raise CheckpointError(
            path,
            f"grammar_sha256 must be {grammar_sha256()} (the grammar of this tinyllm), got {config['grammar_sha256']}; "
            "another version of the grammar wrote it: save the checkpoint again, and train and score on its text",
        )
    return StoriesLM()


def save_stories(
    path: str | Path, model: StoriesLM | None = None, *, training: Mapping[str, Any] | None = None
) -> None:
    """Write a checkpoint folder; equal input gives equal bytes.

    Parameters
    ----------
    path
        The folder; made when missing.
    model
        There is only one; as in the other families.
    training
        Where the checkpoint comes from: JSON values, recorded and not read.
    """
    del model
    config: dict[str, Any] = {"tl_arch": ARCH, "grammar_sha256": grammar_sha256()}
    if training is not None:
        config["training"] = dict(training)
    checkpoints.save(path, config, {})
