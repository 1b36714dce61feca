"""Recipes are found by file name, record what they read, and made the checkpoints that are shipped."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tinyllm import texts
from tinyllm.cli import main
from tinyllm.errors import UsageError
from tinyllm.eval.zoo import load_model, read_config
from tinyllm.training import recipes, train_checkpoint

SHIPPED = Path(__file__).parents[2] / "evals" / "checkpoints"


def test_every_recipe_says_what_the_trainer_needs():
    found = dict(recipes())
    assert {"uniform", "stories", "bigram", "ngram", "gpt"} <= found.keys()
    for module in found.values():
        assert {"FAMILY", "TEXTS", "RECIPE", "SAVE", "train"} <= vars(module).keys()


def test_an_unknown_recipe_is_named_with_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="no recipe 'ngrm'; did you mean 'ngram'"):
        train_checkpoint("ngrm", tmp_path / "x")


@pytest.mark.parametrize("name", ["uniform", "stories"])
def test_recipes_without_texts_give_the_shipped_checkpoint_byte_for_byte(tmp_path, name, capsys):
    assert main(["train", name, "--out", str(tmp_path / name)]) == 0
    assert f"{name}, " in capsys.readouterr().out
    for path in (tmp_path / name).iterdir():
        assert path.read_bytes() == (SHIPPED / name / path.name).read_bytes()


def test_the_bigram_recipe_gives_the_shipped_checkpoint_again(tmp_path):
    """Up to what another Python's pydoc and another machine's logarithm change: next to nothing on held-out stories."""
    record = train_checkpoint("bigram", tmp_path / "bigram")
    assert record == read_config(tmp_path / "bigram")["training"]
    ids = np.frombuffer(texts.load("stories", "heldout"), np.uint8)
    again, shipped = load_model(tmp_path / "bigram").nll(ids), load_model(SHIPPED / "bigram").nll(ids)
    assert np.abs(again - shipped).mean() < 0.01


@pytest.mark.parametrize("path", ["bigram", "ngram.safetensors", "gpt"])
def test_a_shipped_checkpoint_records_the_training_text_of_this_version(path):
    record = read_config(SHIPPED / path)["training"]
    assert record["texts"]["stories/train"] == hashlib.sha256(texts.load("stories", "train")).hexdigest()
    assert record["recipe"]["name"] == path.split(".")[0]
    assert record["seed"] == 0


def test_the_shipped_checkpoints_are_under_ten_megabytes_together():
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) < 10_000_000
