import math
import pickle
import random
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.stats import naive
from tests.stats.naive import NaivePCG32

from tinyllm.rng import PCG32
from tinyllm.stats.permutation import paired_permutation_test

tenths = st.integers(-9, 9).map(lambda k: k / 10)  # sums of tenths that tie in exact arithmetic differ by rounding
signs = st.sampled_from([-1.0, 0.0, 1.0])


def scores(n, step):
    rng = PCG32(step)
    return rng.random_array(n), rng.random_array(n)


@given(d=st.lists(st.one_of(tenths, st.floats(-5, 5)), min_size=1, max_size=11))
@settings(deadline=None)
def test_few_differences_are_enumerated_as_itertools_would(d):
    nonzero = [v for v in d if v != 0]
    flips = product([0, 1], repeat=len(nonzero))
    want = naive.count_hits(nonzero, flips) / 2 ** len(nonzero)
    assert paired_permutation_test(d, [0.0] * len(d)) == want


@given(
    d=st.one_of(st.lists(tenths, min_size=1, max_size=100), st.lists(signs, min_size=1, max_size=100)),
    n_perm=st.integers(1, 60),
    seed=st.integers(0, 2**64 - 1),
)
@settings(deadline=None)
def test_drawn_patterns_give_the_p_value_of_the_written_definition(d, n_perm, seed):
    zeros = [0.0] * len(d)
    got = paired_permutation_test(d, zeros, n_perm, PCG32(seed))
    assert got == naive.permutation_p(d, zeros, n_perm, NaivePCG32(seed, 54))


@pytest.mark.parametrize("n", [31, 32, 33, 500, 3000])
@pytest.mark.parametrize("kind", ["any", "equal"])
def test_the_fast_paths_count_the_hits_of_the_definition_across_words_and_tiles(n, kind):
    a, b = scores(n, 4)
    if kind == "equal":
        a, b = np.round(a), np.round(b)
    got = paired_permutation_test(a, b, 300, PCG32(9))
    assert got == naive.permutation_p(a.tolist(), b.tolist(), 300, NaivePCG32(9, 54))
    assert 1 / 301 < got < 1


def test_more_patterns_than_fit_one_chunk_are_all_drawn_and_counted_once():
    a, b = scores(32 * 4096, 5)  # 4096 words a pattern: a chunk holds 256 patterns
    rng, whole = PCG32(2), PCG32(2)
    p = paired_permutation_test(a, b, 300, rng)
    flips = np.unpackbits(whole.u32_array(300 * 4096).view(np.uint8), bitorder="little").reshape(300, -1)
    d = a - b
    sums = [d.sum() - 2 * d[row == 1].sum() for row in flips]
    assert p == (1 + int((np.abs(sums) >= abs(d.sum())).sum())) / 301
    assert rng.state == whole.state


@pytest.mark.parametrize(("plus", "minus"), [(15, 5), (9, 1), (3, 3), (12, 8)])
def test_on_right_or_wrong_scores_the_enumeration_is_mcnemars_exact_test(plus, minus):
    a = [1.0] * plus + [0.0] * minus + [1.0] * 30
    b = [0.0] * plus + [1.0] * minus + [1.0] * 30
    want = stats.binomtest(plus, plus + minus).pvalue
    assert paired_permutation_test(a, b, 2**20) == pytest.approx(want, rel=1e-12)


def test_enumeration_is_scipys_exact_permutation_test():
    a, b = scores(9, 7)
    exact = stats.permutation_test(
        (a, b), lambda u, v, axis: (u - v).sum(axis=axis), permutation_type="samples", vectorized=True
    )
    assert paired_permutation_test(a, b) == pytest.approx(exact.pvalue, abs=1e-12)


def test_random_patterns_come_near_the_exact_value():
    a, b = scores(12, 14)
    exact = paired_permutation_test(a, b, 2**12)
    assert 0.05 < exact < 0.95
    drawn = paired_permutation_test(a, b, 2**12 - 1, PCG32(5))
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 2**12))


def test_enumeration_begins_where_the_patterns_are_no_more_than_n_perm_and_draws_nothing():
    a, b = scores(6, 2)
    rng = PCG32(1)
    paired_permutation_test(a, b, 64, rng)
    assert rng.state == PCG32(1).state
    paired_permutation_test(a, b, 63, rng)
    assert rng.state != PCG32(1).state


def test_ties_are_dropped_so_they_neither_draw_nor_change_the_exact_value():
    a, b = scores(8, 2)
    tied_a, tied_b = np.concatenate([a, np.ones(500)]), np.concatenate([b, np.ones(500)])
    assert paired_permutation_test(tied_a, tied_b) == paired_permutation_test(a, b)
    rng = PCG32(3)
    assert paired_permutation_test(tied_a, tied_b, 100, rng) == paired_permutation_test(a, b, 100, PCG32(3))
    reference = PCG32(3)
    reference.u32_array(100)
    assert rng.state == reference.state


