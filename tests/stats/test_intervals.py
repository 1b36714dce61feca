import math
import pickle
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from tests.stats import naive
from tests.stats.naive import NaivePCG32

from tinyllm.rng import PCG32
from tinyllm.stats.intervals import bootstrap_ci, fisher_z_interval, mean_ci, normal_ppf, wilson_interval

NLLS = [0.2, 3.1, 0.7, 1.9, 0.05, 2.2, 7.5]
UNBOUNDED = (-math.inf, math.inf)
levels = pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
floats = st.floats(-1e6, 1e6)
both = pytest.mark.parametrize("interval", [mean_ci, lambda x: bootstrap_ci(x, PCG32(1), 20)], ids=["t", "bootstrap"])


class Replay(np.random.Generator):
    """A numpy generator whose integers are PCG32's bounded draws, so that scipy resamples by the same indices."""

    def __init__(self, rng):
        super().__init__(np.random.PCG64())
        self.rng = rng

    def integers(self, low, high=None, size=None, **_options):
        assert low == 0
        return self.rng.bounded_array(high, math.prod(size)).reshape(size)


# Student t


def test_mean_ci_worked_by_hand():
    # mean 2.5, s² = 5/3, s/√n = √(5/12) = 0.645497; t(.975, 3) = 3.182446 (printed tables)
    assert mean_ci([1, 2, 3, 4]) == pytest.approx((2.5 - 3.182446 * 0.645497, 2.5 + 3.182446 * 0.645497), rel=1e-5)


@levels
def test_mean_ci_is_scipys_t_interval(level):
    want = stats.t.interval(level, len(NLLS) - 1, loc=np.mean(NLLS), scale=stats.sem(NLLS))
    assert mean_ci(NLLS, level=level) == pytest.approx(want, rel=1e-12)


@given(x=st.lists(floats, min_size=2, max_size=30), seed=st.integers(0, 99))
@settings(deadline=None)
def test_mean_ci_does_not_depend_on_the_order_of_the_items(x, seed):
    assert mean_ci(x) == mean_ci(np.array(x)[PCG32(seed).shuffled(len(x))])


def test_mean_ci_keeps_small_spreads_at_large_offsets():
    # textbook one-pass variance (Σx² − n·mean²) loses this spread altogether
    lo, hi = mean_ci([1e9 + 1, 1e9 + 2, 1e9 + 3])
    assert (hi - lo) / 2 == pytest.approx(stats.t.ppf(0.975, 2) / math.sqrt(3), rel=1e-6)


@pytest.mark.parametrize("x", [[1e308, -1e308], [1e308, 1.1e308, 1e308]])
def test_a_spread_beyond_float64_is_refused_with_the_values(x):
    with pytest.raises(ValueError, match=r"spread of x must fit in float64, got values .*1e\+308"):
        mean_ci(x)


# Bootstrap


@given(x=st.lists(floats, min_size=2, max_size=12), n_boot=st.integers(1, 40), seed=st.integers(0, 2**64 - 1))
@settings(deadline=None)
def test_bootstrap_ci_is_the_written_definition_bit_by_bit(x, n_boot, seed):
    got = bootstrap_ci(x, PCG32(seed), n_boot)
    want = naive.bootstrap_ci(x, NaivePCG32(seed, 54), n_boot)
    assert got == ((x[0], x[0]) if len(set(x)) == 1 else want)


@pytest.mark.parametrize(("n", "n_boot"), [(3, 2000), (700, 20), (5000, 3), (40000, 1), (40000, 17)])
def test_bootstrap_ci_sums_left_to_right_across_its_chunks_and_tiles(n, n_boot):
    x = PCG32(2).random_array(n) * 10.0 - 3.0
    assert bootstrap_ci(x, PCG32(8), n_boot) == naive.bootstrap_ci(x.tolist(), NaivePCG32(8, 54), n_boot)


def test_bootstrap_ci_is_scipys_on_the_same_resamples():
    result = stats.bootstrap((NLLS,), np.mean, n_resamples=999, method="percentile", rng=Replay(PCG32(3)))
    assert bootstrap_ci(NLLS, PCG32(3), 999) == pytest.approx(tuple(result.confidence_interval), rel=1e-14)


