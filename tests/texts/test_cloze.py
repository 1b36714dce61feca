"""The multiple-choice task from the stories: true by the source, and nothing but the story gives the answer away."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tinyllm.formats.choices import read_choices
from tinyllm.formats.tokens import open_tokens
from tinyllm.texts import cloze_items, load
from tinyllm.texts.choice import text_nlls
from tinyllm.texts.files import cloze_jsonl, write_data
from tinyllm.texts.stories import source

DATA = Path(__file__).parents[2] / "evals" / "data"


@pytest.fixture(scope="module")
def items():
    return cloze_items()


def log_likelihood(context: str, choice: str) -> float:
    nlls = text_nlls(source(), (context + choice).encode())
    assert np.isfinite(nlls[: len(context)]).all()
    return -nlls[len(context) :].sum()


def test_the_files_are_what_the_code_writes(tmp_path):
    write_data(tmp_path)
    for name in ("stories-heldout.bin", "stories-cloze.jsonl"):
        assert (DATA / name).read_bytes() == (tmp_path / name).read_bytes()


def test_the_token_file_is_the_held_out_text():
    tokens = open_tokens(DATA / "stories-heldout.bin")
    assert tokens.ids.astype(np.uint8).tobytes() == load("stories", "heldout")
    assert (tokens.vocab_size, tokens.n_bytes) == (256, 32_767)


def test_the_task_file_reads_back_as_the_items(items):
    rows = read_choices(DATA / "stories-cloze.jsonl")
    assert [(row.id, row.context, list(row.choices), row.answer) for row in rows] == [
        (item["id"], item["context"], item["choices"], item["answer"]) for item in items
    ]
    assert len({row.id for row in rows}) == len(rows) == 350
    assert cloze_jsonl().count("\n") == 350


def test_the_source_gives_the_true_choice_probability_one_and_each_wrong_one_zero(items):
    for item in items:
        scores = [log_likelihood(item["context"], choice) for choice in item["choices"]]
        assert scores[item["answer"]] == 0
        assert all(score == -np.inf for i, score in enumerate(scores) if i != item["answer"])


def test_answers_stand_at_every_place_equally_often(items):
    for size in (2, 3, 4):
        places = Counter(item["answer"] for item in items if len(item["choices"]) == size)
        assert set(places) == set(range(size))
        assert max(places.values()) - min(places.values()) <= 1


def test_choices_are_distinct_and_of_one_form(items):
    for item in items:
        choices = item["choices"]
        assert len(set(choices)) == len(choices)
        assert len({choice.startswith(" ") for choice in choices}) == 1
        assert len({choice.strip()[0].isupper() for choice in choices}) == 1


@pytest.mark.parametrize("pick", [max, min], ids=["longest", "shortest"])
def test_the_length_of_a_choice_tells_nothing(items, pick):
    chance = np.array([1 / len(item["choices"]) for item in items])
    hits = np.empty(len(items))
    for i, item in enumerate(items):
        lengths = [len(choice) for choice in item["choices"]]
        best = pick(lengths)
        hits[i] = (lengths[item["answer"]] == best) / lengths.count(best)  # ties are broken at random
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs((hits - chance).sum()) < 3 * spread


def test_a_dozen_kinds_of_knowledge_are_asked_for(items):
    kinds = Counter(item["id"].rsplit("-", 1)[0] for item in items)
    assert len(kinds) >= 12
    assert {"possessive", "agreement", "adjective", "count", "sum", "place", "owner", "speaker"} <= set(kinds)
    assert max(kinds.values()) <= 60


def test_each_item_is_of_a_story_of_its_own_that_it_shows_from_the_start(items):
    assert len({item["context"][:60] for item in items}) == len(items)
    assert all(100 <= len(item["context"]) <= 600 for item in items)


@pytest.mark.parametrize("kind", ["agreement", "possessive"])
def test_always_saying_the_same_word_is_no_better_than_chance(items, kind):
    asked = [item for item in items if item["id"].startswith(kind)]
    truths = Counter(item["choices"][item["answer"]] for item in asked)
    assert len(set(truths.values())) == 1
    assert len(truths) == len(asked[0]["choices"])


def test_another_reader_finds_the_container_where_the_counted_things_were_first_put(items):
    asked = [item for item in items if item["id"].startswith("container")]
    for item in asked:
        first = re.search(
            r"In (?:her|his|their) (\w+) there were|(?:kept|also had) \w+ \w+ in (?:her|his|their) (\w+)",
            item["context"],
        )
        assert item["choices"][item["answer"]].strip() == (first.group(1) or first.group(2))
    assert len(asked) > 10


def test_another_reader_finds_that_the_one_who_did_not_ask_answers(items):
    asked = [item for item in items if item["id"].startswith("speaker")]
    for item in asked:
        asker = re.findall(r"asked (\w+)\.", item["context"])[-1]
        assert item["choices"][item["answer"]].strip() != asker
        assert asker in {choice.strip() for choice in item["choices"]}
    assert len(asked) > 10
