"""The memory that a plan tells is what scoring the row takes, within the factor that `tinyllm.eval.plan` states.

Measured in a process of its own: the peak of its resident memory while the row is scored (Linux resets it through
/proc/self/clear_refs), less what it held before, with everything imported. The four processes are forks of one that has
imported all and computed nothing, so that no case finds the memory of another.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.plugin.once import once

from tinyllm.eval.plan import FACTOR, SMALL_BYTES, held_bytes, memory_bytes, plan_entry
from tinyllm.eval.zoo import load_model
from tinyllm.formats.manifest import load
from tinyllm.formats.tokens import write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram
from tinyllm.models.gpt import GPT, GPTConfig, save_gpt

MEASURE = """
import json, os, re, sys
from pathlib import Path
import scipy.stats
from tinyllm.eval.zoo import evaluate_entry
from tinyllm.formats.manifest import load
from tinyllm.rng import PCG32

def resident(key):
    return 1024 * int(re.search(key + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

def measure(folder):
    warm, one = load(folder / "manifest.toml").entries
    assert evaluate_entry(warm, PCG32(0)).row["status"] == "ok"
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    row = evaluate_entry(one, PCG32(0)).row
    found = {"bytes": resident("VmHWM") - before, "row": row}
    (folder / "measured.json").write_text(json.dumps(found))

for folder in map(Path, sys.argv[1:]):
    child = os.fork()
    if not child:
        measure(folder)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, folder
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


CASES = [wide_head, deep, table, long_text]
MANIFEST = "\n".join(
    f'[[entry]]\nname = "{name}"\ndir = "{model}"\ndata = "{data}"\nmetric = "nll"'
    for name, model, data in (("warm", "warm", "warm.bin"), ("x", "model", "t.bin"))
)


def measure_all(shared):
    for case in CASES:
        folder = shared / case.__name__
        folder.mkdir()
        case(folder)
        gpt(folder / "warm", vocab_size=256, n_layer=1, n_embd=8)
        write_tokens(folder / "warm.bin", np.arange(40, dtype=np.uint8), vocab_size=256, n_bytes=39)
        (folder / "manifest.toml").write_text(MANIFEST)
    folders = [str(shared / case.__name__) for case in CASES]
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, *folders], capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return once(tmp_path_factory, "plan-memory", measure_all)


@pytest.mark.parametrize("case", CASES)
def test_the_planned_memory_is_the_measured_within_the_stated_factor(measured, case):
    folder = measured / case.__name__
    found = json.loads((folder / "measured.json").read_text())
    assert found["row"]["status"] == "ok", found["row"]["error"]
    _, one = load(folder / "manifest.toml").entries
    planned = plan_entry(one, load=load_model, probe_calls=0).memory_bytes
    assert min(planned, found["bytes"]) > SMALL_BYTES
    assert 1 / FACTOR <= planned / found["bytes"] <= FACTOR


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
