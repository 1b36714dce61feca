"""The source of the stories is a row of the zoo, and its entropy is the floor that no model can go below.

A model that is better than the source on the same bytes has seen them, or is scored wrongly.
"""

import pytest


@pytest.mark.parametrize("name", ["bigram", "ngram", "gpt"])
def test_no_model_is_better_than_the_source(evaluate, name):
    found = evaluate.compare(name, "source")
    assert found.delta > 0 or found.p > 0.001


@pytest.mark.parametrize("name", ["bigram", "ngram", "gpt"])
def test_a_model_that_learned_is_better_than_the_uniform_one(evaluate, name):
    model, uniform = evaluate(name), evaluate("uniform")
    assert model.hi < uniform.lo
    assert evaluate.compare(name, "uniform").p < 0.001


def test_gpt_is_better_than_the_ngram_and_the_ngram_than_the_bigram(evaluate):
    for better, worse in (("gpt", "ngram"), ("ngram", "bigram")):
        found = evaluate.compare(better, worse)
        assert (found.better, found.p < 0.001) == ("a", True)