def test_all_ties_have_p_1():
    assert paired_permutation_test([0.3, 0.4], [0.3, 0.4]) == 1.0


def test_one_difference_has_p_1_because_both_signs_are_as_large():
    assert paired_permutation_test([1.0, 2.0], [0.0, 2.0]) == 1.0


def test_a_drawn_p_is_never_zero():
    assert paired_permutation_test([1.0] * 300, [0.0] * 300, 99) == 1 / 100


def test_near_ties_count_as_hits():
    # ±.1 ±.2 ±.3 against the observed .6: only all plus and all minus, however .1 + .2 + .3 is rounded
    assert paired_permutation_test([0.3, 0.2, 0.1], [0, 0, 0]) == 2 / 8
    # .1 + .2 − .3 is 5.6e-17 in float64 and 0 in exact arithmetic: every pattern is at least as large
    assert paired_permutation_test([0.1, 0.2, -0.3], [0, 0, 0]) == 1.0


@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1060])
def test_scores_of_any_size_give_the_p_value_of_scores_near_1(scale):
    a = np.array([3, 1, 4, 1, 5, 9, 2, 6.0])
    b = np.array([2, 7, 1, 8, 2, 8, 1, 8.0])
    assert paired_permutation_test(a * scale, b * scale) == paired_permutation_test(a, b)


def test_the_order_of_the_two_models_does_not_matter():
    a, b = scores(40, 6)
    assert paired_permutation_test(a, b, 500) == paired_permutation_test(b, a, 500)


def test_the_default_is_ten_thousand_patterns_from_pcg32_of_0():
    a, b = scores(50, 8)
    assert paired_permutation_test(a, b) == paired_permutation_test(a, b, 10000, PCG32(0, 54))
    assert paired_permutation_test(a, b) != paired_permutation_test(a, b, rng=PCG32(1))


def test_fault_row_45_paired_data_is_significant_where_an_unpaired_test_sees_nothing():
    a = np.array([1.0] * 15 + [0.0] * 5 + [1.0] * 100 + [0.0] * 80)
    b = np.array([0.0] * 15 + [1.0] * 5 + [1.0] * 100 + [0.0] * 80)
    unpaired = stats.ttest_ind(a, b).pvalue
    paired = paired_permutation_test(a, b, 2**20)
    assert unpaired > 0.3
    assert paired == pytest.approx(stats.binomtest(5, 20).pvalue, rel=1e-12)
    assert paired < 0.05


def test_fault_row_48_the_same_seed_gives_the_same_p_and_no_global_generator_moves():
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    a, b = scores(60, 1)
    assert paired_permutation_test(a, b, 500, PCG32(2)) == paired_permutation_test(a, b, 500, PCG32(2))
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == before  # noqa: NPY002


@pytest.mark.parametrize("kind", ["any", "equal"])
def test_fault_row_49_the_test_holds_bits_never_a_matrix_of_signed_differences(kind):
    a, b = scores(10_000, 1)
    if kind == "equal":
        a, b = np.round(a), 1 - np.round(a)
    tracemalloc.start()
    paired_permutation_test(a, b, 2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24e6  # the matrix would be 160 MB in float64, 20 MB as bytes and 2.5 MB as the bits drawn


def test_different_lengths_are_refused_with_both():
    with pytest.raises(ValueError, match="must score the same items, got 3 and 2 scores"):
        paired_permutation_test([1, 2, 3], [1, 2])


@pytest.mark.parametrize(("a", "b", "name"), [([], [], "a"), ([1.0], [], "b")])
def test_no_scores_are_refused_by_name(a, b, name):
    with pytest.raises(ValueError, match=f"{name} must hold at least one observation, got none"):
        paired_permutation_test(a, b)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_refused_by_name_value_and_index(bad):
    with pytest.raises(ValueError, match=f"b must be finite, got {bad} at index 1 of 2"):
        paired_permutation_test([1.0, 2.0], [1.0, bad])


def test_a_difference_beyond_float64_is_refused_with_its_scores():
    with pytest.raises(ValueError, match=r"a - b must fit in float64, got 1e\+308 - -1e\+308 at index 1"):
        paired_permutation_test([0.0, 1e308], [1.0, -1e308])


@pytest.mark.parametrize("n_perm", [0, -1])
def test_fewer_than_one_pattern_is_refused_with_the_value(n_perm):
    with pytest.raises(ValueError, match=f"n_perm must be at least 1, got {n_perm}"):
        paired_permutation_test([1.0], [0.0], n_perm)
