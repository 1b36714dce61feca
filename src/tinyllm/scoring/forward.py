"""From a model's call to log-probabilities in float64: the one place that touches logits.

A model is anything callable as ``model(ids[None])`` that returns logits ``[1, T, V]``, or a tuple whose first item is
(GPT returns ``(logits, loss)``), or an object with ``.logits`` (transformers). Logits at position t predict token t+1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

Model = Callable[..., Any]

ROWS_AT_ONCE = 256  # float64 rows of a 50k vocabulary: 100 MB, whatever the window's length


def as_ids(ids: ArrayLike) -> NDArray[np.int64]:
    """Token ids as int64 ``[n]``.

    Raises
    ------
    ValueError
        If they are not whole numbers ≥ 0 in one dimension.
    """
    array = np.asarray(ids)
    if array.ndim != 1:
        msg = f"ids must have one dimension, got shape {array.shape}; pass one text's tokens, without a batch dimension"
        raise ValueError(msg)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        msg = f"ids must be integers, got dtype {array.dtype}"
        raise ValueError(msg)
    if array.size and array.max() > np.iinfo(np.int64).max:
        msg = f"ids must fit in 63 bits, got {int(array.max())} at position {int(array.argmax())}"
        raise ValueError(msg)
    out = array.astype(np.int64)
    if out.size and out.min() < 0:
        where = int(np.argmax(out < 0))
        msg = f"ids must be >= 0, got {int(out[where])} at position {where}"
        raise ValueError(msg)
    return out


@contextmanager
def inference(model: Model) -> Iterator[None]:
    """No gradients, and every part of a module in evaluation mode (dropout off), each restored afterwards."""
    parts = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    training = [part for part in parts if part.training]
    for part in training:
        part.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True


def logits(model: Model, ids: NDArray[np.int64]) -> torch.Tensor:
    """Call the model once on ``ids[None]`` and return its logits ``[T, V]`` in their own dtype.

    A module gets a torch tensor on its own device, anything else a numpy array.

    Raises
    ------
    ValueError
        If what comes back is not ``[1, T, V]`` for the T that went in.
    """
    batch: Any = ids[None]
    if isinstance(model, torch.nn.Module):
        parameter = next(model.parameters(), None)
        batch = torch.from_numpy(batch).to(parameter.device if parameter is not None else "cpu")
    with inference(model):
        out = model(batch)
    if isinstance(out, tuple) and out:
        out = out[0]
    elif hasattr(out, "logits"):
        out = out.logits
    tensor = out.detach() if isinstance(out, torch.Tensor) else _from_numpy(out)
    if tensor.is_complex():
        msg = f"logits must be real numbers, got {tensor.dtype}"
        raise ValueError(msg)
    if tensor.ndim != 3 or tensor.shape[0] != 1 or tensor.shape[1] != len(ids):
        msg = f"logits must have shape [1, {len(ids)}, V] for {len(ids)} ids, got {list(tensor.shape)}"
        raise ValueError(msg)
    return tensor[0]


def _from_numpy(out: Any) -> torch.Tensor:
    array = np.asarray(out)
    if array.dtype.kind not in "fiuc" or not array.size:
        msg = f"a model must return logits, or a tuple whose first item is, got {type(out).__name__}"
        raise ValueError(msg)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def log_softmax(rows: torch.Tensor, first: int) -> torch.Tensor:
    """Log-softmax in float64 over the vocabulary.

    Parameters
    ----------
    rows
        Logits ``[T, V]``.
    first
        The position of row 0, for messages.

    Raises
    ------
    ValueError
        For a NaN, a +inf, or a row of nothing but −inf, with its position. A single −inf is a legal zero probability.
    """
    wide = rows.to(torch.float64)
    top = wide.amax(dim=-1)
    bad = ~torch.isfinite(top)  # amax of a row with a NaN is NaN
    if bad.any():
        row = int(bad.nonzero()[0])
        value = float(top[row])
        what = "nothing but -inf" if value == -np.inf else "NaN" if np.isnan(value) else "+inf"
        msg = f"logits must be finite or -inf, got {what} at position {first + row}; there is no distribution there"
        raise ValueError(msg)
    return torch.log_softmax(wide, dim=-1)


def target_log_probs(model: Model, ids: NDArray[np.int64], first: int, *, offset: int = 0) -> NDArray[np.float64]:
    """``ln p(ids[t] | ids[:t])`` for t = first … len(ids)−1, from one call of the model.

    Each is read at position t−1. Only the rows that are needed are widened to float64, a few hundred at a time.

    Parameters
    ----------
    model, ids
        The model, and the tokens it reads.
    first
        The first token that is scored, ≥ 1.
    offset
        The position of ``ids[0]`` in the whole text, for messages.

    Returns
    -------
    float64 ``[len(ids) − first]``; −inf where the model gives probability 0.

    Raises
    ------
    ValueError
        As `logits` and `log_softmax`, and for a token outside the model's vocabulary.
    """
    rows = logits(model, ids)
    vocab_size = rows.shape[1]
    targets = ids[first:]
    if ids.max() >= vocab_size:
        where = int(np.argmax(ids >= vocab_size))
        place = f"token {int(ids[where])} at position {offset + where}"
        msg = f"{place} is outside the model's vocabulary of {vocab_size}"
        raise ValueError(msg)
    out = np.full(len(targets), np.nan)
    for start in range(0, len(targets), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, len(targets))
        log_p = log_softmax(rows[first - 1 + start : first - 1 + stop], offset + first - 1 + start)
        out[start:stop] = (
            log_p.gather(1, torch.from_numpy(targets[start:stop, None]).to(log_p.device))[:, 0].cpu().numpy()
        )
    return out
