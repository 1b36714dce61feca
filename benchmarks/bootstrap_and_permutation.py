"""How fast are the bootstrap and the sign-flip test, against scipy's at its best batch size?

    python -m benchmarks.bootstrap_and_permutation [--items 10000] [--resamples 10000] [--repeats 3]

One process, one thread, CPU seconds; ours and scipy's take turns, the least of each counts (scipy's permutation test,
which takes long, runs once a batch size). scipy draws other random numbers (numpy's PCG64) and sums pairwise, so the
results agree but are not equal. Peak memory is the resident set of a fresh process that makes one of our calls and
imports no scipy. Exit status 1 when a bound is missed: bootstrap within 4 times scipy's time, the test at least 20
times faster (100 times on 0/1 scores), each below 200 MB.
"""

# ruff: noqa: E402 (the thread count must be set before numpy is imported)

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy is imported, here and in the measured processes

import numpy as np

from tinyllm.rng import PCG32, stream
from tinyllm.stats.intervals import bootstrap_ci
from tinyllm.stats.permutation import paired_permutation_test

BATCHES = {"bootstrap": (10, 30, 100, 300), "test": (100, 300, 1000)}
MEMORY_LIMIT_MB = 200


@dataclass(frozen=True)
class Case:
    """One comparison; ``bound`` limits our time over scipy's."""

    name: str
    kind: str
    scores: str
    bound: float


CASES = (
    Case("bootstrap, real-valued scores", "bootstrap", "real", 4.0),
    Case("bootstrap, 0/1 scores", "bootstrap", "binary", 4.0),
    Case("paired test, real-valued scores", "test", "real", 1 / 20),
    Case("paired test, 0/1 scores", "test", "binary", 1 / 100),
)


def scores(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two models' scores of the same n items: correlated, the second a little better."""
    shared, own = (stream(1, name).random_array(n) for name in ("shared", "own"))
    first, second = 0.7 * shared + 0.3 * own, 0.7 * shared + 0.3 * stream(1, "other").random_array(n) + 0.001
    return (first, second) if kind == "real" else ((first < 0.4) * 1.0, (second < 0.4) * 1.0)


def ours(case: Case, n: int, resamples: int) -> object:
    """Our call of a case."""
    a, b = scores(case.scores, n)
    if case.kind == "bootstrap":
        return bootstrap_ci(a, PCG32(1), resamples)
    return paired_permutation_test(a, b, resamples)


def scipys(case: Case, n: int, resamples: int, batch: int) -> object:
    """The same question put to scipy."""
    from scipy import stats

    a, b = scores(case.scores, n)
    if case.kind == "bootstrap":
        result = stats.bootstrap(
            (a,), np.mean, n_resamples=resamples, batch=batch, method="percentile", vectorized=True, rng=1
        )
        return tuple(map(float, result.confidence_interval))
    result = stats.permutation_test(
        (a, b),
        lambda u, v, axis: (u - v).mean(axis=axis),
        permutation_type="samples",
        n_resamples=resamples,
        batch=batch,
        vectorized=True,
        rng=1,
    )
    return float(result.pvalue)


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds and answer of one call."""
    start = time.process_time()
    answer = call()
    return time.process_time() - start, answer


def peak_mb(case: Case, n: int, resamples: int) -> float:
    """Peak resident MB of a fresh process that makes our call."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_here, (case, n, resamples))


def _peak_here(case: Case, n: int, resamples: int) -> float:
    ours(case, n, resamples)
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage's maximum starts at the parent's size
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def compare(case: Case, n: int, resamples: int, repeats: int) -> bool:
    """Measure one case, print its line, and say whether it keeps its bounds."""
    our_s, their_s = [], {batch: [] for batch in BATCHES[case.kind]}
    for turn in range(repeats):
        seconds, our_answer = timed(lambda: ours(case, n, resamples))
        our_s.append(seconds)
        if turn and case.kind == "test":
            continue
        for batch, taken in their_s.items():
            seconds, their_answer = timed(lambda batch=batch: scipys(case, n, resamples, batch))
            taken.append(seconds)
    best = min(their_s, key=lambda batch: min(their_s[batch]))
    mine, theirs, memory = min(our_s), min(their_s[best]), peak_mb(case, n, resamples)
    kept = mine <= case.bound * theirs and memory < MEMORY_LIMIT_MB
    relation = f"{theirs / mine:.1f} times faster" if mine <= theirs else f"{mine / theirs:.2f} times slower"
    print(
        f"{case.name:32s} ours {mine:8.3f} s (worst {max(our_s):.3f})   scipy {theirs:8.3f} s (batch {best}, "
        f"worst {max(their_s[best]):.3f})   {relation}   peak {memory:.0f} MB   {'kept' if kept else 'MISSED'}"
    )
    print(f"{'':32s} ours {our_answer}   scipy {their_answer}", flush=True)
    return kept


def main() -> int:
    """Run every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    from scipy import __version__

    print(
        f"{options.items} items, {options.resamples} resamples; numpy {np.__version__}, scipy {__version__}, 1 thread"
    )
    kept = [compare(case, options.items, options.resamples, options.repeats) for case in CASES]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
