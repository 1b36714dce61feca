"""Byte n-gram: interpolated Kneser-Ney in back-off form (Kneser and Ney 1995; Chen and Goodman 1999, "An empirical
study of smoothing techniques for language modeling", section 3.4).

Glossary: T bytes of a text, n `order`, a gram is 1 … n bytes the model has an entry for, h the context (the bytes
before), h' the context without its oldest byte, γ(h) the back-off weight of h.

    p(w | h) = the entry of the gram h w, if there is one, else γ(h) p(w | h'),   γ = 1 for a context without entry.

The grams are a tree: a gram of order k is its oldest byte on the left of a gram of order k − 1 (its suffix). They are
closed under prefixes too, so that every context of a gram has a γ. The base, order 1, holds all 256 bytes.

Scoring needs one question a byte. Let u_t be the longest gram that ends at byte t, and Γ(v) = log γ summed over v and
all its suffixes. The back-off weights from the longest context u_{t−1} down to the gram used are a difference of two Γ:

    log p(x_t | …) = [entry(u_t) − Γ(prefix of u_t)] + Γ(u_{t−1})

and the bracket is one number a gram, made when the model is built. u is found for whole arrays, order by order.

Not here: a symbol for the text's start (a text's first bytes have shorter contexts), and tokens other than bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.errors import CheckpointError
from tinyllm.formats import checkpoints
from tinyllm.formats.config import ConfigKey, anything, integer, one_of
from tinyllm.models.gram_hash import GramHash
from tinyllm.models.grams import MAX_ORDER, VOCAB_SIZE, Grams, check_tables
from tinyllm.models.token_row import token_row

ARCH = "ngram"
KIND = "lm"
CONFIG = {
    "order": integer(1, MAX_ORDER),
    "vocab_size": one_of(VOCAB_SIZE),
    "grams": ConfigKey(
        "a list of numbers of grams, order 1 first",
        lambda value: isinstance(value, list) and all(type(n) is int and n >= 0 for n in value),
    ),
    "training": anything(),
}
MASS_TOLERANCE = 1e-5  # how far from 1 a distribution of a file may sum: float32 rounding gives less than 1e-6
CHUNK = 1 << 16  # bytes scored together: the temporaries of a chunk stay in the processor's cache


class NGramLM:
    """A back-off model over bytes.

    Parameters
    ----------
    tables
        One `Grams` an order, order 1 first; 1 to 8 of them.

    Attributes
    ----------
    order
        n; a byte is predicted from up to n − 1 bytes before it.
    vocab_size
        256.
    tables
        As given.

    Raises
    ------
    ValueError
        If the tables are no tree of byte grams: the text names the order and the row.
    """

    vocab_size = VOCAB_SIZE

    def __init__(self, tables: Sequence[Grams]) -> None:
        self.tables = tuple(tables)
        self.order = len(self.tables)
        check_tables(self.tables)
        # Ids count through all orders: the grams of order k have base[k - 1] <= id < base[k], so a byte is its own id.
        self._base = np.cumsum([0, *map(len, self.tables)])
        offsets = np.concatenate(([0], self._base[: self.order - 1]))
        self._suffix = np.concatenate(
            [table.suffix + offset for table, offset in zip(self.tables, offsets, strict=True)]
        )
        byte = np.concatenate([table.byte for table in self.tables])
        self._hash = GramHash(self._suffix[256:], byte[256:], np.arange(256, len(byte)))
        self._prefix = self._prefixes(byte)
        entry = np.concatenate([table.log_prob for table in self.tables]).astype(np.float64)
        self._backoffs = np.concatenate([table.log_backoff for table in self.tables]).astype(np.float64)  # becomes Γ
        self._entry = entry  # becomes the bracket of the module docstring
        for start, end in zip(self._base[1:], self._base[2:], strict=False):
            self._backoffs[start:end] += self._backoffs[self._suffix[start:end]]
            self._entry[start:end] -= self._backoffs[self._prefix[start:end]]
        older, newest = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256))
        pair = self._hash.find(newest.ravel(), older.ravel())
        self._pair = np.where(pair < 0, newest.ravel(), pair).astype(
            np.int32
        )  # u of two bytes, at newest · 256 + older

    @classmethod
    def load(cls, path: str | Path) -> NGramLM:
        """Same as `load_ngram`."""
        return load_ngram(path)

    def nll(self, ids: ArrayLike) -> NDArray[np.float64]:
        """−log p of bytes 1 … T − 1 in nats, each given up to n − 1 bytes of the text before it.

        Parameters
        ----------
        ids
            int [T], 0 … 255, numpy or torch, T ≥ 1.

        Returns
        -------
        float64 [T − 1]; empty when T = 1.

        Raises
        ------
        ValueError
            If ids is empty, not one row of integers, or holds an id that is no byte.
        """
        text = token_row(ids, vocab_size=VOCAB_SIZE, ndim=1).astype(np.uint8, copy=False)
        nlls = np.empty(len(text) - 1)
        last = text[:1].astype(np.int64)  # u of the byte before the chunk
        for start in range(1, len(text), CHUNK):
            u = self._longest(text, start, min(start + CHUNK, len(text)))
            before = np.concatenate((last, u[:-1]))
            nlls[start - 1 : start - 1 + len(u)] = -(self._entry[u] + self._backoffs[before])
            last = u[-1:]
        return nlls

    def __call__(self, ids: ArrayLike) -> NDArray[np.float64]:
        """Log-probabilities of the byte after each position.

        Parameters
        ----------
        ids
            int [1, T], 0 … 255, numpy or torch, T ≥ 1.

        Returns
        -------
        float64 [1, T, 256], in nats; row t is given bytes up to t and sums to 1 in probability.
        """
        text = token_row(ids, vocab_size=VOCAB_SIZE, ndim=2).astype(np.uint8, copy=False)
        u = self._longest(text, 0, len(text))
        rows = np.tile(self._entry[:256], (len(text), 1))  # (t, v)
        first, child, newest = self._continuations
        context = np.full((self.order, len(text)), -1, dtype=np.int64)  # the suffix of u_t of each order, -1 for none
        at = u.copy()
        for k in range(self.order, 0, -1):
            here = at >= self._base[k - 1]
            context[k - 1, here] = at[here]
            at[here] = self._suffix[at[here]]
        for of_order in context[: self.order - 1]:  # longer contexts overwrite shorter ones
            t = np.flatnonzero(of_order >= 0)
            count = first[of_order[t] + 1] - first[of_order[t]]
            index = np.arange(count.sum()) + np.repeat(first[of_order[t]] - np.cumsum(count) + count, count)
            rows[np.repeat(t, count), newest[index]] = self._entry[child[index]]
        return (rows + self._backoffs[u][:, None])[None]

    def gram(self, row: int) -> bytes:
        """The bytes of a gram; rows count through all orders, so that the gram of row 97 is ``b"a"``."""
        gram = b""
        k = int(np.searchsorted(self._base, row, side="right"))
        while k:
            table = self.tables[k - 1]
            at = row - int(self._base[k - 1])
            gram += table.byte[at].tobytes()
            row, k = int(self._suffix[row]), k - 1
        return gram

    def context_sums(self) -> NDArray[np.float64]:
        """Σ_w p(w | h) for the empty context and every context with an entry: 1 up to float32 rounding.

        Returns
        -------
        float64 [1 + number of grams below the top order]; entry 1 + r is the context of `gram` (r).
        """
        n_contexts = int(self._base[self.order - 1]) if self.order > 1 else 0
        p = np.exp(np.concatenate([table.log_prob for table in self.tables]).astype(np.float64))
        gamma = np.exp(np.concatenate([table.log_backoff for table in self.tables]).astype(np.float64))[:n_contexts]
        context = self._prefix[256:]
        seen = np.bincount(context, weights=p[256:], minlength=n_contexts)
        seen_lower = np.bincount(context, weights=p[self._suffix[256:]], minlength=n_contexts)
        return np.concatenate(([p[:256].sum()], seen + gamma * (1 - seen_lower)))

    def _longest(self, text: NDArray[np.uint8], start: int, end: int) -> NDArray[np.int64]:
        """u_t for start ≤ t < end: the id of the longest gram that ends at byte t."""
        newest = text[start:end]
        u = newest.astype(np.int64)
        if self.order == 1:
            return u
        skip = 1 if start == 0 else 0  # the text's first byte has no byte on its left
        u[skip:] = self._pair[(u[skip:] << 8) | text[start + skip - 1 : end - 1]]
        alive = np.flatnonzero(u >= 256)
        for k in range(3, self.order + 1):
            if start < k - 1:
                alive = alive[alive + start >= k - 1]
            child = self._hash.find(u[alive], text[alive + (start - k + 1)])
            found = child >= 0
            alive = alive[found]
            u[alive] = child[found]
        return u

    def _prefixes(self, byte: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The gram without its newest byte, of each gram; −1 (the empty context) at order 1."""
        prefix = np.full(len(byte), -1, dtype=np.int64)
        for k in range(2, self.order + 1):
            start, end = self._base[k - 1], self._base[k]
            if k == 2:
                prefix[start:end] = byte[start:end]
                continue
            prefix[start:end] = self._hash.find(prefix[self._suffix[start:end]], byte[start:end])
            if (prefix[start:end] < 0).any():
                row = int(np.flatnonzero(prefix[start:end] < 0)[0])
                raise ValueError(f"every gram without its newest byte must be a gram, row {row} of order {k} is not")
        return prefix

    @cached_property
    def _continuations(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(first, child, newest): the grams that continue context h are child[first[h]:first[h + 1]]."""
        child = np.argsort(self._prefix[256:], kind="stable") + 256
        newest = np.arange(int(self._base[-1]))
        for start, end in zip(self._base[1:], self._base[2:], strict=False):
            newest[start:end] = newest[self._suffix[start:end]]
        count = np.bincount(self._prefix[256:], minlength=int(self._base[-1]))
        return np.concatenate(([0], np.cumsum(count))), child, newest[child]


def load_ngram(path: str | Path) -> NGramLM:
    """The model of a one-file checkpoint (``formats/checkpoints.md``).

    Parameters
    ----------
    path
        The safetensors file, or a folder with exactly one.

    Raises
    ------
    CheckpointError
        On an unknown or missing key or tensor, a shape or dtype that is not what the metadata says, a non-finite
        number, grams that are not sorted or not closed under prefixes, or a distribution that does not sum to 1.
    """
    config = checkpoints.read_config(path)
    if config["tl_arch"] != ARCH:
        raise CheckpointError(path, f"tl_arch must be {ARCH!r}, got {config['tl_arch']!r}")
    checkpoints.check_config(config, CONFIG, path)
    order, sizes = config["order"], config["grams"]
    if len(sizes) != order:
        raise CheckpointError(
            path, f"grams must be one number for each of {order} orders, got {sizes}", where="metadata"
        )
    spec = {
        name: ((size,), dtype) for k, size in enumerate(sizes, start=1) for name, dtype in _columns(k, order).items()
    }
    tensors = checkpoints.load_tensors(path, spec)
    tables = []
    for k, size in enumerate(sizes, start=1):
        implied = {"suffix": np.zeros(size, np.int32), "byte": np.arange(size).astype(np.uint8)} if k == 1 else {}
        if k == order:
            implied["log_backoff"] = np.zeros(size, np.float32)
        stored = {name.partition(".")[0]: tensors[name] for name in _columns(k, order)}
        tables.append(Grams(**implied, **stored))
    try:
        model = NGramLM(tables)
    except ValueError as error:
        raise CheckpointError(path, str(error)) from error
    sums = model.context_sums()
    if np.abs(sums - 1).max() > MASS_TOLERANCE:
        worst = int(np.abs(sums - 1).argmax())
        context = model.gram(worst - 1) if worst else b""
        raise CheckpointError(path, f"every distribution must sum to 1, got {sums[worst]:.9g} for context {context!r}")
    return model


def save_ngram(path: str | Path, model: NGramLM, *, training: Mapping[str, Any] | None = None) -> None:
    """Write a model as one safetensors file whose metadata is its config; equal input gives equal bytes.

    Parameters
    ----------
    path
        The file.
    model
        Every number finite: a model with bytes of probability 0 (D_1 = 0) cannot be stored.
    training
        Where the model comes from (recipe, seed, hash of the text): JSON values, recorded and not read.

    Raises
    ------
    CheckpointError
        On a non-finite number.
    """
    sizes = [len(table) for table in model.tables]
    config: dict[str, Any] = {"tl_arch": ARCH, "order": model.order, "vocab_size": VOCAB_SIZE, "grams": sizes}
    if training is not None:
        config["training"] = dict(training)
    tensors = {
        name: getattr(table, name.partition(".")[0]).astype(dtype)
        for k, table in enumerate(model.tables, start=1)
        for name, dtype in _columns(k, model.order).items()
    }
    checkpoints.save_file(path, config, tensors)


def _columns(k: int, order: int) -> dict[str, str]:
    """The tensors of order k and their dtypes: order 1 needs no tree, the top order is no context."""
    columns = {} if k == 1 else {f"suffix.{k}": "int32", f"byte.{k}": "uint8"}
    columns[f"log_prob.{k}"] = "float32"
    if k < order:
        columns[f"log_backoff.{k}"] = "float32"
    return columns
