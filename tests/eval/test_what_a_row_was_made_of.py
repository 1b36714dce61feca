"""A row says what it was made of: no input can change and leave the row to pass for the one that was stored."""

import json

import numpy as np
import pytest
import torch

from tinyllm.eval.limit import Limit
from tinyllm.eval.zoo import evaluate_entry, run_zoo
from tinyllm.formats.manifest import load
from tinyllm.formats.tokens import write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram
from tinyllm.models.gpt import GPT, GPTConfig, save_gpt
from tinyllm.rng import PCG32

ITEMS = [{"context": f"q{i}", "choices": ["x", "y"], "answer": i % 2} for i in range(6)]
TEXT = {"name": "a", "dir": "gpt", "data": "t.bin", "ctx_len": 8, "stride": 4}
QUIZ = {"name": "a", "dir": "gpt", "choices": "c.jsonl", "max_len": 8}


def gpt(folder, seed=1, n_head=1):
    model = GPT(GPTConfig(vocab_size=256, ctx_len=16, n_layer=1, n_head=n_head, n_embd=4))
    model.reset_parameters(torch.Generator().manual_seed(seed))
    save_gpt(folder, model)


def bigram(folder, gain=0.0):
    table = np.zeros((256, 256), np.float32)
    table[:, ord("x")] = gain
    save_bigram(folder, BigramLM(table))


def quiz(path, items):
    path.write_text("".join(json.dumps(item) + "\n" for item in items))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder: a gpt, a bigram, a text and a quiz."""
    monkeypatch.chdir(tmp_path)
    gpt(tmp_path / "gpt")
    bigram(tmp_path / "bigram")
    write_tokens(tmp_path / "t.bin", np.frombuffer(b"xyxx" * 5, np.uint8), vocab_size=256, n_bytes=19)
    quiz(tmp_path / "c.jsonl", ITEMS)
    return tmp_path


def made_of(keys, most=None):
    (entry,) = load({"entry": [keys]}).entries
    row = evaluate_entry(entry, PCG32(0), limit=None if most is None else Limit(most, 1)).row
    assert row["status"] == "ok", row["error"]
    return {key: row[key] for key in ("kind", "metric", "data", "settings", "checkpoint")}


def other_weights(here):
    gpt(here / "gpt", seed=2)


def another_config(here):
    gpt(here / "gpt", n_head=2)


def another_token(here):
    write_tokens(here / "t.bin", np.frombuffer(b"xyxx" * 4 + b"xyxy", np.uint8), vocab_size=256, n_bytes=19)


def another_space(here):
    quiz(here / "c.jsonl", [ITEMS[0] | {"context": "q0 "}, *ITEMS[1:]])


def another_answer(here):
    quiz(here / "c.jsonl", [ITEMS[0] | {"answer": 1}, *ITEMS[1:]])


@pytest.mark.parametrize(
    ("keys", "change"),
    [
        *((TEXT, change) for change in (other_weights, another_config, another_token)),
        *((QUIZ, change) for change in (other_weights, another_space, another_answer)),
        *((TEXT, change) for change in ({"dir": "bigram", "ctx_len": None, "stride": None}, {"metric": "nll"})),
        *(
            (TEXT, change)
            for change in ({"ctx_len": 9}, {"stride": 5}, {"ctx_len": None}, {"stride": None, "ctx_len": 7})
        ),
        *((QUIZ, change) for change in ({"max_len": 9}, {"max_len": None}, {"metric": "acc_norm"}, {"dir": "bigram"})),
        *((keys, most) for keys in (TEXT, QUIZ) for most in (3, 4)),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_fault_row_57_an_input_that_changes_changes_what_the_row_says(here, keys, change):
    before = made_of(keys)
    if callable(change):
        change(here)
        after = made_of(keys)
    elif isinstance(change, dict):
        after = made_of({key: value for key, value in (keys | change).items() if value is not None})
    else:
        after = made_of(keys, change)
    assert after != before


def test_fault_row_57_nothing_is_remembered_from_the_run_before(here):
    """In one process, under the same names."""
    manifest = {
        "entry": [TEXT | {"dir": "bigram", "ctx_len": None, "stride": None}, QUIZ | {"name": "b", "dir": "bigram"}]
    }
    manifest["entry"][0] = {key: value for key, value in manifest["entry"][0].items() if value is not None}

    def values():
        return [row["value"] for row in run_zoo(manifest, None)["rows"]]

    uniform = values()
    assert uniform == [8, 0.5]
    bigram(here / "bigram", gain=5.0)
    likes_x = values()
    assert likes_x[0] < 8
    write_tokens(here / "t.bin", np.frombuffer(b"x" * 20, np.uint8), vocab_size=256, n_bytes=19)
    quiz(here / "c.jsonl", [item | {"answer": 0} for item in ITEMS])
    assert values() == [pytest.approx(np.log2(1 + 255 * np.exp(-5)), rel=1e-6), 1]
