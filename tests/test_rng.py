import pickle
import random

import numpy as np
import pytest
import randomgen
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stats.naive import NaivePCG32, shuffled

from tinyllm.rng import PCG32, stream

uint64 = st.integers(0, 2**64 - 1)
bounds = st.one_of(st.integers(1, 2**32), st.sampled_from([1, 2, 3 * 2**30, 2**31, 2**31 + 1, 2**32 - 1, 2**32]))
BLOCK_EDGES = [0, 1, 16383, 16384, 16385, 40000]  # the vectorised code works in blocks of 16384


def test_the_published_vector_of_seed_42_sequence_54():
    rng = PCG32(42, 54)
    words = [rng.next_u32() for _ in range(6)]
    assert words == [0xA15C02B7, 0x7B47F409, 0xBA1D3330, 0x83D2F293, 0xBFA4784B, 0xCBED606E]


def test_the_default_sequence_is_that_of_the_published_demo():
    assert PCG32(42).next_u32() == 0xA15C02B7
    assert PCG32().state == PCG32(0, 54).state


@given(seed=uint64, sequence=uint64)
@settings(deadline=None, max_examples=50)
def test_the_stream_is_randomgens_pcg32_from_the_same_state(seed, sequence):
    rng = PCG32(seed, sequence)
    other = randomgen.PCG32(1)
    state = other.state
    state["state"]["state"], state["state"]["inc"] = rng.state  # its own seeding hashes the seed, so the state is set
    other.state = state
    np.testing.assert_array_equal(rng.u32_array(100), other.random_raw(100))


@given(seed=uint64, sequence=uint64)
@settings(deadline=None, max_examples=50)
def test_seeding_is_the_published_one_for_every_seed_and_sequence(seed, sequence):
    rng, naive = PCG32(seed, sequence), NaivePCG32(seed, sequence)
    assert rng.state == (naive.state, naive.increment)
    assert [rng.next_u32() for _ in range(5)] == [naive.next_u32() for _ in range(5)]


@pytest.mark.parametrize("count", BLOCK_EDGES)
def test_a_u32_array_is_the_scalar_stream_and_leaves_its_state(count):
    rng, naive = PCG32(7, 11), NaivePCG32(7, 11)
    drawn = rng.u32_array(count)
    assert drawn.dtype == np.uint32
    assert drawn.tolist() == [naive.next_u32() for _ in range(count)]
    assert rng.state[0] == naive.state


@pytest.mark.parametrize("n", [1, 5, 10000, 3 * 2**30, 2**31 + 1, 2**32 - 1, 2**32])
@pytest.mark.parametrize("count", BLOCK_EDGES)
def test_a_bounded_array_is_the_scalar_stream_with_its_rejections(n, count):
    rng, naive = PCG32(3), NaivePCG32(3, 54)
    drawn = rng.bounded_array(n, count)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == [naive.bounded(n) for _ in range(count)]
    assert rng.state[0] == naive.state


def test_a_bound_of_three_times_2_to_the_30_rejects_a_quarter_of_the_draws():
    rng, naive, used = PCG32(1), NaivePCG32(1, 54), 0
    rng.bounded_array(3 * 2**30, 3000)
    while naive.state != rng.state[0]:
        naive.next_u32()
        used += 1
    assert 3900 < used < 4100  # 4000 are expected, with a standard deviation of 37


def test_a_draw_equal_to_the_threshold_is_kept():
    second = 0x7B47F409  # of PCG32(42, 54); below 2^31, so it is 2^32 mod n for n = 2^32 - second
    n, rng, naive = 2**32 - second, PCG32(42, 54), NaivePCG32(42, 54)
    drawn = rng.bounded_array(n, 50).tolist()
    assert drawn[1] == second
    assert drawn == [naive.bounded(n) for _ in range(50)]
    scalar = PCG32(42, 54)
    assert [scalar.bounded(n), scalar.bounded(n)] == drawn[:2]


@given(seed=uint64, sequence=uint64, n=bounds, split=st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=8))
@settings(deadline=None)
def test_any_split_into_scalar_and_array_draws_gives_the_same_numbers(seed, sequence, n, split):
    rng, naive = PCG32(seed, sequence), NaivePCG32(seed, sequence)
    for vectorised, count in split:
        drawn = rng.bounded_array(n, count).tolist() if vectorised else [rng.bounded(n) for _ in range(count)]
        assert drawn == [naive.bounded(n) for _ in range(count)]
        assert rng.state[0] == naive.state


