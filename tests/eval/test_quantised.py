"""What L8.5 does with this module: a model and its quantised copy, read by `eval_ppl` and told apart by `compare`."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from tinyllm.eval.lm import Result, compare, eval_ppl, token_nlls
from tinyllm.models.gpt import GPT, GPTConfig


def quantised(model, bits):
    """A copy with each matrix rounded to `bits` bits a weight, one scale a row (symmetric, round to nearest)."""
    out = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in out.parameters():
            if parameter.ndim == 2:
                top = 2 ** (bits - 1) - 1
                scale = parameter.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / top
                parameter.copy_((parameter / scale).round().clamp(-top, top) * scale)
    return out


@pytest.fixture(scope="module")
def model_and_text():
    """A GPT that is sure of itself, and a text drawn from it, so that every rounding can only cost."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=64, ctx_len=32, n_layer=2, n_head=2, n_embd=32)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 0.5)
    generator = torch.Generator().manual_seed(1)
    ids = [0]
    with torch.no_grad():
        for _ in range(600):
            logits = model(torch.tensor([ids[-31:]]))[0][0, -1]
            ids.append(int(torch.multinomial(torch.softmax(logits, -1), 1, generator=generator)))
    return model, np.array(ids)


def result(model, text):
    nlls = token_nlls(model, text, 32, 31)
    return Result(float(nlls.mean()), -math.inf, math.inf, len(nlls), nlls)


def test_quantising_costs_perplexity_and_the_paired_test_sees_it(model_and_text):
    model, text = model_and_text
    ppl = {bits: eval_ppl(quantised(model, bits), text, 32, 31)["ppl"] for bits in (8, 3)}
    full = eval_ppl(model, text, 32, 31)["ppl"]
    assert full < ppl[3]
    assert abs(ppl[8] / full - 1) < 0.05 < ppl[3] / full - 1
    assert compare(result(model, text), result(quantised(model, 3), text), n_perm=2000) < 0.01


def test_eight_bits_cost_less_than_three(model_and_text):
    model, text = model_and_text
    eight, three = result(quantised(model, 8), text), result(quantised(model, 3), text)
    assert compare(eight, three, n_perm=2000) < 0.01
    assert eight.value < three.value


def test_an_unpaired_reading_would_miss_what_eight_bits_cost_or_spare(model_and_text):
    """The two intervals overlap nearly whole, though the paired differences are a hundredth of the NLLs' spread."""
    model, text = model_and_text
    a, b = eval_ppl(model, text, 32, 31), eval_ppl(quantised(model, 8), text, 32, 31)
    assert a["nll_lo"] < b["nll"] < a["nll_hi"]
    difference = result(model, text).per_item - result(quantised(model, 8), text).per_item
    assert difference.std() < 0.1 * result(model, text).per_item.std()
