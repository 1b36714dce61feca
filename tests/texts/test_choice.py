"""Choice points on grammars small enough to work by hand, and the scorer against the generator's own record."""

from __future__ import annotations

from math import fsum, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.rng import PCG32
from tinyllm.texts.choice import (
    ChoicePoint,
    Program,
    derivation,
    determined,
    literal,
    next_byte_log_probs,
    point,
    text_nlls,
)

# Three productions: S -> "the " N "."   N -> "cat" (2) | "car" (1) | "dog" (1)   and a cat is "." or "s."
NOUN = point(("cat", 2, "cat"), ("car", 1, "car"), ("dog", 1, "dog"))
END = point((".", 3, False), ("s.", 1, True))


def small() -> Program:
    yield literal("the ")
    noun = yield NOUN
    if noun == "cat":
        yield END
    else:
        yield literal(".")


@pytest.mark.parametrize(
    ("text", "nlls"),
    [
        (b"the cat.", [0, 0, 0, 0, log(4 / 3), 0, log(3 / 2), log(4 / 3)]),
        (b"the cats.", [0, 0, 0, 0, log(4 / 3), 0, log(3 / 2), log(4), 0]),
        (b"the car.", [0, 0, 0, 0, log(4 / 3), 0, log(3), 0]),
        (b"the dog.", [0, 0, 0, 0, log(4), 0, 0, 0]),
    ],
)
def test_the_small_grammar_scores_as_worked_by_hand(text, nlls):
    np.testing.assert_array_equal(text_nlls(small(), text), nlls)


def test_the_small_grammars_texts_have_probabilities_that_sum_to_one():
    texts = [b"the cat.", b"the cats.", b"the car.", b"the dog."]
    assert [np.exp(-text_nlls(small(), text).sum()) for text in texts] == pytest.approx([3 / 8, 1 / 8, 1 / 4, 1 / 4])


def test_the_next_byte_after_the_c_is_a_and_after_ca_is_t_twice_as_often_as_r():
    table = np.exp(next_byte_log_probs(small(), b"the ca"))
    assert table.shape == (7, 256)
    assert {chr(b): p for b, p in enumerate(table[4]) if p} == pytest.approx({"c": 3 / 4, "d": 1 / 4})
    assert {chr(b): p for b, p in enumerate(table[5]) if p} == {"a": 1}
    assert {chr(b): p for b, p in enumerate(table[6]) if p} == pytest.approx({"t": 2 / 3, "r": 1 / 3})


def test_a_prefix_of_a_text_scores_as_the_texts_first_bytes_wherever_it_is_cut():
    whole = text_nlls(small(), b"the cats.")
    for end in range(10):
        np.testing.assert_array_equal(text_nlls(small(), b"the cats."[:end]), whole[:end])


@pytest.mark.parametrize(("text", "place"), [(b"the cow.", 5), (b"The cat.", 0), (b"the cat!", 7), (b"the dogs", 7)])
def test_the_first_impossible_byte_is_infinite_and_what_follows_is_uniform(text, place):
    nlls = text_nlls(small(), text)
    assert np.isfinite(nlls[:place]).all()
    assert nlls[place] == inf
    assert (nlls[place + 1 :] == log(256)).all()
    after = next_byte_log_probs(small(), text)[place + 1 :]
    assert (after == -log(256)).all()


def test_text_after_the_programs_end_is_impossible():
    nlls = text_nlls(small(), b"the dog.\n!")
    assert nlls.tolist()[-2:] == [inf, log(256)]
    assert (next_byte_log_probs(small(), b"the dog.\n!")[-3:] == -log(256)).all()


def test_empty_text_has_no_nlls_and_one_distribution():
    assert text_nlls(small(), b"").shape == (0,)
    assert next_byte_log_probs(small(), b"")[0, ord("t")] == 0


@pytest.mark.parametrize(
    "texts", [["ab", "abc"], ["x", "x"], ["the", "a", "then"], ["b", "ab", "a", "c"]], ids=lambda texts: "|".join(texts)
)
def test_a_choice_with_a_prefix_of_another_is_refused_by_name(texts):
    with pytest.raises(ValueError, match=r"prefix-free, got b'\w+' and b'\w+'"):
        ChoicePoint([(text, 1, text) for text in texts])


@pytest.mark.parametrize("rows", [[], [("", 1, 0)], [("a", 1, 0), ("b", 0, 0)]], ids=["none", "empty", "weightless"])
def test_an_empty_choice_or_a_weight_below_one_is_refused(rows):
    with pytest.raises(ValueError, match="non-empty with weights of at least 1, got ChoicePoint"):
        ChoicePoint(rows)


def test_a_determined_word_is_a_literal_whose_foils_leave_out_the_truth():
    word = determined("pronoun", " she", (" he", " she", " they"))
    assert (word.texts, word.foils, word.kind) == ((b" she",), (b" he", b" they"), "pronoun")
    assert word.nlls(0) == (0, 0, 0, 0)


def test_a_literal_draws_nothing_from_the_stream():
    rng = PCG32(1)
    before = rng.state
    assert literal("the ").drawn(rng) == 0
    assert rng.state == before
    NOUN.drawn(rng)
    assert rng.state != before


def test_alternatives_are_drawn_by_one_bounded_ticket_against_the_running_weights():
    tickets = PCG32(7)
    expected = [(0, 0, 1, 2)[tickets.bounded(4)] for _ in range(200)]
    rng = PCG32(7)
    assert [NOUN.drawn(rng) for _ in range(200)] == expected


def test_a_choice_is_drawn_as_often_as_its_weight_says():
    rng = PCG32(5)
    counts = np.bincount([NOUN.drawn(rng) for _ in range(8000)], minlength=3)
    expected = np.array([4000, 2000, 2000])
    assert ((counts - expected) ** 2 / expected).sum() < 13.8  # chi-squared, 2 degrees of freedom, p = .001


words = st.text(alphabet="abc", min_size=1, max_size=4)


@st.composite
def prefix_free(draw):
    chosen: list[str] = []
    for word in draw(st.lists(words, min_size=1, max_size=8)):
        if not any(word.startswith(other) or other.startswith(word) for other in chosen):
            chosen.append(word)
    weights = draw(st.lists(st.integers(1, 9), min_size=len(chosen), max_size=len(chosen)))
    return [(word, weight, i) for i, (word, weight) in enumerate(zip(chosen, weights, strict=True))]


@given(st.lists(prefix_free(), min_size=1, max_size=5), st.integers(0, 2**32))
def test_any_grammars_bytes_telescope_to_the_weights_of_the_choices_made(rows, seed):
    def program() -> Program:
        for alternatives in rows:
            yield ChoicePoint(alternatives)

    made = list(derivation(program(), PCG32(seed)))
    text = b"".join(current.texts[index] for current, index in made)
    nlls = text_nlls(program(), text)
    expected = fsum(-log(current.weights[index] / current.total) for current, index in made)
    assert nlls.sum() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    table = next_byte_log_probs(program(), text)[: len(text)]
    np.testing.assert_array_equal(nlls, -table[np.arange(len(text)), list(text)])
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1, rtol=1e-12)
