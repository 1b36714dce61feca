"""`token_nlls` against transformers' GPT-2, token by token, with windows worked out by another rule than the code's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from tinyllm.eval.lm import token_nlls
from tinyllm.models.gpt import load_hf_gpt2

VOCAB = 97


@pytest.fixture(scope="module")
def hf():
    """A random GPT-2 whose weights are scaled up until the context matters."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=64, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                parameter.mul_(8 if "mlp" in name or "wpe" in name else 20)
    return model


@pytest.fixture(scope="module")
def text(hf):
    """300 tokens, each drawn from the model after the 40 before it, so that this context explains it."""
    generator = torch.Generator().manual_seed(1)
    ids = [0]
    with torch.no_grad():
        while len(ids) < 300:
            logits = hf(torch.tensor([ids[-40:]])).logits[0, -1]
            ids.append(int(torch.multinomial(torch.softmax(logits, -1), 1, generator=generator)))
    return np.array(ids)


def reference_nlls(hf, text, ctx_len, stride):
    """Token t is scored by the first window that holds it: the smallest k with k·stride + ctx_len > t."""
    out = []
    with torch.no_grad():
        for t in range(1, len(text)):
            k = 0 if t < ctx_len else -(-(t - ctx_len + 1) // stride)
            context = torch.from_numpy(text[k * stride : t][None])
            out.append(-torch.log_softmax(hf(context).logits[0, -1].double(), -1)[text[t]].item())
    return np.array(out)


@pytest.mark.parametrize(
    ("n", "ctx_len", "stride"),
    [
        pytest.param(40, 64, 32, id="shorter than the context"),
        pytest.param(300, 16, 8, id="many windows, half overlap"),
        pytest.param(150, 64, 63, id="the largest stride"),
        pytest.param(60, 24, 1, id="one token at a time"),
    ],
)
def test_strided_nll_matches_hf(hf, text, n, ctx_len, stride):
    got = token_nlls(load_hf_gpt2(hf), text[:n], ctx_len, stride)
    np.testing.assert_allclose(got, reference_nlls(hf, text[:n], ctx_len, stride), rtol=0, atol=1e-5)


def test_the_golden_model_looks_at_its_context(hf, text):
    """Each token after 40 tokens of its own context, and after the same tokens shuffled but for the last.

    Were the two mean NLLs alike, the golden test could not see a wrong window.
    """
    model = load_hf_gpt2(hf)
    own, shuffled = [], []
    for t in range(41, 300, 3):
        context = text[t - 40 : t].copy()
        own.append(token_nlls(model, np.append(context, text[t]), 64, 32)[-1])
        np.random.default_rng(t).shuffle(context[:-1])
        shuffled.append(token_nlls(model, np.append(context, text[t]), 64, 32)[-1])
    assert np.mean(shuffled) - np.mean(own) > 0.1


def test_a_transformers_model_itself_is_a_model_to_score(hf, text):
    """Its output is an object with ``.logits``, not a tuple."""
    np.testing.assert_allclose(
        token_nlls(hf, text[:50], 16, 8), token_nlls(load_hf_gpt2(hf), text[:50], 16, 8), rtol=0, atol=1e-5
    )