def test_the_quantiles_of_the_default_level_are_exactly_those_of_numpy_at_025_and_975():
    rng = PCG32(3)
    index = rng.bounded_array(len(NLLS), len(NLLS) * 100).reshape(100, -1)
    means = naive.resample_means(NLLS, index.tolist())
    assert bootstrap_ci(NLLS, PCG32(3), 100) == tuple(np.quantile(means, [0.025, 0.975]))


@levels
def test_the_level_moves_the_bootstrap_quantiles(level):
    result = stats.bootstrap(
        (NLLS,), np.mean, n_resamples=200, method="percentile", confidence_level=level, rng=Replay(PCG32(3))
    )
    assert bootstrap_ci(NLLS, PCG32(3), 200, level=level) == pytest.approx(tuple(result.confidence_interval), rel=1e-14)


@pytest.mark.parametrize("x", [[0.5], [0.5, 0.5, 0.5], NLLS])
def test_the_stream_moves_by_n_times_n_boot_draws_whatever_the_scores_are(x):
    rng, naive_rng = PCG32(6), NaivePCG32(6, 54)
    bootstrap_ci(x, rng, 30)
    for _ in range(len(x) * 30):
        naive_rng.bounded(len(x))
    assert rng.state[0] == naive_rng.state


def test_a_thousand_resamples_are_the_default():
    assert bootstrap_ci(NLLS, PCG32(1)) == bootstrap_ci(NLLS, PCG32(1), 1000)


def test_fault_row_48_the_same_seed_gives_the_same_interval_and_no_global_generator_moves():
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    first = bootstrap_ci(NLLS, PCG32(12), 500)
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == before  # noqa: NPY002
    np.random.standard_normal(3)  # noqa: NPY002
    assert bootstrap_ci(NLLS, PCG32(12), 500) == first
    assert bootstrap_ci(NLLS, PCG32(13), 500) != first


def test_fault_row_49_the_bootstrap_holds_a_chunk_of_the_resamples_never_all():
    x = PCG32(1).random_array(10_000)
    bootstrap_ci(x, PCG32(1), 2)  # the jump table and numpy's own caches
    tracemalloc.start()
    bootstrap_ci(x, PCG32(1), 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6  # all the indices at once would be 40 MB in uint32 and 80 MB as numpy gathers


def test_a_resample_sum_beyond_float64_is_refused_with_the_values():
    with pytest.raises(ValueError, match=r"sum of a resample must fit in float64, got values up to 1.5e\+308"):
        bootstrap_ci([1.5e308, 1.4e308], PCG32(1), 50)


@pytest.mark.parametrize("n_boot", [0, -5])
def test_fewer_than_one_resample_is_refused_with_the_value(n_boot):
    with pytest.raises(ValueError, match=f"n_boot must be at least 1, got {n_boot}"):
        bootstrap_ci(NLLS, PCG32(1), n_boot)


# What t and bootstrap share


@both
def test_fault_row_47_one_observation_has_an_unbounded_interval_and_no_nan(interval):
    assert interval([0.7]) == UNBOUNDED


@both
@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, math.log(256), 1.7e308])
def test_equal_observations_have_themselves_as_the_interval_exactly(interval, value):
    assert interval([value] * 7) == (value, value)


@both
def test_nothing_is_refused(interval):
    with pytest.raises(ValueError, match="x must hold at least one observation, got none"):
        interval([])


@both
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_by_value_and_index(interval, bad):
    with pytest.raises(ValueError, match=f"x must be finite, got {bad} at index 2 of 4"):
        interval([1.0, 2.0, bad, 3.0])


@both
def test_a_table_is_refused_by_its_shape(interval):
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(2, 2\)"):
        interval([[1.0, 2.0], [3.0, 4.0]])


@both
def test_intervals_are_two_python_floats(interval):
    assert [type(end) for end in interval(np.array([True, False, True]))] == [float, float]


# Wilson


