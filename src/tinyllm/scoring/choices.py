"""How an answer is laid out after its context, as tokens: joint tokenisation, the split, the BOS, the length limit.

Source: the `_encode_pair` of lm-evaluation-harness, with two rules of our own. Where the tokenizer merges across the
join, the split is at the longest common token prefix (there the harness can be left with an empty continuation); and
white space at the end of a context stays in the context unless the tokenizer merges it (the harness moves it to the
choice, which changes the sum, by the same term for every choice, and so only length-normalised scores).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Tokenizer(Protocol):
    """What a tokenizer must have. `encode` may or may not put the BOS in front itself: exactly one is used."""

    vocab_size: int
    bos_id: int | None
    eos_id: int | None

    def encode(self, text: str) -> list[int]:
        """The text's token ids."""

    def decode(self, ids: list[int]) -> str:
        """The text of token ids."""


@dataclass(frozen=True)
class EncodedChoice:
    """One row of a log-likelihood request.

    Attributes
    ----------
    ids
        int64 ``[T]``: BOS (if the tokenizer has one), what is left of the context, the choice.
    first
        The index of the choice's first token; ≥ 1.
    merged
        Whether a token spans the join of context and choice.
    truncated
        How many context tokens were dropped from the left.
    """

    ids: NDArray[np.int64]
    first: int
    merged: bool
    truncated: int


def encode_choice(tok: Tokenizer, context: str, choice: str, max_len: int | None = None) -> EncodedChoice:
    """Tokenise a context and one choice jointly, and cut the context to fit.

    Parameters
    ----------
    tok
        The tokenizer.
    context, choice
        Their texts; the model sees ``context + choice``.
    max_len
        The most tokens that the whole may have, BOS and choice included. Tokens are dropped from the left of the
        context; the BOS and one context token stay; a choice is never cut.

    Raises
    ------
    ValueError
        For an empty choice, a choice that adds no token, an empty context without a BOS, and a choice that does not
        fit.
    """
    if not choice:
        msg = "a choice must not be empty; an empty answer has no log-likelihood"
        raise ValueError(msg)
    bos = [] if tok.bos_id is None else [tok.bos_id]
    context_ids = _without_bos(tok.encode(context), tok.bos_id)
    whole = _without_bos(tok.encode(context + choice), tok.bos_id)
    split = _common_prefix(context_ids, whole)
    answer = whole[split:]
    if not answer:
        msg = f"choice {choice!r} must add at least one token to its context, got none from this tokenizer"
        raise ValueError(msg)
    if not bos and split == 0:
        what = (
            "an empty context"
            if not context_ids
            else f"context {context!r}, merged whole into the choice's first token,"
        )
        msg = f"{what} needs a tokenizer with a BOS: choice {choice!r} would be predicted from nothing"
        raise ValueError(msg)
    dropped = 0 if max_len is None else max(0, len(bos) + len(whole) - max_len)
    if dropped and split - dropped < min(split, 1):
        fit = f"does not fit into max_len={max_len} beside {len(bos)} BOS and {min(split, 1)} context tokens"
        msg = f"choice {choice!r} has {len(answer)} tokens and {fit}; it is never cut"
        raise ValueError(msg)
    ids = np.array(bos + whole[dropped:], dtype=np.int64)
    return EncodedChoice(ids, len(bos) + split - dropped, merged=split < len(context_ids), truncated=dropped)


def _without_bos(ids: list[int], bos_id: int | None) -> list[int]:
    return ids[1:] if ids and bos_id is not None and ids[0] == bos_id else ids


def _common_prefix(a: list[int], b: list[int]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
