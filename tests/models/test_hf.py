"""A folder in Hugging Face layout is a model of kind ``lm``: its own weights, its own tokenizer, nothing filled in."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from tinyllm.errors import CheckpointError
from tinyllm.eval.lm import score_choices, token_nlls
from tinyllm.eval.zoo import kind_of, load_model, read_config, run_zoo
from tinyllm.models.hf import load_hf
from tinyllm.rng import PCG32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random GPT-2 of 16 words with a word-level tokenizer that has a BOS."""
    path = tmp_path_factory.mktemp("hf")
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=16, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=1)
    GPT2LMHeadModel(config).save_pretrained(path)
    words = [
        "<s>",
        "</s>",
        "<unk>",
        *["the", "a", "cat", "dog", "sat", "ran", "on", "in", "mat", "log", "and", "saw", "him"],
    ]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(path)
    return path


def test_its_logits_are_transformers_own(folder):
    ids = np.array([0, 3, 5, 7, 9, 3, 11])
    want = GPT2LMHeadModel.from_pretrained(folder).eval()
    model = load_model(folder)
    np.testing.assert_array_equal(token_nlls(model, ids, 8, 4), token_nlls(want, ids, 8, 4))
    assert (model.vocab_size, model.ctx_len) == (16, 32)


def test_its_tokenizer_adds_nothing_and_knows_its_bos(folder):
    tok = load_hf(folder).tokenizer
    assert tok.encode("the cat") == [3, 5]
    assert (tok.bos_id, tok.eos_id, tok.vocab_size) == (0, 1, 16)
    assert "cat" in tok.decode([3, 5])


def test_a_task_is_scored_after_one_bos(folder, tmp_path):
    model = load_model(folder)
    scores = score_choices(model, model.tokenizer, "the cat", [" sat", " ran on"], normalize=False)
    sums = [-token_nlls(model, ids, 32, 1)[2:].sum() for ids in ([0, 3, 5, 7], [0, 3, 5, 8, 9])]
    np.testing.assert_allclose(scores, sums, atol=1e-6)
    rows = [{"context": "the cat", "choices": [" sat", " ran on"], "answer": int(np.argmax(scores))}]
    (tmp_path / "t.jsonl").write_text(json.dumps(rows[0]) + "\n")
    (row,) = run_zoo({"entry": [{"name": "hf", "dir": str(folder), "choices": str(tmp_path / "t.jsonl")}]}, PCG32(0))[
        "rows"
    ]
    assert (row["arch"], row["kind"], row["value"]) == ("gpt2", "lm", 1.0)
    assert row["settings"] == {"max_len": 32, "bos": True}


def test_a_missing_weight_is_an_error_and_never_filled_at_random(folder, tmp_path):
    for name in folder.iterdir():
        (tmp_path / name.name).write_bytes(name.read_bytes())
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["transformer.h.0.mlp.c_fc.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing_keys \['transformer.h.0.mlp.c_fc.weight'\]"):
        load_hf(tmp_path)


class Executes:
    """Unpickled, it leaves a file behind."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_fault_row_65_weights_that_are_no_safetensors_are_refused_and_never_unpickled(folder, tmp_path):
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    torch.save({"x": Executes(tmp_path / "executed")}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="transformers cannot load it"):
        load_hf(tmp_path)
    assert not (tmp_path / "executed").exists()


def test_fault_row_65_code_that_a_folder_brings_is_never_run(folder, tmp_path):
    for file in folder.iterdir():
        shutil.copy(file, tmp_path)
    for file, auto in (("config.json", "AutoConfig"), ("tokenizer_config.json", "AutoTokenizer")):
        known = json.loads((tmp_path / file).read_text())
        (tmp_path / file).write_text(json.dumps(known | {"auto_map": {auto: "evil.Evil"}}))
    (tmp_path / "evil.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'executed')!r})\nclass Evil: pass\n")
    load_hf(tmp_path)
    assert not (tmp_path / "executed").exists()


def test_fault_row_57_another_tokenizer_is_another_checkpoint(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "hf")
    item = {"context": "the cat", "choices": [" sat", " ran on"], "answer": 0}
    (tmp_path / "t.jsonl").write_text(json.dumps(item) + "\n")
    entry = {"name": "hf", "dir": str(tmp_path / "hf"), "choices": str(tmp_path / "t.jsonl")}
    (before,) = run_zoo({"entry": [entry]}, None)["rows"]
    changed = (
        (tmp_path / "hf/tokenizer.json").read_text().replace('"cat": 5', '"cat": 6').replace('"dog": 6', '"dog": 5')
    )
    (tmp_path / "hf/tokenizer.json").write_text(changed)
    (after,) = run_zoo({"entry": [entry]}, None)["rows"]
    assert after["status"] == "ok"
    assert after["checkpoint"] != before["checkpoint"]
    (pinned,) = run_zoo({"entry": [entry | {"sha256": before["checkpoint"]["sha256"]}]}, None)["rows"]
    assert "must hash to the manifest's sha256" in pinned["error"]["message"]


def test_without_transformers_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CheckpointError, match=r"install tinyllm-eval\[hf\]"):
        load_hf(folder)


def test_model_type_makes_it_kind_lm(folder):
    assert kind_of(read_config(folder)) == "lm"


@pytest.mark.skipif("TINYLLM_DATA" not in os.environ, reason="needs TINYLLM_DATA, a folder of real models")
def test_a_real_model_gives_its_golden_number():
    """stories260K: Σ ln p(" girl named Lily.") is −0.617126 after BOS and the opening, as in lm-evaluation-harness."""
    model = load_model(Path(os.environ["TINYLLM_DATA"]) / "stories260k-hf")
    scores = score_choices(
        model, model.tokenizer, "Once upon a time, there was a little", [" girl named Lily."], normalize=False
    )
    assert scores[0] == pytest.approx(-0.617126, abs=1e-6)
