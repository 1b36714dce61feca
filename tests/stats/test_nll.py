import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.stats.nll import NLLAccumulator

nlls = st.lists(st.floats(0, 1e6), max_size=20)
any_floats = st.lists(st.floats(-1e300, 1e300), max_size=20)


def filled(*batches, n_bytes=0):
    accumulator = NLLAccumulator()
    for batch in batches:
        accumulator.add(batch, n_bytes)
    return accumulator


def readings(accumulator):
    return accumulator.total, accumulator.n, accumulator.n_bytes, accumulator.mean(), accumulator.bpb()


@given(batches=st.lists(st.one_of(nlls, any_floats), max_size=6))
@settings(deadline=None)
def test_the_total_is_the_exact_sum_correctly_rounded(batches):
    exact = sum((Fraction(v) for batch in batches for v in batch), Fraction(0))
    assert filled(*batches).total == float(exact)


@given(left=nlls, right=nlls, more=nlls)
@settings(deadline=None)
def test_merged_accumulators_read_like_the_serial_one(left, right, more):
    serial = filled([1.0], left, right, more, n_bytes=3)
    merged = filled([1.0], left, n_bytes=3)
    other = filled(right, more, n_bytes=3)
    merged.merge(other)
    assert readings(merged) == readings(serial)


def test_a_sum_that_plain_addition_loses_is_kept():
    values = [1e16, 1.0, 1.0, 1.0, -1e16]
    assert np.sum(values) != 3.0
    accumulator = NLLAccumulator()
    for value in values:
        accumulator.add([value])
    assert accumulator.total == 3.0


def test_the_course_texts_strided_example_has_perplexity_the_fifth_root_of_288():
    accumulator = filled(np.log([2, 3, 4, 3, 4]))
    assert accumulator.n == 5
    assert accumulator.mean() == pytest.approx(math.log(288) / 5, rel=1e-15)
    assert accumulator.ppl() == pytest.approx(288**0.2, rel=1e-15)


def test_bits_per_byte_divide_by_bytes_never_by_tokens():
    # 3 tokens of 8 bits each over 6 bytes are 4 bits a byte
    assert filled([math.log(256)] * 3, n_bytes=6).bpb() == 4.0


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000, 12345])
def test_a_uniform_model_over_bytes_is_exactly_8_bits_per_byte(n):
    accumulator = filled([math.log(256)] * n, n_bytes=n)
    assert accumulator.bpb() == 8.0


@pytest.mark.parametrize("value", [0.1, math.log(256), 1 / 3, 0.0])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 10])
def test_equal_nlls_have_themselves_as_the_mean_exactly(value, n):
    assert filled(*[[value]] * n).mean() == value


def test_the_equal_rule_survives_a_merge_and_ends_with_the_first_other_value():
    accumulator = filled([0.1, 0.1])
    accumulator.merge(filled([0.1]))
    assert accumulator.mean() == 0.1
    accumulator.merge(filled([0.7]))
    assert accumulator.mean() == pytest.approx(0.25, rel=1e-15)


def test_an_empty_batch_or_accumulator_adds_nothing():
    accumulator = filled([1.0, 2.0], [])
    accumulator.merge(NLLAccumulator())
    assert (accumulator.total, accumulator.n) == (3.0, 2)


def test_merging_leaves_the_other_as_it_was():
    other = filled([2.0], n_bytes=1)
    filled([1.0]).merge(other)
    assert (other.total, other.n, other.n_bytes) == (2.0, 1, 1)


@pytest.mark.parametrize("reading", ["mean", "ppl"])
def test_a_mean_over_nothing_is_refused(reading):
    with pytest.raises(ValueError, match="at least one scored token, got none"):
        getattr(NLLAccumulator(), reading)()


@pytest.mark.parametrize(("values", "n_bytes"), [([], 5), ([1.0, 2.0], 0)])
def test_bits_per_byte_without_tokens_or_bytes_are_refused_with_both_counts(values, n_bytes):
    with pytest.raises(ValueError, match=f"got {len(values)} tokens and {n_bytes} bytes"):
        filled(values, n_bytes=n_bytes).bpb()


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_an_nll_that_is_not_finite_is_refused_by_its_index_over_all_batches_and_leaves_no_trace(bad):
    accumulator = filled([1.0, 2.0], n_bytes=1)
    with pytest.raises(ValueError, match=f"must be finite, got {bad} at token index 3"):
        accumulator.add([1.0, bad, bad], 7)
    assert readings(accumulator) == (3.0, 2, 1, 1.5, 3 / math.log(2))


def test_a_perplexity_beyond_float64_is_refused_and_names_the_dearest_token():
    accumulator = filled([1.0, 2.0])
    accumulator.merge(filled([3.0, 4000.0, 5.0]))
    with pytest.raises(ValueError, match=r"802\.2 nats over 5 tokens; the largest is 4000\.0 at token index 3"):
        accumulator.ppl()


def test_a_total_beyond_float64_is_refused_with_the_largest_value():
    with pytest.raises(ValueError, match=r"total NLL must fit in float64, got NLLs up to 1\.7e\+308"):
        filled([1.7e308, 1.6e308])


def test_negative_bytes_are_refused_with_the_value():
    with pytest.raises(ValueError, match="n_bytes must not be negative, got -1"):
        filled([1.0], n_bytes=-1)


def test_a_table_of_nlls_is_refused_by_its_shape():
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(1, 2\)"):
        filled([[1.0, 2.0]])
