"""The one-sided sign-flip test: does a score higher than b?"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tinyllm.rng import PCG32
from tinyllm.stats.permutation import paired_permutation_test

tenths = st.integers(-9, 9).map(lambda k: k / 10)


def greater(d, n_perm=10_000, rng=None):
    return paired_permutation_test(d, [0.0] * len(d), n_perm, rng, alternative="greater")


@given(d=st.lists(st.one_of(tenths, st.sampled_from([-1.0, 0.0, 1.0])), min_size=1, max_size=10))
@settings(deadline=None)
def test_few_differences_are_enumerated_as_itertools_would(d):
    tens = [round(10 * v) for v in d if v != 0]  # whole numbers: no rounding in the reference
    sums = [sum(s * t for s, t in zip(flip, tens, strict=True)) for flip in product([1, -1], repeat=len(tens))]
    assert greater(d) == sum(one >= sum(tens) for one in sums) / len(sums)


@pytest.mark.parametrize(("plus", "minus"), [(15, 5), (5, 15), (3, 3), (8, 0), (0, 8)])
def test_on_right_or_wrong_scores_it_is_the_one_sided_binomial_test(plus, minus):
    d = [1.0] * plus + [-1.0] * minus + [0.0] * 30
    assert greater(d, 2**20) == pytest.approx(stats.binomtest(plus, plus + minus, alternative="greater").pvalue)


@pytest.mark.parametrize("sign", [1, -1])
def test_enumeration_is_scipys_exact_one_sided_test(sign):
    d = sign * (PCG32(3).random_array(9) - 0.35)
    exact = stats.permutation_test(
        (d, np.zeros(9)), lambda x, y: (x - y).mean(), permutation_type="samples", n_resamples=10_000,
        alternative="greater",
    )  # fmt: skip
    assert greater(d) == pytest.approx(exact.pvalue, rel=1e-12)


@pytest.mark.parametrize("kind", ["any", "equal"])
def test_drawn_patterns_are_counted_on_one_side_only(kind):
    d = PCG32(4).random_array(300) - 0.48
    if kind == "equal":
        d = np.sign(d)
    words = PCG32(9).u32_array(400 * 10).reshape(400, 10)
    flips = np.unpackbits(words.astype("<u4").view(np.uint8), axis=1, bitorder="little")[:, :300]
    sums = (np.where(flips == 1, -1, 1) * d).sum(axis=1)
    assert greater(d, 400, PCG32(9)) == (1 + int((sums >= d.sum() - 1e-9).sum())) / 401
    assert 0.5 < greater(-d, 400, PCG32(9)) < 1


def test_no_difference_at_all_is_p_one():
    assert greater([0.0] * 5) == 1.0
