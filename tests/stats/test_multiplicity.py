"""Holm's adjustment, against the hand and statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from tinyllm.rng import PCG32
from tinyllm.stats.multiplicity import holm


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # .01·3; .03·2; max(.04·1, .06)
        ([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]),
        ([0.02], [0.02]),
        ([0.5, 0.9, 0.01], [1.0, 1.0, 0.03]),
        ([0.2, 0.2], [0.4, 0.4]),
        ([0.0, 1.0], [0.0, 1.0]),
        ([], []),
    ],
)
def test_adjusted_values_are_those_worked_by_hand(p, adjusted):
    assert holm(p) == pytest.approx(adjusted, abs=1e-15)


@settings(max_examples=25)  # statsmodels takes its time
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_adjusted_values_are_statsmodels(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist(), rel=1e-12, abs=1e-300)


def test_of_runs_with_twenty_true_nulls_at_most_one_in_twenty_has_an_alarm():
    p = PCG32(5).random_array(20 * 2000).reshape(2000, 20)
    alarms = np.mean([min(holm(row)) <= 0.05 for row in p])
    assert 0.03 < alarms < 0.065  # 1 − .95^20 = .64 without; 1 − (1 − .05/20)^20 = .049 with
    assert 0.6 < (p.min(axis=1) <= 0.05).mean() < 0.68


@pytest.mark.parametrize(
    ("p", "fault"),
    [
        ([0.5, 1.5], r"a p-value must lie in \[0, 1\], got 1.5 at index 1"),
        ([-0.1], r"a p-value must lie in \[0, 1\], got -0.1 at index 0"),
        ([0.1, float("nan")], r"p must be finite, got nan at index 1 of 2"),
        ([[0.1]], r"p must be one-dimensional, got shape \(1, 1\)"),
        ([[]], r"p must be one-dimensional, got shape \(1, 0\)"),
    ],
)
def test_what_is_no_p_value_is_refused_by_its_value(p, fault):
    with pytest.raises(ValueError, match=fault):
        holm(p)
