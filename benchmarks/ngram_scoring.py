"""Claim: scoring a text with our byte n-gram is no slower than kenlm's per-token Python calls on the same model.

    OMP_NUM_THREADS=1 python benchmarks/ngram_scoring.py [--bytes N] [--order K] [--train FILE --text FILE]

One run writes our model as ARPA, has kenlm read it, and scores one text with both, round by round; the best round of
each is reported, in processor seconds of the one thread. A ratio above 1 says that we are faster. A text shorter than N
is repeated. Preparing the input is not timed on either side: bytes for us, words (joined by spaces for the last two)
for kenlm. The largest difference of a byte's log10 probability is printed too. Needs kenlm (the oracles-cpp extra).
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kenlm
import numpy as np

from tinyllm.models.arpa import write_arpa
from tinyllm.training import ngram


def by_states(model: kenlm.Model, words: list[str]) -> list[float]:
    """BaseScore over two states, the loop of kenlm's own example."""
    state, out = kenlm.State(), kenlm.State()
    model.NullContextWrite(state)
    scores = []
    for word in words:
        scores.append(model.BaseScore(state, word, out))
        state, out = out, state
    return scores


def by_full_scores(model: kenlm.Model, sentence: str) -> list[float]:
    return [score for score, _, _ in model.full_scores(sentence, bos=False, eos=False)]


def by_sentence(model: kenlm.Model, sentence: str) -> float:
    return model.score(sentence, bos=False, eos=False)


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def texts(arguments: argparse.Namespace) -> tuple[bytes, bytes]:
    """(training text, text to score), from two files or the built-in texts."""
    if arguments.train:
        return arguments.train.read_bytes(), arguments.text.read_bytes()
    from tinyllm.texts import load

    return tuple(b"".join(load(name, split) for name in ("stories", "pydoc")) for split in ("train", "heldout"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1_000_000, help="length of the scored text")
    parser.add_argument("--order", type=int, help="of an unpruned model; left out, the recipe's own")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--text", type=Path)
    arguments = parser.parse_args()
    train_text, text = texts(arguments)
    text = (text * math.ceil(arguments.bytes / len(text)))[: arguments.bytes]
    model = ngram.train(train_text, **({"order": arguments.order} if arguments.order else ngram.RECIPE))
    ids = np.frombuffer(text, dtype=np.uint8)
    words = [f"x{byte:02x}" for byte in text]
    sentence = " ".join(words)
    with tempfile.TemporaryDirectory() as folder:
        write_arpa(model, Path(folder) / "model.arpa")
        theirs = kenlm.Model(str(Path(folder) / "model.arpa"))
    ways = {
        "ours: nll": lambda: model.nll(ids),
        "kenlm: BaseScore per token": lambda: by_states(theirs, words),
        "kenlm: full_scores": lambda: by_full_scores(theirs, sentence),
        "kenlm: score(sentence), no per-token numbers": lambda: by_sentence(theirs, sentence),
    }
    best = dict.fromkeys(ways, math.inf)
    for _ in range(arguments.repeats):
        for name, call in ways.items():
            best[name] = min(best[name], seconds(call))
    ours = best["ours: nll"]
    print(f"{len(text)} bytes, order {model.order}, {sum(map(len, model.tables))} grams, best of {arguments.repeats}")
    for name, wall in best.items():
        print(f"{name:46} {len(text) / wall / 1e6:7.2f} M bytes/s   ratio to ours {wall / ours:5.2f}")
    difference = np.abs(-model.nll(ids) / math.log(10) - by_full_scores(theirs, sentence)[1:]).max()
    print(f"largest difference of a byte: {difference:.2e} log10")


if __name__ == "__main__":
    main()
