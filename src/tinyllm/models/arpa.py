r"""An n-gram model as ARPA text, the format that kenlm, SRILM and IRSTLM read (Jurafsky and Martin, section 3.3's
"ARPA format"; the numbers are log10).

A byte is a word of three characters, ``x`` and two hexadecimal digits: ``A`` is ``x41``, a space is ``x20``. Example::

    \data\
    ngram 1=259
    ngram 2=2

    \1-grams:
    -99	<unk>
    -99	<s>
    -99	</s>
    -0.6	x61	-0.3

    \2-grams:
    -0.1	x61 x62

    \end\

``<unk>``, ``<s>`` and ``</s>`` are there because kenlm refuses a file without them. They are no part of our
distribution (each has 10^−99, no gram holds them): score from a null context, ``bos=False, eos=False``. kenlm as
packaged reads orders 2 to 6; a higher order needs a kenlm built for it.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tinyllm.formats.atomic import write_atomic
from tinyllm.models.ngram import NGramLM

NOT_OURS = ("<unk>", "<s>", "</s>")
NEVER = -99  # the log10 that ARPA files give to what cannot happen


def write_arpa(model: NGramLM, path: str | Path) -> None:
    """Write a model as ARPA text; kenlm's score of a byte from a null context is then −nll / ln 10.

    Parameters
    ----------
    model
        Probabilities of 0 are written as 10^−99.
    path
        The file, replaced whole.
    """
    names = [f"x{byte:02x}" for byte in range(256)]
    sizes = [len(table) for table in model.tables]
    lines = ["\\data\\", f"ngram 1={sizes[0] + len(NOT_OURS)}"]
    lines += [f"ngram {k}={size}" for k, size in enumerate(sizes[1:], start=2)]
    words = names
    for k, table in enumerate(model.tables, start=1):
        if k > 1:
            words = [f"{names[byte]} {words[row]}" for byte, row in zip(table.byte, table.suffix, strict=True)]
        lines += ["", f"\\{k}-grams:"]
        lines += [f"{NEVER}\t{word}" for word in NOT_OURS if k == 1]
        log_probs, backoffs = _log10(table.log_prob), _log10(table.log_backoff)
        if k == model.order:
            lines += [f"{p:.9g}\t{gram}" for p, gram in zip(log_probs, words, strict=True)]
        else:
            lines += [f"{p:.9g}\t{gram}\t{b:.9g}" for p, gram, b in zip(log_probs, words, backoffs, strict=True)]
    write_atomic(path, "\n".join([*lines, "", "\\end\\", ""]).encode("ascii"))


def _log10(nats: NDArray[np.float32]) -> list[float]:
    decimal: list[float] = np.maximum(nats.astype(np.float64) / math.log(10), NEVER).tolist()
    return decimal
