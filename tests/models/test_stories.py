"""The source as a model: its scores are the grammar's, and its checkpoint is of one grammar only."""

from __future__ import annotations

import json
from math import log

import numpy as np
import pytest
import torch

from tinyllm.errors import CheckpointError
from tinyllm.formats import checkpoints
from tinyllm.models import find_family
from tinyllm.models.stories import StoriesLM, load_stories, save_stories
from tinyllm.texts import load
from tinyllm.texts.choice import text_nlls
from tinyllm.texts.stories import grammar_sha256, source

TEXT = load("stories", "heldout")[:1500]
IDS = np.frombuffer(TEXT, np.uint8).astype(np.int64)


def test_nll_is_the_grammars_score_of_every_byte_but_the_first():
    nlls = StoriesLM().nll(IDS)
    assert nlls.dtype == np.float64
    np.testing.assert_array_equal(nlls, text_nlls(source(), TEXT)[1:])
    assert nlls.shape == (1499,)


def test_logits_at_t_are_the_log_probabilities_of_byte_t_plus_1():
    model = StoriesLM()
    logits = model(IDS[None])
    assert (logits.shape, logits.dtype) == ((1, 1500, 256), np.float64)
    np.testing.assert_allclose(np.exp(logits).sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.nll(IDS), -logits[0, np.arange(1499), IDS[1:]])


def test_changing_a_byte_changes_no_logit_before_it():
    changed = IDS.copy()
    changed[700] = ord("#")
    np.testing.assert_array_equal(StoriesLM()(IDS[None, :900])[0, :700], StoriesLM()(changed[None, :900])[0, :700])


def test_torch_ids_score_as_numpy_ones():
    ids = torch.from_numpy(IDS)
    np.testing.assert_array_equal(StoriesLM().nll(ids), StoriesLM().nll(IDS))
    np.testing.assert_array_equal(StoriesLM()(ids[None]), StoriesLM()(IDS[None]))


def test_the_first_byte_alone_has_no_nll_and_one_row_of_logits():
    assert StoriesLM().nll(IDS[:1]).shape == (0,)
    assert StoriesLM()(IDS[None, :1]).shape == (1, 1, 256)


def test_a_byte_that_cannot_follow_is_infinite_and_later_ones_have_8_bits():
    ids = np.frombuffer(TEXT[:100] + b"#" + TEXT[100:120], np.uint8).astype(np.int64)
    nlls = StoriesLM().nll(ids)
    assert np.flatnonzero(np.isinf(nlls)).tolist() == [99]  # byte 100 is token 100, scored at place 99
    assert (nlls[100:] == log(256)).all()
    assert (StoriesLM()(ids[None])[0, 100:] == -log(256)).all()


def test_text_that_begins_inside_a_story_is_refused():
    ids = np.frombuffer(b" and then", np.uint8)
    with pytest.raises(ValueError, match=r"must begin at a story's first byte, got b' '; pass the text from its start"):
        StoriesLM().nll(ids)
    with pytest.raises(ValueError, match=r"must begin at a story's first byte, got b' '; pass the text from its start"):
        StoriesLM()(ids[None])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "T >= 1, got"),
        ([[72]], r"shape \[T\]"),
        ([72.0], "must be integers"),
        ([72, 256], "0 to 255, got 72 to 256"),
    ],
)
def test_ids_that_are_no_bytes_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        StoriesLM().nll(ids)


def test_a_checkpoint_comes_back_and_its_bytes_are_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        save_stories(tmp_path / name, StoriesLM(), training={"text": "stories"})
    assert find_family("stories").load_stories(tmp_path / "a").vocab_size == 256
    assert checkpoints.weights_sha256(tmp_path / "a") == checkpoints.weights_sha256(tmp_path / "b")
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    assert config == {"tl_arch": "stories", "grammar_sha256": grammar_sha256(), "training": {"text": "stories"}}


@pytest.mark.parametrize(
    ("config", "tensors", "message"),
    [
        ({"grammar_sha256": "0" * 64}, {}, "another version of the grammar"),
        ({"grammar_sha256": "0" * 64}, {}, f"must be {grammar_sha256()} .* got {'0' * 64}"),
        ({"grammar_sha256": grammar_sha256(), "seed": 1}, {}, "seed"),
        ({}, {}, "grammar_sha256"),
        ({"grammar_sha256": grammar_sha256()}, {"w": np.zeros(1, np.float32)}, "unknown tensor 'w'"),
        ({"tl_arch": "bigram", "grammar_sha256": grammar_sha256()}, {}, "tl_arch must be 'stories', got 'bigram'"),
    ],
)
def test_a_checkpoint_of_another_grammar_or_with_anything_else_in_it_is_refused(tmp_path, config, tensors, message):
    checkpoints.save(tmp_path, {"tl_arch": "stories", **config}, tensors)
    with pytest.raises(CheckpointError, match=message):
        load_stories(tmp_path)
