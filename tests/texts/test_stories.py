"""The stories: one derivation a text, exact probabilities, the same bytes everywhere."""

from __future__ import annotations

import re
import subprocess
import sys
from hashlib import sha256
from itertools import islice, permutations
from math import fsum, log

import numpy as np
import pytest

from tinyllm.rng import PCG32, stream
from tinyllm.texts import clauses, load, sentences, stories, vocabulary, world
from tinyllm.texts.choice import derivation, next_byte_log_probs, text_nlls
from tinyllm.texts.opening import introductions, names, point
from tinyllm.texts.world import EVERYBODY, PAIR, World

HELDOUT_SHA256 = "8647edcba678360ddf35d131e97401c07c422a5ae1fca65ea11e1705f2603173"
TRAIN_SHA256 = "0e3ec7d9beb2c5e177c28af0064005956920ce3d89921cdcf326b7c81dab31f4"
GRAMMAR_SHA256 = "70cce3d811f9773f38655d8578c8b8774b89878b1bc3a165204adaf87987418f"


@pytest.fixture(scope="module")
def heldout():
    return load("stories", "heldout")


@pytest.fixture(scope="module")
def made():
    """The choices behind the held-out text, a few more than it shows."""
    rng, taken, length = stream(stories.KEY, "stories/heldout"), [], 0
    for current, index in derivation(stories.source(), rng):
        taken.append((current, index))
        length += len(current.texts[index])
        if length >= 32_768:
            return taken
    return taken


def test_the_bytes_of_both_parts_are_the_published_ones(heldout):
    train = load("stories", "train")
    assert (len(train), len(heldout)) == (2_000_000, 32_768)
    assert sha256(heldout).hexdigest() == HELDOUT_SHA256
    assert sha256(train).hexdigest() == TRAIN_SHA256


def test_the_grammar_is_the_one_that_published_checkpoints_name():
    assert stories.grammar_sha256() == GRAMMAR_SHA256


@pytest.mark.parametrize("hash_seed", ["0", "1", "77"])
def test_a_fresh_process_makes_the_same_bytes_whatever_its_hash_seed(hash_seed):
    program = (
        "import hashlib; from tinyllm.texts import load, stories;"
        "print(stories.grammar_sha256(), hashlib.sha256(load('stories', 'heldout')).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
    )
    assert done.stdout.split() == [GRAMMAR_SHA256, HELDOUT_SHA256]


def test_a_changed_weight_changes_the_grammars_hash(monkeypatch):
    stories.grammar_sha256.cache_clear()
    monkeypatch.setattr(stories, "GAP", point((" ", 5, True), ("\n", 1, False)))
    changed = stories.grammar_sha256()
    stories.grammar_sha256.cache_clear()
    assert changed != GRAMMAR_SHA256


def test_the_texts_are_printable_ascii_with_whole_stories_between_empty_lines(heldout):
    text = heldout.decode("ascii")
    assert set(text) <= {chr(c) for c in range(32, 127)} | {"\n"}
    for written in islice(stories.whole_stories("tests/whole"), 50):
        assert written.endswith(b".\n\n")
        assert written.count(b"\n\n") == 1


def test_the_held_out_text_is_the_concatenation_of_the_streams_whole_stories(heldout):
    joined = b"".join(islice(stories.whole_stories("stories/heldout"), 60))
    assert len(joined) > len(heldout)
    assert joined.startswith(heldout)


def test_the_score_of_the_held_out_text_is_the_weight_of_the_choices_that_made_it(heldout, made):
    text = b"".join(current.texts[index] for current, index in made)
    assert text.startswith(heldout)
    nlls = text_nlls(stories.source(), text)
    assert nlls.sum() == pytest.approx(fsum(-log(c.weights[i] / c.total) for c, i in made), rel=1e-12)
    np.testing.assert_array_equal(text_nlls(stories.source(), heldout), nlls[: len(heldout)])


def test_every_next_byte_distribution_sums_to_one_and_gives_the_score(heldout):
    text = heldout[:6000]
    table = next_byte_log_probs(stories.source(), text)
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1, rtol=1e-12)
    picked = -table[np.arange(len(text)), np.frombuffer(text, np.uint8)]
    np.testing.assert_array_equal(text_nlls(stories.source(), text), picked)


def test_the_entropy_is_that_of_a_language_worth_learning(heldout):
    nlls = text_nlls(stories.source(), load("stories", "heldout")) / log(2)
    assert 0.5 < nlls.mean() < 1.0  # bits per byte
    bits_in_window = np.convolve(nlls, np.ones(50), mode="valid")
    assert np.median(bits_in_window) > 20


