"""The definitions of ``formats/pcg32.md`` in plain Python, slow and without tinyllm: the reference of the fast code."""

import hashlib
import math
from itertools import product

TOLERANCE = 1e-12


class NaivePCG32:
    def __init__(self, seed, sequence):
        self.increment = (2 * sequence + 1) % 2**64
        self.state = 0
        self.next_u32()
        self.state = (self.state + seed) % 2**64
        self.next_u32()

    def next_u32(self):
        old = self.state
        self.state = (old * 6364136223846793005 + self.increment) % 2**64
        word = ((old ^ (old >> 18)) >> 27) % 2**32
        return ((word * 2**32 + word) >> (old >> 59)) % 2**32

    def bounded(self, n):
        while (draw := self.next_u32()) < 2**32 % n:
            pass
        return draw % n


def digest_stream(data):
    digest = hashlib.sha256(data).digest()
    return digest.hex(), int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")


def shuffled(rng, n):
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = rng.bounded(i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def resample_means(x, indexes):
    means = []
    for row in indexes:
        total = 0.0
        for i in row:
            total += x[i]
        means.append(total / len(x))
    return means


def quantile(values, q):
    m = sorted(values)
    v = (len(m) - 1) * q
    k = math.floor(v)
    g = v - k
    a, b = m[k], m[min(k + 1, len(m) - 1)]
    return a + (b - a) * g if g < 0.5 else b - (b - a) * (1 - g)


def bootstrap_ci(x, rng, n_boot):
    indexes = [[rng.bounded(len(x)) for _ in x] for _ in range(n_boot)]
    means = resample_means(x, indexes)
    return quantile(means, 0.025), quantile(means, 0.975)


def count_hits(d, patterns):
    scale = sum(abs(v) for v in d)
    bound = abs(sum(d)) - TOLERANCE * scale
    return sum(abs(sum(-v if flip else v for v, flip in zip(d, flips, strict=True))) >= bound for flips in patterns)


def drawn_patterns(m, n_perm, rng):
    for _ in range(n_perm):
        words = [rng.next_u32() for _ in range(math.ceil(m / 32))]
        yield [words[i // 32] >> (i % 32) & 1 for i in range(m)]


def permutation_p(a, b, n_perm, rng):
    d = [u - v for u, v in zip(a, b, strict=True) if u != v]
    if 2 ** len(d) <= n_perm:
        return count_hits(d, product([0, 1], repeat=len(d))) / 2 ** len(d)
    return (1 + count_hits(d, drawn_patterns(len(d), n_perm, rng))) / (1 + n_perm)
