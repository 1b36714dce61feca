"""``tinyllm eval ppl``: perplexity and bits per byte of one model on one text."""

import json
import math

import numpy as np
import pytest
from tests.plugin.toys import HALF_BPB, N_TOKENS

from tinyllm.eval.lm import eval_ppl
from tinyllm.eval.zoo import load_model
from tinyllm.formats.tokens import open_tokens, write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram

TEXT = ("--data", "evals/t.bin")


def test_every_number_has_its_interval(tinyllm):
    done = tinyllm("eval", "ppl", "--model", "evals/uniform", *TEXT)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "bpb  8.0000  [8.0000, 8.0000]  bits/byte",
        "nll  5.5452  [5.5452, 5.5452]  nats/token",
        "ppl  256.0000  [256.0000, 256.0000]  perplexity",
        "n    199 tokens",
    ]


def test_json_has_the_numbers_unrounded(tinyllm):
    found = json.loads(tinyllm("eval", "ppl", "--model", "evals/half", *TEXT, "--json").out)
    assert list(found) == [
        *("bpb", "bpb_lo", "bpb_hi"),
        *("nll", "nll_lo", "nll_hi"),
        *("ppl", "ppl_lo", "ppl_hi"),
        "n",
    ]
    assert found["n"] == N_TOKENS
    assert found["bpb"] == pytest.approx(HALF_BPB, abs=1e-6)
    # by hand: 99 tokens of ln 2 and 100 of ln 510; Student's t with 198 degrees of freedom is 1.972017
    nlls = np.array([math.log(510), *[math.log(2), math.log(510)] * 99])
    half = 1.972017 * nlls.std(ddof=1) / math.sqrt(199)
    assert (found["nll_lo"], found["nll_hi"]) == pytest.approx((nlls.mean() - half, nlls.mean() + half), abs=1e-5)
    for end in ("", "_lo", "_hi"):
        assert found[f"ppl{end}"] == pytest.approx(math.exp(found[f"nll{end}"]))
        assert found[f"bpb{end}"] == pytest.approx(found[f"nll{end}"] / math.log(2))


@pytest.mark.parametrize(("ctx_len", "stride"), [(16, 5), (32, 16), (8, 1)])
def test_windows_are_those_of_eval_ppl(tinyllm, here, ctx_len, stride):
    done = tinyllm("eval", "ppl", "--model", "evals/gpt", *TEXT, "--ctx-len", ctx_len, "--stride", stride, "--json")
    ids = open_tokens(here / "evals/t.bin").ids
    assert json.loads(done.out) == eval_ppl(load_model(here / "evals/gpt"), ids, ctx_len, stride, n_bytes=N_TOKENS)


def test_the_windows_that_were_chosen_are_said(tinyllm):
    done = tinyllm("eval", "ppl", "--model", "evals/gpt", *TEXT)
    assert done.out.splitlines()[-1] == "n    199 tokens, ctx_len 32, stride 16"


def test_a_text_without_a_byte_count_has_no_bits_per_byte(tinyllm, here):
    np.arange(50, dtype="<u2").tofile(here / "raw.bin")
    raw = ("--data", "raw.bin", "--layout", "nanogpt", "--vocab-size", "256")
    found = json.loads(tinyllm("eval", "ppl", "--model", "evals/uniform", *raw, "--json").out)
    assert list(found) == ["nll", "nll_lo", "nll_hi", "ppl", "ppl_lo", "ppl_hi", "n"]
    assert (found["ppl"], found["n"]) == (pytest.approx(256), 49)


def test_one_token_has_no_interval(tinyllm, here):
    write_tokens(here / "two.bin", np.arange(2, dtype=np.uint8), vocab_size=256, n_bytes=1)
    args = ("eval", "ppl", "--model", "evals/uniform", "--data", "two.bin")
    assert json.loads(tinyllm(*args, "--json").out)["bpb_hi"] is None
    assert tinyllm(*args).out.startswith("bpb  8.0000  no interval  bits/byte\n")


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (("--model", "evals/nowhere", *TEXT), "nowhere: CheckpointError: evals/nowhere: must be a checkpoint"),
        (("--model", "evals/weird", *TEXT), "weird: UnknownFamilyError: unknown family 'rwkv'"),
        (("--model", "evals/gpt", "--data", "nowhere.bin"), "gpt: FormatError: nowhere.bin"),
        (("--model", "evals/gpt", "--data", "text:storys/heldout"), "did you mean 'stories/heldout'?"),
        (("--model", "evals/uniform", *TEXT, "--ctx-len", "8"), "ctx_len and stride are for models of a fixed context"),
        (("--model", "evals/gpt", *TEXT, "--ctx-len", "64"), "ctx_len must be at most the model's 32, got 64"),
        (("--model", "evals/gpt", *TEXT, "--ctx-len", "8", "--stride", "8"), "8"),
    ],
)
def test_what_cannot_be_scored_is_exit_status_1_and_one_line(tinyllm, args, fault):
    done = tinyllm("eval", "ppl", *args)
    assert (done.status, done.out) == (1, "")
    (line,) = done.err.splitlines()
    assert line.startswith("tinyllm: evals/")
    assert fault in line


def test_a_perplexity_too_large_for_a_float_is_exit_status_1(tinyllm, here):
    table = np.zeros((256, 256), np.float32)
    table[:, 0] = 1e4  # any other byte costs 10,000 nats
    save_bigram(here / "sure", BigramLM(table))
    done = tinyllm("eval", "ppl", "--model", "sure", *TEXT)
    assert (done.status, done.out) == (1, "")
    assert "perplexity overflows: the mean NLL is 10000.0" in done.err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "--model must be given once, got 0"),
        (TEXT, "--model must be given once, got 0"),
        (("--model", "a", "--model", "b", *TEXT), "--model must be given once, got 2"),
        (("--model", "evals/gpt"), "tinyllm eval ppl needs --data FILE"),
        (("--model", "evals/gpt", *TEXT, "--task", "x.jsonl"), "tinyllm eval ppl does not take --task"),
        (("--model", "evals/gpt", *TEXT, "--suite", "zoo"), "tinyllm eval ppl does not take --suite"),
        (("--model", "evals/gpt", *TEXT, "--max-len", "9"), "tinyllm eval ppl does not take --max-len"),
        (("--model", "evals/gpt", *TEXT, "--report", "r"), "tinyllm eval ppl does not take --report"),
        (("--model", "evals/gpt", *TEXT, "--ctx-len", "many"), "argument --ctx-len: invalid int value: 'many'"),
    ],
)
def test_what_was_asked_wrongly_is_exit_status_4_and_one_line(refused, args, sentence):
    assert refused("eval", "ppl", *args).endswith(f": {sentence}")
