"""A toy zoo whose numbers are known by hand, and pytest runs of it.

``uniform`` gives each of 256 bytes the same probability: 8 bits a byte. ``half`` gives ``x`` 1/2 and every other byte
1/510. The text is ``xyxy…``, 200 bytes, of which tokens 1 … 199 are 100 times ``y`` and 99 times ``x``. The choices are
40 items of ``x`` against ``y``: half always says ``x``, which is right 30 times.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tinyllm.eval.zoo import evaluate_manifest
from tinyllm.formats.tokens import write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram
from tinyllm.models.gpt import GPT, GPTConfig, save_gpt

TEST_ENTRY = """
def test_entry(zoo_entry, zoo_checkpoint, evaluate):
    evaluate(zoo_entry).assert_gate()
"""

N_TOKENS = 199
HALF_BPB = (100 * math.log2(510) + 99) / 199
WILSON_30_OF_40 = (0.598060, 0.858129)  # (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n) with z = 1.959964

SUITE = """
[suite]
name = "toys"
seed = 3

[[entry]]
name = "uniform-a"
dir = "uniform"
data = "t.bin"
max = 8.1

[[entry]]
name = "half-a"
dir = "half"
data = "t.bin"
max = 5.2

[[entry]]
name = "gpt-a"
dir = "gpt"
data = "t.bin"
ctx_len = 16
stride = 5

[[entry]]
name = "broken-a"
dir = "broken"
data = "t.bin"

[[entry]]
name = "cloze"
dir = "half"
choices = "c.jsonl"
min = 0.5

[[entry]]
name = "weird"
dir = "weird"
data = "t.bin"

[[entry]]
name = "uniform-b"
dir = "uniform"
data = "t.bin"
metric = "nll"

[[entry]]
name = "broken-b"
dir = "broken"
data = "t.bin"

[[entry]]
name = "half-b"
dir = "half"
data = "t.bin"
metric = "ppl"

[[entry]]
name = "gpt-b"
dir = "gpt"
data = "t.bin"

[[entry]]
name = "typo"
dir = "half"
dta = "t.bin"

[[entry]]
name = "broken-c"
dir = "broken"
choices = "c.jsonl"

[[entry]]
name = "uniform-c"
dir = "uniform"
data = "t.bin"
metric = "ppl"
min = 300

[[entry]]
name = "broken-d"
dir = "broken"
data = "t.bin"
max = 1

[[entry]]
name = "gpt-cloze"
dir = "gpt"
choices = "c.jsonl"
metric = "acc_norm"
"""


def make_zoo(folder: Path) -> None:
    """The checkpoints, the text and the choices; nothing here is trained."""
    folder.mkdir(parents=True)
    table = np.zeros((256, 256), np.float32)
    save_bigram(folder / "uniform", BigramLM(table))
    table[:, ord("x")] = np.log(255)
    save_bigram(folder / "half", BigramLM(table))
    gpt = GPT(GPTConfig(vocab_size=256, ctx_len=32, n_layer=1, n_head=2, n_embd=8))
    gpt.reset_parameters(torch.Generator().manual_seed(1))
    save_gpt(folder / "gpt", gpt)
    for name, config in {"weird": {"tl_arch": "rwkv"}, "broken": {"tl_arch": "bigram", "vocab_size": 256}}.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
    write_tokens(folder / "t.bin", np.frombuffer(b"xy" * 100, np.uint8), vocab_size=256, n_bytes=N_TOKENS)
    items = [{"context": f"q{i}", "choices": ["x", "y"], "answer": int(i % 4 == 3)} for i in range(40)]
    (folder / "c.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    gpt_dir, items_path, text_path = (str(folder / name) for name in ("gpt", "c.jsonl", "t.bin"))
    choices, text = {"name": "x", "choices": items_path}, {"name": "y", "data": text_path}
    # a run inside a test forgets the modules it was first to import
    evaluate_manifest({"entry": [{**one, "dir": gpt_dir} for one in (choices, text)]}, None)


def entry(name: str, model: str = "uniform", **keys: object) -> str:
    """One entry of a manifest, in TOML; on the text unless `choices` says otherwise."""
    data = {} if "choices" in keys else {"data": "t.bin"}
    pairs = {"name": name, "dir": model, **data, **keys}
    return "\n[[entry]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in pairs.items())


@dataclass(frozen=True)
class Reported:
    """A report folder, read without the code under test."""

    folder: Path

    @property
    def report(self) -> dict:
        return json.loads((self.folder / "report.json").read_bytes())

    @property
    def rows(self) -> dict:
        return {row["name"]: row for row in self.report["rows"]}

    @property
    def row_bytes(self) -> bytes:
        """The file from its rows on: what must not differ from run to run."""
        whole = (self.folder / "report.json").read_bytes()
        return whole[whole.index(b'\n  "rows": [') :]

    @property
    def item_bytes(self) -> bytes:
        return (self.folder / "items.safetensors").read_bytes()