@pytest.mark.parametrize(
    ("possible", "impossible"),
    [
        (b"Hugo was a serious nurse with a curious violin. His best friend was H", b"ugo"),  # himself; Hanna could be
        (b"Mira was a serious nurse with a curious violin. He", b" owned"),  # Mira is she; "Her best friend" could be
        (b"Robin was a serious nurse with a curious violin. T", b"hat is how"),  # too early for the end
    ],
)
def test_what_the_story_so_far_forbids_has_probability_zero(possible, impossible):
    nlls = text_nlls(stories.source(), possible + impossible)
    assert np.isfinite(nlls[: len(possible)]).all()
    assert np.isinf(nlls).sum() == 1


def read(text: str) -> dict[str, list[str]]:
    """What the text says, by patterns: a reader that knows nothing of the grammar's program."""
    return {
        "asked": re.findall(r'"How many (\w+) are there\?" asked (\w+)\. "There (?:is|are) (\w+)," \w+ (\w+)\.', text),
        "left": re.findall(r"gave one of the (\w+) \w+ to [\w ]+?, so (\w+) (was|were) left", text),
        "made": re.findall(r"discovered (\w+) more (\w+) [^.]*?, which made (\w+)", text),
    }


def test_counting_is_right_as_another_reader_finds_it():
    numbers = {word: value for value, word in enumerate(vocabulary.NUMBERS)}
    found = 0
    for written in islice(stories.whole_stories("tests/counting"), 400):
        facts = read(written.decode())
        for count, left, copula in facts["left"]:
            assert numbers[left] == numbers[count] - 1
            assert copula == ("was" if left == "one" else "were")
        for _, asker, count, answerer in facts["asked"]:
            assert asker != answerer
            assert numbers[count] >= 1
        found += len(facts["left"]) + len(facts["made"]) + len(facts["asked"])
    assert found > 100


def test_a_story_knows_one_thing_from_its_first_naming_to_its_last():
    found = 0
    for written in islice(stories.whole_stories("tests/thing"), 300):
        text = written.decode()
        named = set(re.findall(r'"(?:Where is|Who has) the ([\w ]+)\?"', text))
        named |= set(re.findall(r"the same ([a-z]+ [a-z]+)", text))
        assert len(named) <= 1
        for thing in named:
            owned = re.search(rf"(?:owned|loved|gave \w+) an? {thing}", text)
            assert owned
            mentioned = re.search(rf"the (?:same )?{thing}", text)
            assert owned.start() < mentioned.start()
            found += 1
    assert found > 100


def test_hours_only_go_forward_within_a_story():
    for written in islice(stories.whole_stories("tests/hours"), 300):
        hours = re.findall(rf"(?:^|[ \n])({'|'.join(vocabulary.HOURS)}),", written.decode())
        order = [vocabulary.HOURS.index(hour) for hour in hours]
        assert order == sorted(set(order))


def test_every_beginning_of_a_sentence_is_prefix_free_whoever_is_in_the_story():
    for people in permutations(EVERYBODY, 2):
        for focus in (*people, PAIR):
            w = World(people=list(people), adjective="red", thing="kite", count=3, counted=("egg", "eggs"), focus=focus)
            w.weather = "rain"
            assert stories.beginnings(w, closes=True).total > 0  # built, so checked


def test_every_topic_that_a_sentence_may_begin_with_is_prefix_free_against_the_others():
    things = {f"{a} {t}" for a in vocabulary.ADJECTIVES for t in vocabulary.THINGS}
    begun = {thing[:end] for thing in things for end in range(1, len(thing) + 1)}
    counts = {f"{n} {noun}" for n in vocabulary.NUMBERS[1:] for pair in vocabulary.COUNTED for noun in pair}
    for topic in counts | set(vocabulary.WEATHER):
        assert topic not in begun
        assert not {topic[:end] for end in range(1, len(topic) + 1)} & things


def test_every_choice_that_depends_on_who_acts_is_prefix_free():
    for who in (*EVERYBODY, PAIR):
        assert clauses.things(who.their).total
        assert clauses.tails(who.name, lists=True).total
        for copula in ("was", "were"):
            flags = dict.fromkeys(("known", "gives", "hides", "finds"), True)
            assert sentences.predicates(copula, **flags).total
        if who is not PAIR:
            every = ("friend", "thing", "count", "weather")
            assert point(*(row for topic in every for row in introductions(topic, who))).total
            assert point(*names(" ", who)).total
    for counted in vocabulary.COUNTED:
        assert sentences.finds(counted).total


def test_no_name_is_a_prefix_of_another_and_pronouns_follow_the_name():
    everybody = [who.name for who in EVERYBODY]
    assert len(set(everybody)) == len(everybody)
    assert not [(a, b) for a, b in permutations(everybody, 2) if b.startswith(a)]
    assert {who.they for who in EVERYBODY} == {"she", "he", "they"}


def test_the_source_writes_hundreds_of_productions():
    seen: set[bytes] = set()
    for current, index in islice(derivation(stories.source(), PCG32(3)), 60_000):
        seen.add(current.texts[index])
    assert len(seen) > 1000
    assert world.PLACE.total > len(world.PLACE.texts)  # some words are likelier than others
