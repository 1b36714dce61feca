"""The table of metrics: one definition of each number, its interval, its unit, its direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tinyllm.metrics import CHOICE_METRICS, METRICS, TEXT_METRICS

NLLS = np.array([0.5, 1.25, 3.0, 0.25, 2.0])


def test_mean_nll_has_scipys_t_interval():
    value, lo, hi = METRICS["nll"].estimate(NLLS, None)
    assert value == pytest.approx(1.4)
    want = stats.t.interval(0.95, 4, loc=1.4, scale=stats.sem(NLLS))
    assert (lo, hi) == pytest.approx(want, rel=1e-12)


def test_perplexity_is_exp_of_the_mean_and_of_the_ends():
    value, lo, hi = METRICS["ppl"].estimate(NLLS, None)
    assert (value, lo, hi) == pytest.approx([math.exp(x) for x in METRICS["nll"].estimate(NLLS, None)], rel=1e-14)
    assert hi - value > value - lo  # not symmetric


def test_bits_per_byte_are_the_total_over_the_bytes_in_base_two():
    """7 nats over 10 bytes: 7 / (10 ln 2) = 1.0099 bits a byte."""
    value, lo, hi = METRICS["bpb"].estimate(NLLS, 10)
    assert value == pytest.approx(7 / (10 * math.log(2)), rel=1e-14)
    _, nll_lo, nll_hi = METRICS["nll"].estimate(NLLS, None)
    assert (lo, hi) == pytest.approx((nll_lo / 2 / math.log(2), nll_hi / 2 / math.log(2)), rel=1e-14)


@given(st.integers(2, 3000), st.integers(1, 8))
def test_equal_bytes_have_a_zero_width_interval(n, bits):
    value, lo, hi = METRICS["bpb"].estimate(np.full(n, math.log(2**bits)), n)
    assert value == lo == hi
    assert value == pytest.approx(bits, rel=1e-15)


def test_eight_bits_are_eight():
    assert METRICS["bpb"].estimate(np.full(20_479, math.log(256)), 20_479) == (8.0, 8.0, 8.0)


@pytest.mark.parametrize("n_bytes", [None, 0, -3])
def test_bits_per_byte_without_bytes_are_an_error(n_bytes):
    with pytest.raises(ValueError, match=f"n_bytes={n_bytes}"):
        METRICS["bpb"].estimate(NLLS, n_bytes)


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_a_metric_over_no_token_is_an_error(name):
    with pytest.raises(ValueError):
        METRICS[name].estimate(np.array([]), 1)


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_an_infinite_nll_is_an_error(name):
    with pytest.raises(ValueError, match="got inf for token 2: it was given probability 0"):
        METRICS[name].estimate(np.array([1.0, math.inf]), 2)


@pytest.mark.parametrize("name", CHOICE_METRICS)
@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_accuracy_has_scipys_wilson_interval(name, right):
    value, lo, hi = METRICS[name].estimate(np.array(right, dtype=float), None)
    want = stats.binomtest(sum(right), len(right)).proportion_ci(method="wilson")
    assert value == sum(right) / len(right)
    assert (lo, hi) == pytest.approx((want.low, want.high), abs=1e-12)


def test_accuracy_over_nothing_and_of_scores_that_are_none_is_an_error():
    with pytest.raises(ValueError, match="no items"):
        METRICS["acc"].estimate(np.array([]), None)
    with pytest.raises(ValueError, match=r"got 0\.5 for item 1"):
        METRICS["acc"].estimate(np.array([1, 0.5]), None)


def test_the_table_states_units_and_directions():
    stated = {name: (metric.unit, metric.better, metric.better_item) for name, metric in METRICS.items()}
    assert stated == {
        "nll": ("nats/token", "lower", "lower"),
        "ppl": ("perplexity", "lower", "lower"),
        "bpb": ("bits/byte", "lower", "lower"),
        "acc": ("proportion", "higher", "higher"),
        "acc_norm": ("proportion", "higher", "higher"),
    }
