"""Rows are compared on the same metric, data and items, or not at all; `better` follows the metric's direction."""

from __future__ import annotations

import numpy as np
import pytest

from tinyllm.eval.comparison import compare_rows
from tinyllm.report.rows import blank_row
from tinyllm.result import Result
from tinyllm.stats.permutation import paired_permutation_test


def scored(name, scores, *, metric="bpb", digest="a" * 64, ids=None):
    scores = np.asarray(scores, dtype=float)
    row = {**blank_row(name), "metric": metric, "data": {"name": "t", "sha256": digest}, "status": "ok"}
    return row, Result(float(scores.mean()), -np.inf, np.inf, len(scores), scores, ids)


A = np.random.default_rng(0).normal(size=60)


def test_the_difference_is_of_items_and_p_is_the_paired_test():
    found = compare_rows(*scored("a", A), *scored("b", A + 0.5))
    assert found.delta == pytest.approx(-0.5, rel=1e-12)
    assert found.p == paired_permutation_test(A, A + 0.5)
    assert (found.n, found.better) == (60, "a")


@pytest.mark.parametrize(
    ("metric", "better"), [("nll", "b"), ("ppl", "b"), ("bpb", "b"), ("acc", "a"), ("acc_norm", "a")]
)
def test_lower_is_better_for_nlls_and_higher_for_accuracy(metric, better):
    assert compare_rows(*scored("a", A + 1, metric=metric), *scored("b", A, metric=metric)).better == better


def test_equal_rows_are_equal():
    found = compare_rows(*scored("a", A), *scored("b", A))
    assert (found.delta, found.p, found.better) == (0, 1, "neither")


def test_another_metric_other_data_and_other_items_are_refused():
    with pytest.raises(ValueError, match="same metric, got 'bpb' for a and 'nll' for b"):
        compare_rows(*scored("a", A), *scored("b", A, metric="nll"))
    with pytest.raises(ValueError, match=r"same data, got 't \(aaa"):
        compare_rows(*scored("a", A), *scored("b", A, digest="b" * 64))
    with pytest.raises(ValueError, match="got 60 and 59"):
        compare_rows(*scored("a", A), *scored("b", A[1:]))
    with pytest.raises(ValueError, match="'x' and 'y' at index 0"):
        compare_rows(*scored("a", [1, 2], ids=("x", "z")), *scored("b", [1, 2], ids=("y", "z")))


def test_the_same_data_under_another_name_is_the_same_data():
    row, result = scored("a", A)
    renamed = {**row, "data": {"name": "copy", "sha256": "a" * 64}}
    assert compare_rows(row, result, renamed, result).p == 1