@levels
@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 20), (1, 20), (10, 20), (20, 20), (137, 1000)])
def test_wilson_is_statsmodels_and_scipys(k, n, level):
    got = wilson_interval(k, n, level=level)
    assert got == pytest.approx(proportion_confint(k, n, alpha=1 - level, method="wilson"), rel=1e-12, abs=1e-15)
    exact = stats.binomtest(k, n).proportion_ci(confidence_level=level, method="wilson")
    assert got == pytest.approx((exact.low, exact.high), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("n", [1, 3, 20, 999])
def test_wilson_touches_0_and_1_exactly_and_nowhere_else(n):
    assert wilson_interval(0, n)[0] == 0.0
    assert wilson_interval(n, n)[1] == 1.0
    assert 0.0 < wilson_interval(0, n)[1] < 1.0
    assert 0.0 < wilson_interval(n, n)[0] < 1.0


def test_wilson_takes_a_whole_number_that_is_a_float():
    assert wilson_interval(np.float64(3.0), 10) == wilson_interval(3, 10)


@pytest.mark.parametrize("k", [-1, 11, 2.5, math.nan])
def test_wilson_refuses_successes_that_are_no_count_up_to_n(k):
    with pytest.raises(ValueError, match=f"whole number from 0 to n = 10, got {k}"):
        wilson_interval(k, 10)


def test_wilson_refuses_zero_trials():
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        wilson_interval(0, 0)


# Fisher z


def test_fisher_z_worked_by_hand():
    # ρ = .5, n = 28: e^{2·atanh ρ} = 3, e^{2·1.959964/5} = 2.190190; tanh u = (e^{2u} − 1) / (e^{2u} + 1)
    low, high = 3 / 2.190190, 3 * 2.190190
    assert fisher_z_interval(0.5, 28) == pytest.approx(((low - 1) / (low + 1), (high - 1) / (high + 1)), rel=1e-5)


@levels
def test_fisher_z_is_scipys_interval_of_a_correlation_of_ranks(level):
    x, y = stats.rankdata(NLLS), stats.rankdata([1.0, 2.5, 0.3, 2.0, 0.1, 5.0, 4.0])
    result = stats.pearsonr(x, y)
    want = result.confidence_interval(level)
    assert fisher_z_interval(result.statistic, 7, level=level) == pytest.approx((want.low, want.high), rel=1e-12)


@pytest.mark.parametrize("rho", [-1.0, 0.3, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_three_pairs_or_fewer_have_no_fisher_interval(rho, n):
    assert fisher_z_interval(rho, n) == UNBOUNDED


@pytest.mark.parametrize("rho", [-1.0, 1.0])
def test_a_perfect_correlation_has_zero_width(rho):
    assert fisher_z_interval(rho, 4) == (rho, rho)


@pytest.mark.parametrize("rho", [1.0000001, -1.5, math.nan])
def test_what_is_no_correlation_is_refused_with_its_value(rho):
    with pytest.raises(ValueError, match=rf"must lie in -1 … 1, got {rho} \(n = 9\)"):
        fisher_z_interval(rho, 9)


def test_fisher_z_refuses_zero_pairs():
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        fisher_z_interval(0.5, 0)


# Normal quantile and level


@pytest.mark.parametrize("p", [1e-300, 1e-12, 0.025, 0.3, 0.5, 0.975, 1 - 1e-12])
def test_normal_ppf_is_scipys(p):
    assert normal_ppf(p) == pytest.approx(stats.norm.ppf(p), rel=1e-14, abs=1e-15)


def test_normal_ppf_reaches_its_limits_at_0_and_1():
    assert (normal_ppf(0), normal_ppf(1)) == UNBOUNDED


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_normal_ppf_refuses_what_is_no_probability(p):
    with pytest.raises(ValueError, match=f"must lie in 0 … 1, got {p}"):
        normal_ppf(p)


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, math.nan])
def test_a_level_outside_0_to_1_is_refused_with_its_value(level):
    for call in (
        lambda: mean_ci(NLLS, level=level),
        lambda: bootstrap_ci(NLLS, PCG32(1), level=level),
        lambda: wilson_interval(1, 2, level=level),
        lambda: fisher_z_interval(0.1, 9, level=level),
    ):
        with pytest.raises(ValueError, match=f"level must lie between 0 and 1, got {level}"):
            call()
