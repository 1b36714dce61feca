"""What a table-driven model accepts as ids: one row of integers inside its vocabulary, numpy or torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def token_row(ids: ArrayLike, *, vocab_size: int, ndim: int) -> NDArray[Any]:
    """The ids as a flat numpy array, not copied.

    Parameters
    ----------
    ids
        int [T] (ndim 1) or int [1, T] (ndim 2), T ≥ 1, each 0 … vocab_size − 1.
    vocab_size, ndim
        What is accepted.

    Raises
    ------
    ValueError
        With the shape, the dtype or the range that came.
    """
    array = np.asarray(ids)
    if array.ndim != ndim or array.size == 0 or array.size != array.shape[-1]:
        shape = "[T]" if ndim == 1 else "[1, T]"
        raise ValueError(f"ids must have shape {shape} with T >= 1, got {list(array.shape)}")
    if array.dtype.kind not in "iu":
        raise ValueError(f"ids must be integers, got {array.dtype}")
    least, most = int(array.min()), int(array.max())
    if least < 0 or most >= vocab_size:
        raise ValueError(f"ids must be in 0 to {vocab_size - 1}, got {least} to {most}")
    return array.reshape(-1)
