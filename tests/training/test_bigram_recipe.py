"""The bigram recipe: its table is counted by hand."""

import math

import numpy as np
import pytest

from tinyllm.training.bigram import train


def test_a_table_entry_is_the_log_of_the_smoothed_relative_frequency():
    # "abac": a is followed by b and by c, b by a. With k = 1 row a has (1 + 1) / (2 + 256) at b and c, else 1 / 258.
    table = train(b"abac", add_k=1.0).table
    a, b, c = b"abc"
    np.testing.assert_allclose(np.exp(table[a, [a, b, c]]), [1 / 258, 2 / 258, 2 / 258], rtol=1e-6)
    np.testing.assert_allclose(np.exp(table[b, [a, b]]), [2 / 257, 1 / 257], rtol=1e-6)
    np.testing.assert_allclose(np.exp(table[c]), np.full(256, 1 / 256), rtol=1e-6)


def test_one_byte_has_no_pair_and_gives_the_uniform_model_up_to_rounding():
    nlls = train(b"x").nll(np.array([1, 2, 3]))
    np.testing.assert_allclose(nlls, [math.log(256)] * 2, rtol=1e-12)


def test_every_row_sums_to_1():
    table = train(b"to be or not to be", add_k=0.01).table.astype(np.float64)
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1, rtol=1e-6)


def test_equal_texts_give_equal_tables_whatever_the_seed():
    assert train(b"abcabd", seed=1).table.tobytes() == train(b"abcabd", seed=2).table.tobytes()


@pytest.mark.parametrize("add_k", [0.0, -1.0, math.inf, math.nan])
def test_add_k_must_be_a_positive_number(add_k):
    with pytest.raises(ValueError, match=f"add_k must be a positive number, got {add_k}"):
        train(b"ab", add_k=add_k)


def test_an_empty_text_is_refused():
    with pytest.raises(ValueError, match="at least one byte, got b''"):
        train(b"")
