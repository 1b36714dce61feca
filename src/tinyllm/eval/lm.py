"""Perplexity by strided windows, multiple choice by log-likelihood, and the paired comparison of two results.

The contract of the course text, sections 2.1 to 2.4. A model is anything callable as ``model(ids[None])`` that returns
logits ``[1, T, V]`` or a tuple whose first item is; logits at position t predict token t+1. A module gets a torch
tensor, anything else a numpy array. Everything is in nats and float64. Not covered: batching, generation, encoder
models.

Example: a model that gives every one of 256 bytes the same probability has an NLL of ln 256 for each token, a
perplexity of 256, and 8 bits per byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.eval.comparison import check_same_items
from tinyllm.formats.choices import ChoiceItem, read_choices
from tinyllm.metrics import CHOICE_METRICS, bpb, nll, ppl
from tinyllm.result import Result
from tinyllm.rng import PCG32
from tinyllm.scoring.choices import EncodedChoice, Tokenizer, encode_choice
from tinyllm.scoring.forward import Model, as_ids, log_softmax, logits, target_log_probs
from tinyllm.scoring.windows import check_stride, windows
from tinyllm.stats.intervals import bootstrap_ci
from tinyllm.stats.permutation import paired_permutation_test

__all__ = [
    "ByteTokenizer",
    "Result",
    "compare",
    "eval_ppl",
    "log_probs",
    "run_task",
    "score_choices",
    "token_nlls",
]


class ByteTokenizer:
    """One token a byte of UTF-8: 256 ids, no BOS, no EOS. ``decode(encode(text)) == text`` for every text."""

    vocab_size = 256
    bos_id: int | None = None
    eos_id: int | None = None

    def encode(self, text: str) -> list[int]:
        """The text's UTF-8 bytes."""
        return list(text.encode("utf-8"))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of bytes; a sequence that is not UTF-8 shows as U+FFFD."""
        return bytes(ids).decode("utf-8", errors="replace")


def log_probs(model: Model, ids: ArrayLike) -> NDArray[np.float64]:
    """Log-probabilities of the next token at every position.

    Parameters
    ----------
    model
        As the module says.
    ids
        int64 ``[T]``, T ≥ 1.

    Returns
    -------
    float64 ``[T, V]``: row t is ``ln p(· | ids[0..t])``; a zero probability is −inf.

    Raises
    ------
    ValueError
        For no ids, logits of another shape, and a NaN, +inf or all −inf row, with its position.
    """
    tokens = as_ids(ids)
    if not tokens.size:
        msg = "log_probs needs at least one token, got none"
        raise ValueError(msg)
    return log_softmax(logits(model, tokens), 0).cpu().numpy()


def token_nlls(model: Model, ids: ArrayLike, ctx_len: int, stride: int) -> NDArray[np.float64]:
    """The NLL of each token 1 … n−1, by strided windows; each token is scored exactly once.

    The model is called once per window, on ``ids[k·stride : k·stride + ctx_len]``; in every window after the first, a
    scored token has at least ``ctx_len − stride`` tokens of context. This is the sum that the Hugging Face recipe for
    fixed-length models means: that recipe averages window means, and lets a window's first token go unscored.

    Parameters
    ----------
    model
        As the module says.
    ids
        int64 ``[n]``, n ≥ 1.
    ctx_len, stride
        In tokens, 1 ≤ stride < ctx_len.

    Returns
    -------
    float64 ``[n − 1]``, in nats; +inf where the model gives probability 0. Empty for n = 1.

    Raises
    ------
    ValueError
        For n = 0, a stride out of range, a token outside the vocabulary, logits that are no distribution.
    """
    return strided_nlls(model, ids, ctx_len, stride)


def strided_nlls(
    model: Model, ids: ArrayLike, ctx_len: int, stride: int, *, on_window: Callable[[int, int], None] | None = None
) -> NDArray[np.float64]:
    """`token_nlls`, and after each window a call of `on_window` with (tokens scored, tokens to score)."""
    check_stride(ctx_len, stride)
    tokens = as_ids(ids)
    if not tokens.size:
        msg = "token_nlls needs at least one token, got none"
        raise ValueError(msg)
    nlls = np.full(len(tokens) - 1, np.nan)  # a token that no window scored would show
    for window in windows(len(tokens), ctx_len, stride):
        inside = tokens[window.start : window.end]
        log_p = target_log_probs(model, inside, window.first - window.start, offset=window.start)
        nlls[window.first - 1 : window.end - 1] = -log_p
        if on_window is not None:
            on_window(window.end - 1, len(nlls))
    return nlls


def eval_ppl(model: Model, ids: ArrayLike, ctx_len: int, stride: int, n_bytes: int = 0) -> dict[str, float]:
    """Mean NLL, perplexity and (given the bytes) bits per byte of a text, each with its 95% Student t interval.

    Parameters
    ----------
    model, ids, ctx_len, stride
        As `token_nlls`.
    n_bytes
        The bytes of the *scored* tokens 1 … n−1; 0 when not known.

    Returns
    -------
    ``nll, nll_lo, nll_hi`` (nats a token), ``ppl, ppl_lo, ppl_hi``, ``n`` (scored tokens), and with ``n_bytes > 0``
    ``bpb, bpb_lo, bpb_hi`` (bits per byte). One scored token has no interval: its ends are infinite (ppl_lo and bpb_lo
    follow).

    Raises
    ------
    ValueError
        As `token_nlls`; for nothing to score; for an infinite NLL, naming the token; for a perplexity that overflows.
    """
    nlls = token_nlls(model, ids, ctx_len, stride)
    if not isinstance(n_bytes, int) or isinstance(n_bytes, bool) or n_bytes < 0:
        msg = f"n_bytes must be a whole number >= 0, got {n_bytes!r}"
        raise ValueError(msg)
    out: dict[str, float] = {}
    out["nll"], out["nll_lo"], out["nll_hi"] = nll(nlls)
    out["ppl"], out["ppl_lo"], out["ppl_hi"] = ppl(nlls)
    out["n"] = len(nlls)
    if n_bytes:
        out["bpb"], out["bpb_lo"], out["bpb_hi"] = bpb(nlls, n_bytes)
    return out


def score_choices(
    model: Model,
    tok: Tokenizer,
    context: str,
    choices: Sequence[str],
    normalize: bool = True,
    max_len: int | None = None,
) -> NDArray[np.float64]:
    """The log-likelihood of each choice after the context.

    Context and choice are tokenised together; a choice's sum runs over its own tokens, each read at the position before
    it.

    Parameters
    ----------
    model
        As the module says.
    tok
        A tokenizer: ``encode``, ``decode``, ``vocab_size``, ``bos_id``, ``eos_id``.
    context, choices
        Texts; the model reads ``context + choice``.
    normalize
        Divide each sum by the bytes of the choice's UTF-8 text as given.
    max_len
        The most tokens of context plus choice; the context is cut from the left, a choice never.

    Returns
    -------
    float64 ``[k]``, in nats (per byte when normalised); −inf for a choice with probability 0.

    Raises
    ------
    ValueError
        For no choices, an empty choice, one that does not fit, an empty context without a BOS.

    Notes
    -----
    lm-evaluation-harness moves white space at a context's end into the choice, and divides by characters for its
    ``acc_norm``; see `tinyllm.scoring.choices` for what differs here.
    """
    encoded = _encode(tok, context, choices, max_len)
    return _scores(model, encoded, choices, normalize=normalize)


def _encode(tok: Tokenizer, context: str, choices: Sequence[str], max_len: int | None) -> list[EncodedChoice]:
    if isinstance(choices, str) or not len(choices):
        msg = f"choices must be a list of at least one text, got {choices!r}"
        raise ValueError(msg)
    return [encode_choice(tok, context, choice, max_len) for choice in choices]


def _scores(
    model: Model, encoded: Sequence[EncodedChoice], choices: Sequence[str], *, normalize: bool
) -> NDArray[np.float64]:
    scores = np.full(len(choices), np.nan)
    for i, (row, choice) in enumerate(zip(encoded, choices, strict=True)):
        total = math.fsum(target_log_probs(model, row.ids, row.first))
        scores[i] = total / len(choice.encode("utf-8")) if normalize else total
    return scores


class TaskScores(NamedTuple):
    """What `score_items` found: per item the score (1 right, 0 wrong) and the choice made, and what a reader should
    know.

    ``n_merged`` counts choices whose first token spans the join, ``n_truncated`` items whose context was cut.
    """

    per_item: NDArray[np.float64]
    predicted: NDArray[np.int64]
    n_merged: int
    n_truncated: int


def score_items(
    model: Model,
    tok: Tokenizer,
    items: Sequence[ChoiceItem],
    metric: str,
    *,
    max_len: int | None = None,
    score: Callable[[NDArray[np.float64], Sequence[str], int], float] | None = None,
    on_item: Callable[[int, int], None] | None = None,
) -> TaskScores:
    """Score multiple-choice items: the first of the best choices is the model's answer.

    Parameters
    ----------
    model, tok, max_len
        As `score_choices`.
    items
        The task.
    metric
        ``acc`` (sums) or ``acc_norm`` (sums per byte).
    score
        Of a metric that is neither: ``score(sums, choices, answer)`` is an item's score, and the sums say the answer.
    on_item
        Called after each item with (done, total).

    Raises
    ------
    ValueError
        For an unknown metric; for an item that cannot be scored, naming it.
    """
    if score is None and metric not in CHOICE_METRICS:
        msg = f"metric must be one of {', '.join(CHOICE_METRICS)}, got {metric!r}"
        raise ValueError(msg)
    per_item = np.full(len(items), np.nan)
    predicted = np.full(len(items), -1, dtype=np.int64)
    n_merged = n_truncated = 0
    for i, item in enumerate(items):
        try:
            encoded = _encode(tok, item.context, item.choices, max_len)
            scores = _scores(model, encoded, item.choices, normalize=metric == "acc_norm")
            predicted[i] = int(np.argmax(scores))  # the first of equals
            per_item[i] = predicted[i] == item.answer if score is None else score(scores, item.choices, item.answer)
        except ValueError as error:
            msg = f"item {item.id!r} (line {item.line}): {error}"
            raise ValueError(msg) from error
        n_merged += sum(row.merged for row in encoded)
        n_truncated += any(row.truncated for row in encoded)
        if on_item is not None:
            on_item(i + 1, len(items))
    return TaskScores(per_item, predicted, n_merged, n_truncated)


def run_task(
    model: Model,
    tok: Tokenizer,
    task_jsonl: str | Path,
    metric: str,
    rng: PCG32,
    n_boot: int = 1000,
    max_len: int | None = None,
) -> Result:
    """Accuracy on a multiple-choice file, with the percentile bootstrap interval drawn from `rng`.

    Parameters
    ----------
    model, tok, max_len
        As `score_choices`.
    task_jsonl
        Lines of ``{"context", "choices", "answer"}`` with optional ``id`` and ``cluster``; ``.gz`` is read too. See
        ``formats/choices.md``.
    metric
        ``acc`` or ``acc_norm``.
    rng
        The stream of the bootstrap: ``n · n_boot`` bounded draws (``formats/pcg32.md``).
    n_boot
        Resamples.

    Returns
    -------
    A `Result` whose per-item scores are 0 and 1 and whose ids are the items'.

    Raises
    ------
    FormatError
        For a bad row, with file, line and field; for a file without items.
    ValueError
        As `score_items`.
    """
    if not isinstance(rng, PCG32):
        msg = f"rng must be a tinyllm.rng.PCG32, got {rng!r}; the interval is drawn from it"
        raise TypeError(msg)
    items = read_choices(task_jsonl)
    per_item = score_items(model, tok, items, metric, max_len=max_len).per_item
    lo, hi = bootstrap_ci(per_item, rng, n_boot=n_boot)
    return Result(float(per_item.mean()), lo, hi, len(items), per_item, tuple(item.id for item in items))


def compare(a: Result, b: Result, n_perm: int = 10000, rng: PCG32 | None = None) -> float:
    """The two-sided p-value of "a and b score the same on these items", by the paired permutation test.

    Parameters
    ----------
    a, b
        Results on the same items.
    n_perm
        Sign flips; all of them are enumerated where there are no more than that.
    rng
        The stream of the flips; ``PCG32(0)`` by default.

    Returns
    -------
    p in (0, 1]. Small: the difference of the means is not item noise.

    Raises
    ------
    ValueError
        When the two were not scored on the same items: other lengths, or other ids where both carry them.
    """
    check_same_items(a, b)
    return paired_permutation_test(a.per_item, b.per_item, n_perm=n_perm, rng=rng)
