"""The memory that a plan tells is what scoring the row takes, within the factor that `tinyllm.eval.plan` states.

Measured in a process of its own: the peak of its resident memory while the row is scored (Linux resets it through
/proc/self/clear_refs), less what it held before, with everything imported.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from tinyllm.eval.plan import FACTOR, SMALL_BYTES, held_bytes, memory_bytes, plan_entry
from tinyllm.eval.zoo import load_model
from tinyllm.formats.manifest import load
from tinyllm.formats.tokens import write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram
from tinyllm.models.gpt import GPT, GPTConfig, save_gpt

MEASURE = """
import json, re, sys
from pathlib import Path
from tinyllm.eval.zoo import evaluate_entry
from tinyllm.formats.manifest import load
from tinyllm.rng import PCG32

def resident(key):
    return 1024 * int(re.search(key + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

warm, one = (load({"entry": [entry]}).entries[0] for entry in json.loads(sys.argv[1]))
assert evaluate_entry(warm, PCG32(0)).row["status"] == "ok"
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
row = evaluate_entry(one, PCG32(0)).row
print(json.dumps({"bytes": resident("VmHWM") - before, "row": row}))
"""


def gpt(folder, dtype="float32", **shape):
    model = GPT(GPTConfig(**{"ctx_len": 256, "n_head": 4, **shape}))
    model.reset_parameters(torch.Generator().manual_seed(0))
    save_gpt(folder, model, dtype=dtype)


def tokens(path, vocab_size, count):
    ids = np.random.default_rng(0).integers(0, vocab_size, count).astype(np.uint16)
    write_tokens(path, ids, vocab_size=vocab_size, n_bytes=count)


def wide_head(folder):
    """The logits and their log-softmax weigh most."""
    gpt(folder / "model", vocab_size=16_000, n_layer=1, n_embd=64)
    tokens(folder / "t.bin", 16_000, 600)


def deep(folder):
    """The weights weigh most; stored as float16, held as float32."""
    gpt(folder / "model", "float16", vocab_size=512, n_layer=5, n_embd=512)
    tokens(folder / "t.bin", 512, 300)


def table(folder):
    """A family with tables of its own making: logits in float32, NLLs in float64."""
    logits = np.random.default_rng(0).normal(size=(1600, 1600)).astype(np.float32)
    save_bigram(folder / "model", BigramLM(logits))
    tokens(folder / "t.bin", 1600, 1000)


def long_text(folder):
    """The text weighs most."""
    save_bigram(folder / "model", BigramLM(np.zeros((256, 256), np.float32)))
    write_tokens(folder / "t.bin", np.zeros(2_000_000, np.uint8), vocab_size=256, n_bytes=1_999_999)


@pytest.mark.parametrize("case", [wide_head, deep, table, long_text])
def test_the_planned_memory_is_the_measured_within_the_stated_factor(tmp_path, case):
    case(tmp_path)
    gpt(tmp_path / "warm", vocab_size=256, n_layer=1, n_embd=8)
    write_tokens(tmp_path / "warm.bin", np.arange(40, dtype=np.uint8), vocab_size=256, n_bytes=39)
    warm = {"name": "warm", "dir": str(tmp_path / "warm"), "data": str(tmp_path / "warm.bin")}
    one = {"name": "x", "dir": str(tmp_path / "model"), "data": str(tmp_path / "t.bin"), "metric": "nll"}
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps([warm, one])],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    measured = json.loads(run.stdout)
    assert measured["row"]["status"] == "ok", measured["row"]["error"]
    planned = plan_entry(load({"entry": [one]}).entries[0], load=load_model, probe_calls=0).memory_bytes
    assert min(planned, measured["bytes"]) > SMALL_BYTES
    assert 1 / FACTOR <= planned / measured["bytes"] <= FACTOR


def test_held_bytes_count_each_array_once():
    model = GPT(GPTConfig(vocab_size=10, ctx_len=4, n_layer=1, n_head=1, n_embd=2))
    # wte 10·2, wpe 4·2; norms 3·4; attention 2·6 + 6 + 2·2 + 2, mlp 2·8 + 8 + 8·2 + 2; 4 bytes each
    assert held_bytes(model) == 4 * (20 + 8 + 12 + 24 + 42)
    model.again = model.wte  # tied: the same memory
    assert held_bytes(model) == 4 * (20 + 8 + 12 + 24 + 42)
    assert held_bytes(BigramLM(np.zeros((8, 8), np.float32))) == 8 * 8 * (4 + 8)


def test_the_formula_by_hand():
    model = BigramLM(np.zeros((8, 8), np.float32))
    assert memory_bytes(model, longest=100, scored=99) == 2 * 768 + 64 * 100  # scored whole: loading is the peak
    called = 50 * 8 * 8 + 3 * 50 * 8 * 8
    assert memory_bytes(model, longest=50, scored=7) == 768 + called + 64 * 50