def test_next_u64_takes_its_first_draw_as_the_high_half():
    assert PCG32(42, 54).next_u64() == 0xA15C02B7_7B47F409


def test_random_is_a_u32_over_2_to_the_32_scalar_or_array():
    rng = PCG32(42, 54)
    assert rng.random() == 0xA15C02B7 / 2**32
    assert rng.random_array(2).tolist() == [0x7B47F409 / 2**32, 0xBA1D3330 / 2**32]


def test_fill_bounded_overwrites_the_array_it_is_given():
    out = np.full(50, 99, np.uint32)
    PCG32(5).fill_bounded(10, out)
    assert out.tolist() == PCG32(5).bounded_array(10, 50).tolist()


@pytest.mark.parametrize("out", [np.empty(3, np.int64), np.empty((2, 2), np.uint32)])
def test_filling_anything_but_a_flat_uint32_array_is_refused(out):
    with pytest.raises(ValueError, match=f"one-dimensional uint32 array, got {out.dtype}"):
        PCG32().fill_u32(out)


@given(seed=uint64, n=st.integers(0, 60))
@settings(deadline=None, max_examples=50)
def test_shuffled_is_fisher_yates_from_the_top(seed, n):
    order = PCG32(seed).shuffled(n)
    assert order.dtype == np.int64
    assert order.tolist() == shuffled(NaivePCG32(seed, 54), n)
    assert sorted(order.tolist()) == list(range(n))


def test_a_fork_neither_draws_nor_depends_on_what_was_drawn():
    rng = PCG32(9)
    before = rng.fork("gpt")
    assert rng.state == PCG32(9).state
    rng.u32_array(100)
    assert rng.fork("gpt").state == before.state


def test_streams_and_forks_differ_by_key_name_index_and_sequence():
    made = [
        PCG32(5),
        stream(5, "gpt"),
        stream(6, "gpt"),
        stream(5, "bert"),
        stream(5, "gpt", 0),
        stream(5, "gpt", 1),
        PCG32(5).fork("gpt"),
        PCG32(5, 55).fork("gpt"),
        PCG32(6).fork("gpt"),
        PCG32(5).fork("bert"),
        PCG32(5).fork("gpt").fork("gpt"),
    ]
    assert len({rng.state for rng in made}) == len(made)


def test_a_pickled_generator_continues_where_it_was():
    rng = PCG32(4)
    rng.next_u32()
    assert pickle.loads(pickle.dumps(rng)).u32_array(5).tolist() == rng.u32_array(5).tolist()  # noqa: S301


def test_drawing_leaves_the_global_generators_untouched():
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    rng = PCG32(1)
    rng.u32_array(20000)
    rng.bounded_array(2**31 + 1, 1000)
    rng.shuffled(100)
    stream(1, "x").random()
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == before  # noqa: NPY002


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_seed_sequence_key_or_index_beyond_64_bits_is_refused_by_name(value):
    for what, call in {
        "seed": lambda: PCG32(value),
        "sequence": lambda: PCG32(0, value),
        "key": lambda: stream(value, "x"),
        "index": lambda: stream(0, "x", value),
    }.items():
        with pytest.raises(ValueError, match=rf"{what} must lie in 0 … 2\^64 - 1, got {value}"):
            call()


@pytest.mark.parametrize("n", [0, -3, 2**32 + 1])
def test_a_bound_outside_1_to_2_to_the_32_is_refused_with_its_value(n):
    for call in (lambda: PCG32().bounded(n), lambda: PCG32().bounded_array(n, 5)):
        with pytest.raises(ValueError, match=rf"must lie in 1 … 2\^32, got {n}"):
            call()


def test_a_negative_count_is_refused_with_its_value():
    for call in (PCG32().u32_array, PCG32().random_array, PCG32().shuffled, lambda k: PCG32().bounded_array(2, k)):
        with pytest.raises(ValueError, match="must not be negative, got -2"):
            call(-2)


def test_a_name_with_a_nul_is_refused_because_it_would_read_as_an_index():
    for call in (lambda: stream(0, "a\0b"), lambda: PCG32().fork("a\0b")):
        with pytest.raises(ValueError, match=r"NUL character, got 'a\\x00b'"):
            call()


def test_a_seed_that_is_no_integer_is_refused():
    with pytest.raises(TypeError):
        PCG32(1.0)
