"""The n-gram recipe: counts, discounts and pruning by hand."""

import numpy as np
import pytest

from tinyllm.training.ngram import RECIPE, count_grams, estimate_discount, train


def as_dict(counts, k):
    of_order = counts[k - 1]
    grams = [int(key).to_bytes(k, "little") for key in of_order.key]  # the key's last byte is the most significant
    return {g: (int(c), int(a)) for g, c, a in zip(grams, of_order.count, of_order.adjusted, strict=True)}


def test_grams_are_counted_and_below_the_top_by_the_distinct_bytes_before_them():
    # "abcab" at order 3: count and adjusted count (the count itself at order 3).
    counts = count_grams(b"abcab", 3)
    assert as_dict(counts, 3) == {b"abc": (1, 1), b"bca": (1, 1), b"cab": (1, 1)}
    assert as_dict(counts, 2) == {b"ab": (2, 1), b"bc": (1, 1), b"ca": (1, 1)}  # before ab: c once, the text's start
    assert as_dict(counts, 1) == {b"a": (2, 1), b"b": (2, 1), b"c": (1, 1)}


def test_a_gram_that_only_opens_the_text_counts_once_and_has_nothing_before_it():
    counts = count_grams(b"xyaya", 3)
    assert as_dict(counts, 2) == {b"xy": (1, 0), b"ya": (2, 2), b"ay": (1, 1)}
    assert as_dict(counts, 1) == {b"x": (1, 0), b"y": (2, 2), b"a": (2, 1)}


def test_counts_of_one_byte_run_together():
    assert as_dict(count_grams(b"aaaa", 2), 1) == {b"a": (4, 1)}


def test_the_discount_is_n1_over_n1_plus_2_n2():
    assert estimate_discount(np.array([1, 1, 1, 2, 2, 5, 0])) == 3 / 7


def test_without_singletons_the_discount_is_one_half():
    assert estimate_discount(np.array([2, 2, 3])) == 0.5
    assert estimate_discount(np.array([4, 0])) == 0.5


def test_discounts_left_out_are_the_estimates_of_each_order():
    text = b"abracadabra alakazam abracadabra"
    estimates = [estimate_discount(of_order.adjusted) for of_order in count_grams(text, 3)]
    ids = np.frombuffer(b"abra kadabra", dtype=np.uint8)
    given = train(text, order=3, discounts=estimates).nll(ids)
    np.testing.assert_array_equal(train(text, order=3).nll(ids), given)
    assert len(set(estimates)) == 3


def test_one_number_stands_for_every_order():
    ids = np.frombuffer(b"cab", dtype=np.uint8)
    np.testing.assert_array_equal(
        train(b"abcab", order=3, discounts=0.75).nll(ids), train(b"abcab", order=3, discounts=[0.75] * 3).nll(ids)
    )


def test_a_gram_below_its_minimum_count_is_dropped_and_its_mass_backs_off():
    # "ababc", order 2, discounts 1/2, pairs seen once dropped: after b nothing is kept, so that its weight is 1.
    model = train(b"ababc", order=2, discounts=0.5, min_counts=[1, 2])
    a, b, c = b"abc"
    assert [len(table) for table in model.tables] == [256, 1]
    seen = 1 / 6 + 1 / 512
    rows = np.exp(model(np.array([[b, a]]))[0])
    np.testing.assert_allclose(rows[0, [a, b, c]], [seen, seen, seen], rtol=1e-6)
    np.testing.assert_allclose(rows[1, [a, b, c]], [seen / 4, 3 / 4 + seen / 4, seen / 4], rtol=1e-6)


def test_a_gram_is_dropped_for_its_count_and_not_for_its_adjusted_count():
    # "ab" occurs three times, always after "c": its adjusted count is 1, its count 3.
    model = train(b"cabxcabycabz", order=3, min_counts=[1, 3, 3])
    assert [model.gram(row) for row in range(256, 256 + len(model.tables[1]))] == [b"ca", b"ab"]


def test_a_text_as_long_as_the_order_is_enough():
    model = train(b"abc", order=3)
    assert [len(table) for table in model.tables] == [256, 2, 1]


def test_equal_texts_give_equal_models_whatever_the_seed():
    one, other = (train(b"abcabdabc", seed=seed, order=3).tables for seed in (1, 2))
    assert all(a.log_prob.tobytes() == b.log_prob.tobytes() for a, b in zip(one, other, strict=True))


def test_the_recipe_is_what_train_takes():
    assert train(b"to be or not to be " * 9, **RECIPE).order == RECIPE["order"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (b"ab", {"order": 3}, "at least order = 3 bytes, got 2"),
        (b"abcdefghij", {"order": 9}, "order must be 1 to 8, got 9"),
        (b"abcdefghij", {"order": 0}, "order must be 1 to 8, got 0"),
        (b"abc", {"order": 2, "discounts": [0.5]}, "one for each of 2 orders, got 1"),
        (b"abc", {"order": 2, "discounts": [0.5, 1.5]}, r"in 0 to 1, and above 0 from order 2 on, got \[0.5, 1.5\]"),
        (b"abc", {"order": 2, "discounts": 0.0}, r"above 0 from order 2 on, got \[0.0, 0.0\]"),
        (b"abc", {"order": 2, "min_counts": [1]}, r"must be 2 numbers, one an order.*got \[1\]"),
        (b"abc", {"order": 2, "min_counts": [2, 1]}, r"never falling, got \[2, 1\]"),
        (b"abc", {"order": 2, "min_counts": [0, 1]}, r"at least 1.*got \[0, 1\]"),
    ],
)
def test_arguments_outside_their_range_are_refused_with_what_came(text, options, message):
    with pytest.raises(ValueError, match=message):
        train(text, **options)
