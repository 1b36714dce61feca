"""The course text's tests of `tinyllm.eval.lm`, from the contract alone.

Oracles: a model whose NLL tells how much context it had, log-likelihoods worked by hand from a table, the statistics
called directly. Nothing is trained, and no other library scores anything here.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.eval.lm import ByteTokenizer, Result, compare, eval_ppl, log_probs, run_task, score_choices, token_nlls
from tinyllm.rng import PCG32
from tinyllm.stats.intervals import bootstrap_ci, mean_ci
from tinyllm.stats.nll import NLLAccumulator
from tinyllm.stats.permutation import paired_permutation_test


class ContextModel:
    """Gives the true next token of `text` probability 1 / (j + 2) at window position j, the rest of the mass to token V
    − 1.

    Records the windows it is called on, as (start, end): every token of `text` is distinct.
    """

    def __init__(self, text: list[int], vocab_size: int) -> None:
        self.text, self.vocab_size, self.calls = list(text), vocab_size, []

    def __call__(self, batch):
        ids = np.asarray(batch)
        assert ids.shape[0] == 1
        start = self.text.index(int(ids[0, 0]))
        assert ids[0].tolist() == self.text[start : start + ids.shape[1]]
        self.calls.append((start, start + ids.shape[1]))
        out = np.full((1, ids.shape[1], self.vocab_size), -np.inf)
        for j in range(ids.shape[1]):
            p = 1 / (j + 2)
            out[0, j, self.vocab_size - 1] = math.log(1 - p)
            if start + j + 1 < len(self.text):
                out[0, j, self.text[start + j + 1]] = math.log(p)
        return out


class TableModel:
    """p(next | previous byte) from a dictionary of ``"ab": p``; what is left of each row goes to byte 0."""

    def __init__(self, table: dict[str, float]) -> None:
        probabilities = np.zeros((256, 256))
        for (before, after), p in table.items():
            probabilities[ord(before), ord(after)] = p
        probabilities[:, 0] += 1 - probabilities.sum(axis=1)
        with np.errstate(divide="ignore"):
            self.logits = np.log(probabilities)

    def __call__(self, batch):
        return self.logits[np.asarray(batch)]


LN2, LN3, LN4 = math.log(2), math.log(3), math.log(4)


@pytest.mark.parametrize(
    ("stride", "calls", "nlls"),
    [
        (2, [(0, 4), (2, 6)], [LN2, LN3, LN4, LN3, LN4]),
        (3, [(0, 4), (3, 6)], [LN2, LN3, LN4, LN2, LN3]),
    ],
)
def test_hand_example_strided_windows(stride, calls, nlls):
    """Section 3: the windows the model is called on, and the NLL of each token."""
    text = [0, 1, 2, 3, 4, 5]
    model = ContextModel(text, 8)
    got = token_nlls(model, np.array(text), 4, stride)
    assert model.calls == calls
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, nlls, rtol=0, atol=1e-12)


def test_hand_example_perplexity_is_the_fifth_root_of_288():
    text = [0, 1, 2, 3, 4, 5]
    out = eval_ppl(ContextModel(text, 8), np.array(text), 4, 2)
    assert out["ppl"] == pytest.approx(288 ** (1 / 5), rel=1e-12)
    assert out["ppl"] == pytest.approx(3.1037, abs=5e-5)
    assert out["n"] == 5
    assert "bpb" not in out


def test_hand_example_choices():
    """Section 3: both sums, both normalisations, the two winners."""
    model = TableModel({"ab": 0.4, "bb": 0.9, "ac": 0.45})
    raw = score_choices(model, ByteTokenizer(), "a", ["bb", "c"], normalize=False)
    per_byte = score_choices(model, ByteTokenizer(), "a", ["bb", "c"])
    np.testing.assert_allclose(raw, [math.log(0.4) + math.log(0.9), math.log(0.45)], rtol=0, atol=1e-12)
    np.testing.assert_allclose(raw, [-1.0217, -0.7985], atol=5e-5)
    np.testing.assert_allclose(per_byte, [raw[0] / 2, raw[1]], rtol=0, atol=1e-12)
    assert int(np.argmax(raw)) == 1
    assert int(np.argmax(per_byte)) == 0


def test_log_probs_are_a_float64_log_softmax_of_the_logits():
    scores = np.log(np.array([[[1.0, 3.0, 4.0], [2.0, 2.0, 12.0]]])) + 700  # an exponential of it would overflow
    got = log_probs(lambda _: scores.astype(np.float32), np.array([0, 1]))
    assert got.dtype == np.float64
    np.testing.assert_allclose(np.exp(got), [[1 / 8, 3 / 8, 1 / 2], [1 / 8, 1 / 8, 3 / 4]], atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_log_probs_take_every_float_type_and_a_tuple(dtype):
    logits = torch.tensor([[[0.0, 1.0, 2.0]]], dtype=dtype)
    want = np.array([0.0, 1.0, 2.0]) - math.log(1 + math.e + math.e**2)
    np.testing.assert_allclose(log_probs(lambda _: (logits, None), [0])[0], want, atol=1e-12)


def test_a_module_gets_a_torch_tensor_in_evaluation_mode_and_stays_in_its_own():
    class Module(torch.nn.Module):
        def forward(self, ids):
            assert isinstance(ids, torch.Tensor)
            assert ids.dtype == torch.int64
            assert not self.training
            assert not torch.is_grad_enabled()
            return torch.zeros(1, ids.shape[1], 4)

    module = Module()
    assert module.training
    np.testing.assert_allclose(log_probs(module, [1, 2]), np.full((2, 4), -math.log(4)), atol=1e-15)
    assert module.training


def test_each_part_of_a_module_comes_back_in_the_mode_it_had():
    """A frozen layer stays frozen, and a lone dropout in training mode is off while scoring."""
    frozen = torch.nn.Sequential(torch.nn.Embedding(4, 4), torch.nn.Dropout(0.9))
    frozen[0].eval()
    stray = torch.nn.Sequential(torch.nn.Embedding(4, 4), torch.nn.Dropout(0.9)).eval()
    stray[1].train()
    for module in (frozen, stray):
        before = [part.training for part in module.modules()]
        assert token_nlls(module, [0, 1, 2, 3], 3, 2).tolist() == token_nlls(module, [0, 1, 2, 3], 3, 2).tolist()
        assert [part.training for part in module.modules()] == before


@pytest.mark.parametrize(
    ("out", "what"),
    [(None, "got NoneType"), ({"x": 1}, "got dict"), ((), "got tuple"), (np.zeros((1, 2, 3), complex), "real numbers")],
)
def test_what_is_no_logits_is_refused_by_name(out, what):
    with pytest.raises(ValueError, match=what):
        log_probs(lambda _: out, [0, 1])


def test_logits_that_cannot_be_written_to_are_read():
    assert log_probs(lambda ids: np.broadcast_to(0.0, (1, ids.shape[1], 4)), [0, 1])[0, 0] == -math.log(4)


@pytest.mark.parametrize(("ctx_len", "stride"), [(4.0, 2), (4, 2.5), ("4", 2), (True, 1)])
def test_windows_are_whole_numbers(ctx_len, stride):
    with pytest.raises(ValueError, match="must be a whole number of tokens"):
        token_nlls(ContextModel([0, 1, 2], 4), [0, 1, 2], ctx_len, stride)


def test_the_first_token_is_in_the_vocabulary_too_and_ids_fit_in_63_bits():
    with pytest.raises(ValueError, match="token 300 at position 0"):
        token_nlls(lambda ids: np.zeros((*ids.shape, 256)), [300, 3, 5], 4, 2)
    with pytest.raises(ValueError, match="63 bits"):
        token_nlls(lambda ids: np.zeros((*ids.shape, 256)), np.array([1, 2**63], dtype=np.uint64), 4, 2)


@pytest.mark.parametrize("n_bytes", [math.nan, 49.5, True])
def test_bytes_are_a_whole_number(n_bytes):
    with pytest.raises(ValueError, match="n_bytes must be a whole number"):
        eval_ppl(ContextModel([0, 1, 2], 4), [0, 1, 2], 4, 2, n_bytes=n_bytes)


def test_a_task_needs_a_stream(tmp_path):
    with pytest.raises(TypeError, match=r"rng must be a tinyllm.rng.PCG32, got None"):
        run_task(Ledger(256), ByteTokenizer(), write_task(tmp_path / "t.jsonl", ROWS), "acc", None)


def test_compare_refuses_a_result_with_ids_of_another_number():
    with pytest.raises(ValueError, match="got 1 ids and 2 items"):
        compare(result_of([1, 0], ids=("a",)), result_of([1, 0], ids=("a", "b")))


@pytest.mark.parametrize(
    ("row", "what"),
    [([0.0, math.nan], "NaN"), ([0.0, math.inf], r"\+inf"), ([-math.inf, -math.inf], "nothing but -inf")],
)
def test_fault_row_30_logits_without_a_distribution_are_refused_with_their_position(row, what):
    def model(ids):
        out = np.zeros((1, ids.shape[1], 2))
        out[0, 1] = row
        return out

    with pytest.raises(ValueError, match=f"got {what} at position 1"):
        log_probs(model, [0, 0, 0])
    with pytest.raises(ValueError, match=f"got {what} at position 1"):
        token_nlls(model, [0, 1, 0, 1], 4, 2)


def test_a_single_minus_infinity_is_a_legal_zero_probability():
    model = lambda ids: np.tile(np.array([0.0, -math.inf, 0.0]), (1, ids.shape[1], 1))  # noqa: E731
    np.testing.assert_allclose(log_probs(model, [0]), [[-math.log(2), -math.inf, -math.log(2)]])
    assert token_nlls(model, [0, 2, 1], 3, 1).tolist() == [math.log(2), math.inf]
    with pytest.raises(ValueError, match="got inf for token 2"):
        eval_ppl(model, [0, 2, 1], 3, 1)


@pytest.mark.parametrize("shape", [(2, 4), (1, 3, 4), (2, 2, 4), (1, 2)])
def test_logits_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"must have shape \[1, 2, V\]"):
        log_probs(lambda _: np.zeros(shape), [0, 1])


@pytest.mark.parametrize(
    ("ids", "what"),
    [([[0, 1]], "one dimension"), ([0.5], "integers"), ([1, -1], "-1 at position 1"), ([], "at least one")],
)
def test_ids_that_are_no_token_ids_are_refused(ids, what):
    for call in (lambda: log_probs(ContextModel([0], 2), ids), lambda: token_nlls(ContextModel([0], 2), ids, 4, 2)):
        with pytest.raises(ValueError, match=what):
            call()


def test_a_token_outside_the_vocabulary_is_named_with_its_position_in_the_text():
    model = lambda ids: np.zeros((1, ids.shape[1], 4))  # noqa: E731
    with pytest.raises(ValueError, match=r"token 9 at position 6 .* vocabulary of 4"):
        token_nlls(model, [0, 1, 2, 3, 0, 1, 9, 2], 4, 2)


@given(st.integers(1, 60), st.integers(2, 20), st.data())
def test_every_token_is_scored_once(n, ctx_len, data):
    """Facts 1 to 3 of section 2.1, for any setting: n − 1 tokens, and at least ctx_len − stride tokens of context."""
    stride = data.draw(st.integers(1, ctx_len - 1))
    text = list(range(n))
    model = ContextModel(text, n + 1)
    nlls = token_nlls(model, np.array(text), ctx_len, stride)
    assert nlls.shape == (n - 1,)
    context = np.rint(np.exp(nlls)).astype(int) - 1  # p = 1 / (j + 2): the NLL tells j + 1, the tokens read
    np.testing.assert_allclose(nlls, np.log(context + 1.0), atol=1e-9)
    for k, tokens in enumerate(context.tolist()):
        assert tokens == min(k + 1, tokens)
        assert tokens >= min(k + 1, ctx_len - stride)
    for k, (start, end) in enumerate(model.calls):
        assert start == k * stride
        assert end == min(start + ctx_len, n)
    assert all(end < n for _, end in model.calls[:-1])
    with pytest.raises(ValueError, match="stride"):
        token_nlls(model, np.array(text), ctx_len, ctx_len)


@pytest.mark.parametrize(("ctx_len", "stride"), [(8, 8), (8, 9), (8, 0), (8, -1), (1, 1), (2, 2), (0, 0)])
def test_fault_row_5_a_stride_that_leaves_a_token_without_context_is_refused(ctx_len, stride):
    with pytest.raises(ValueError, match=rf"stride={stride} with ctx_len={ctx_len}"):
        token_nlls(ContextModel([0, 1, 2], 4), [0, 1, 2], ctx_len, stride)


@pytest.mark.parametrize("stride", [1, 7])
def test_fault_row_5_the_smallest_and_the_largest_stride_are_legal(stride):
    text = list(range(20))
    assert np.isfinite(token_nlls(ContextModel(text, 21), text, 8, stride)).all()


def test_fault_row_1_the_mean_is_over_tokens_not_over_windows():
    """ctx 8, stride 5, n 13: windows score 7 and 5 tokens; the mean of their means is another number."""
    text = list(range(13))
    model = ContextModel(text, 14)
    out = eval_ppl(model, text, 8, 5)
    assert model.calls == [(0, 8), (5, 13)]
    nlls = [math.log(j + 2) for j in range(7)] + [math.log(j + 2) for j in range(2, 7)]
    assert out["nll"] == pytest.approx(math.fsum(nlls) / 12, rel=1e-14)
    means = (math.fsum(nlls[:7]) / 7 + math.fsum(nlls[7:]) / 5) / 2
    assert abs(out["nll"] - means) > 0.02


@pytest.mark.parametrize(("ctx_len", "stride", "n"), [(4, 1, 9), (4, 3, 9), (9, 4, 9), (20, 3, 9), (4, 2, 2)])
def test_fault_row_2_a_uniform_model_of_16_tokens_has_perplexity_16_at_any_setting(ctx_len, stride, n):
    out = eval_ppl(lambda ids: np.zeros((1, ids.shape[1], 16)), np.arange(n), ctx_len, stride)
    assert out["ppl"] == pytest.approx(16, rel=1e-14)
    assert out["n"] == n - 1


@pytest.mark.parametrize(("ctx_len", "stride", "n"), [(4, 2, 11), (5, 4, 23), (3, 1, 8), (16, 5, 7)])
def test_fault_rows_3_and_4_the_ledger_of_scored_positions_is_every_token_but_the_first(ctx_len, stride, n):
    """Each token's NLL names it: −ln p is its own number, so a skipped, doubled or shifted target would show."""
    text = np.arange(n)

    def model(ids):
        out = np.full((1, ids.shape[1], 1000), -np.inf)
        for j, token in enumerate(np.asarray(ids)[0]):
            p = 1 / (token + 3)  # of token + 1, and of nothing else
            out[0, j, token + 1], out[0, j, 999] = math.log(p), math.log1p(-p)
        return out

    assert np.rint(np.exp(token_nlls(model, text, ctx_len, stride))).astype(int).tolist() == [
        t + 2 for t in range(1, n)
    ]


def test_fault_row_6_a_text_of_one_token_has_nothing_to_score_and_no_tokens_at_all_is_an_error():
    model = ContextModel([3], 5)
    assert token_nlls(model, [3], 4, 2).shape == (0,)
    with pytest.raises(ValueError):
        eval_ppl(model, [3], 4, 2)
    with pytest.raises(ValueError, match="at least one token"):
        eval_ppl(model, [], 4, 2)


def test_fault_row_8_bits_per_byte_are_base_two():
    out = eval_ppl(lambda ids: np.zeros((1, ids.shape[1], 256)), np.arange(100), 10, 5, n_bytes=99)
    assert (out["bpb"], out["bpb_lo"], out["bpb_hi"]) == (8.0, 8.0, 8.0)
    assert (out["nll"], out["nll_lo"], out["nll_hi"]) == (math.log(256),) * 3


def test_fault_row_9_a_bigram_table_scores_the_same_at_any_context_length():
    rng = np.random.default_rng(0)
    table, text = rng.normal(size=(32, 32)), rng.integers(0, 32, size=200)
    model = lambda ids: table[np.asarray(ids)]  # noqa: E731
    short, long = token_nlls(model, text, 8, 3), token_nlls(model, text, 16, 9)
    np.testing.assert_allclose(short, long, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("ctx_len", "stride"), [(10, 5), (30, 29)])
def test_fault_row_14_a_text_longer_than_the_context_is_divided_by_the_tokens_that_were_scored(ctx_len, stride):
    text = list(range(30))
    nlls = token_nlls(ContextModel(text, 31), text, ctx_len, stride)
    assert eval_ppl(ContextModel(text, 31), text, ctx_len, stride)["nll"] == pytest.approx(
        math.fsum(nlls) / 29, rel=1e-14
    )


def test_fault_row_15_logits_are_read_one_position_before_their_token():
    """A table in which the next token has probability 0.9: read without the shift, it has 0.0111."""
    table = np.full((10, 10), math.log(0.1 / 9))
    for token in range(10):
        table[token, (token + 1) % 10] = math.log(0.9)
    nlls = token_nlls(lambda ids: table[np.asarray(ids)], np.arange(10), 4, 2)
    np.testing.assert_allclose(nlls, -math.log(0.9), atol=1e-12)


def test_eval_ppl_bpb_and_interval():
    """M11.2's totals and M07.4's interval, carried into perplexity and bits per byte."""
    text = list(range(40))
    nlls = token_nlls(ContextModel(text, 41), text, 8, 3)
    out = eval_ppl(ContextModel(text, 41), text, 8, 3, n_bytes=97)
    totals = NLLAccumulator()
    totals.add(nlls, n_bytes=97)
    lo, hi = mean_ci(nlls)
    assert lo < totals.mean() < hi
    assert out["nll"] == pytest.approx(totals.mean(), rel=1e-14)
    assert out["ppl"] == pytest.approx(math.exp(totals.mean()), rel=1e-14)
    assert out["bpb"] == pytest.approx(totals.total / (97 * math.log(2)), rel=1e-14)
    assert (out["nll_lo"], out["nll_hi"]) == (lo, hi)
    assert (out["ppl_lo"], out["ppl_hi"]) == pytest.approx((math.exp(lo), math.exp(hi)), rel=1e-14)
    per_byte = 39 / (97 * math.log(2))
    assert (out["bpb_lo"], out["bpb_hi"]) == pytest.approx((lo * per_byte, hi * per_byte), rel=1e-14)
    assert out["n"] == 39


def test_one_scored_token_has_a_value_and_no_interval():
    out = eval_ppl(ContextModel([0, 1], 3), [0, 1], 4, 2, n_bytes=1)
    assert out["nll"] == pytest.approx(math.log(2))
    assert (out["nll_lo"], out["nll_hi"]) == (-math.inf, math.inf)
    assert (out["ppl_lo"], out["ppl_hi"]) == (0, math.inf)


def test_a_perplexity_that_overflows_is_an_error_and_never_infinity():
    model = lambda ids: np.tile(np.array([0.0, -800.0]), (1, ids.shape[1], 1))  # noqa: E731
    assert token_nlls(model, [0, 1, 1], 4, 2).tolist() == [800, 800]
    with pytest.raises(ValueError, match=r"overflow.*800"):
        eval_ppl(model, [0, 1, 1], 4, 2)


def test_n_bytes_below_zero_is_refused():
    with pytest.raises(ValueError, match="n_bytes must be a whole number >= 0, got -1"):
        eval_ppl(ContextModel([0, 1], 3), [0, 1], 4, 2, n_bytes=-1)


# --- multiple choice


class WordTokenizer:
    """A tokenizer of listed pieces, longest first, which can merge across the join of context and choice."""

    def __init__(self, pieces: list[str], bos: bool = False, adds_bos: bool = False) -> None:
        self.pieces = pieces
        self.vocab_size = len(pieces) + 1
        self.bos_id, self.eos_id = (len(pieces) if bos else None), None
        self.adds_bos = adds_bos

    def encode(self, text: str) -> list[int]:
        out = [self.bos_id] if self.adds_bos else []
        while text:
            piece = max((p for p in self.pieces if text.startswith(p)), key=len)
            out.append(self.pieces.index(piece))
            text = text[len(piece) :]
        return out

    def decode(self, ids):
        return "".join(self.pieces[i] for i in ids)


class Ledger:
    """Uniform over V; records every call's ids. With `first`, the first position's row is a bad one."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size, self.calls = vocab_size, []

    def __call__(self, batch):
        ids = np.asarray(batch)
        self.calls.append(ids[0].tolist())
        return np.zeros((1, ids.shape[1], self.vocab_size))


def test_the_byte_tokenizer_is_utf8_and_has_no_special_tokens():
    tok = ByteTokenizer()
    assert tok.encode("aé") == [97, 0xC3, 0xA9]
    assert tok.decode([97, 0xC3, 0xA9]) == "aé"
    assert (tok.vocab_size, tok.bos_id, tok.eos_id) == (256, None, None)


@given(st.text())
def test_the_byte_tokenizer_loses_nothing(text):
    assert ByteTokenizer().decode(ByteTokenizer().encode(text)) == text


def test_the_model_reads_the_context_and_the_whole_choice():
    model = Ledger(256)
    score_choices(model, ByteTokenizer(), "ab", ["c", "de"])
    assert model.calls == [[97, 98, 99], [97, 98, 100, 101]]


def test_fault_row_26_scores_are_per_byte_of_utf8_not_per_character():
    model = Ledger(256)
    scores = score_choices(model, ByteTokenizer(), "x", ["éé", "ab"])
    np.testing.assert_allclose(scores, [-math.log(256)] * 2, atol=1e-12)  # 4 bytes, 4 tokens; 2 bytes, 2 tokens


def test_fault_row_25_the_higher_log_likelihood_wins():
    scores = score_choices(TableModel({"ab": 0.7, "ac": 0.2}), ByteTokenizer(), "a", ["b", "c"], normalize=False)
    assert scores[0] > scores[1]


def test_fault_rows_19_and_32_a_token_across_the_join_is_scored_with_the_choice():
    """ "Ans" + "wer" is one token: the choice's part begins at the longest common token prefix, here after the BOS."""
    tok = WordTokenizer(["Ans", "wer", "Answer", "x", " y"], bos=True)
    model = Ledger(tok.vocab_size)
    scores = score_choices(model, tok, "Ans", ["wer"], normalize=False)
    assert model.calls == [[5, 2]]
    np.testing.assert_allclose(scores, [-math.log(6)], atol=1e-12)
    longer = score_choices(model, tok, "xAns", ["wer"], normalize=False)
    assert model.calls[-1] == [5, 3, 2]
    np.testing.assert_allclose(longer, [-math.log(6)], atol=1e-12)


def test_a_choice_predicted_from_nothing_is_refused_without_a_bos():
    with pytest.raises(ValueError, match=r"merged whole.* needs a tokenizer with a BOS"):
        score_choices(Ledger(9), WordTokenizer(["Ans", "wer", "Answer"]), "Ans", ["wer"])
    with pytest.raises(ValueError, match="an empty context needs a tokenizer with a BOS"):
        score_choices(Ledger(256), ByteTokenizer(), "", ["a"])


@pytest.mark.parametrize("adds_bos", [False, True])
def test_fault_row_17_there_is_exactly_one_bos_and_it_is_never_a_target(adds_bos):
    tok = WordTokenizer(["a", "b"], bos=True, adds_bos=adds_bos)
    model = Ledger(tok.vocab_size)
    scores = score_choices(model, tok, "a", ["b"], normalize=False)
    assert model.calls == [[2, 0, 1]]
    np.testing.assert_allclose(scores, [-math.log(3)], atol=1e-12)
    empty = score_choices(model, tok, "", ["ab"], normalize=False)
    assert model.calls[-1] == [2, 0, 1]
    np.testing.assert_allclose(empty, [-2 * math.log(3)], atol=1e-12)


def test_fault_row_27_a_long_context_loses_its_left_end_and_never_the_choice():
    model = Ledger(256)
    score_choices(model, ByteTokenizer(), "abcdefgh", ["xyz", "w"], max_len=5)
    assert model.calls == [list(b"ghxyz"), list(b"efghw")]


def test_the_bos_and_one_context_token_stay_when_the_context_is_cut():
    tok = WordTokenizer(["a", "b", "c"], bos=True)
    model = Ledger(4)
    score_choices(model, tok, "ab", ["cc"], max_len=4)
    assert model.calls == [[3, 1, 2, 2]]
    with pytest.raises(ValueError, match=r"'cc' has 2 tokens and does not fit into max_len=3"):
        score_choices(model, tok, "ab", ["cc"], max_len=3)


def test_fault_row_28_a_choice_longer_than_the_model_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="'bcdefghi' has 8 tokens and does not fit into max_len=8"):
        score_choices(Ledger(256), ByteTokenizer(), "a", ["bcdefghi"], max_len=8)
    assert len(score_choices(Ledger(256), ByteTokenizer(), "a", ["bcdefgh"], max_len=8)) == 1


@pytest.mark.parametrize(
    ("choices", "what"), [(["", "x"], "must not be empty"), ([], "at least one"), ("xy", "got 'xy'")]
)
def test_fault_row_29_no_choices_and_empty_choices_are_refused(choices, what):
    with pytest.raises(ValueError, match=what):
        score_choices(Ledger(256), ByteTokenizer(), "a", choices)


def test_fault_rows_20_and_31_each_choice_has_the_score_it_has_alone():
    model = TableModel({"ab": 0.4, "bb": 0.9, "ac": 0.45, "bc": 0.05, "cb": 0.3})
    together = score_choices(model, ByteTokenizer(), "a", ["b", "bb", "bc", "c", "cb"], normalize=False)
    alone = [score_choices(model, ByteTokenizer(), "a", [c], normalize=False)[0] for c in ["b", "bb", "bc", "c", "cb"]]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.exp(together), [0.4, 0.36, 0.02, 0.45, 0.135], atol=1e-12)


# --- tasks


def write_task(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


TABLE = {"ab": 0.4, "bb": 0.9, "ac": 0.45}
ROWS = [
    {"context": "a", "choices": ["bb", "c"], "answer": 1},  # sums: c. per byte: bb
    {"context": "a", "choices": ["c", "b"], "answer": 0},  # sums: c. per byte: c
    {"context": "a", "choices": ["c", "c", "b"], "answer": 1},  # a tie: the first, and so wrong
    {"context": "a", "choices": ["b", "c"], "answer": 0},  # c: wrong
]


@pytest.mark.parametrize(("metric", "per_item"), [("acc", [1, 1, 0, 0]), ("acc_norm", [0, 1, 0, 0])])
def test_run_task_accuracy_with_bootstrap(tmp_path, metric, per_item):
    """Per-item scores, ties to the first choice, and M07.4's bootstrap from the same stream."""
    path = write_task(tmp_path / "task.jsonl", ROWS)
    rng, same = PCG32(7), PCG32(7)
    result = run_task(TableModel(TABLE), ByteTokenizer(), path, metric, rng)
    assert result.per_item.dtype == np.float64
    assert result.per_item.tolist() == per_item
    assert result.value == sum(per_item) / 4
    assert (result.lo, result.hi) == bootstrap_ci(np.array(per_item, dtype=float), same, n_boot=1000)
    assert rng.next_u32() == same.next_u32()
    assert result.lo < result.value < result.hi
    assert result.n == 4


def test_run_task_draws_n_boot_resamples_from_the_stream_it_is_given(tmp_path):
    path = write_task(tmp_path / "task.jsonl", ROWS)
    a, b = PCG32(1), PCG32(1)
    result = run_task(TableModel(TABLE), ByteTokenizer(), path, "acc", a, n_boot=11)
    assert (result.lo, result.hi) == bootstrap_ci(result.per_item, b, n_boot=11)
    assert a.next_u32() == b.next_u32()


def test_run_task_keeps_the_items_ids(tmp_path):
    path = write_task(tmp_path / "task.jsonl", [{**row, "id": f"q{i}"} for i, row in enumerate(ROWS)])
    assert list(run_task(TableModel(TABLE), ByteTokenizer(), path, "acc", PCG32(0)).ids) == ["q0", "q1", "q2", "q3"]


def test_run_task_cuts_contexts_to_max_len(tmp_path):
    path = write_task(tmp_path / "task.jsonl", [{"context": "xxxxa", "choices": ["b", "c"], "answer": 0}] * 2)
    model = Ledger(256)
    run_task(model, ByteTokenizer(), path, "acc", PCG32(0), max_len=3)
    assert model.calls == [list(b"xab"), list(b"xac")] * 2


def test_run_task_refuses_a_metric_it_does_not_know(tmp_path):
    with pytest.raises(ValueError, match="one of acc, acc_norm, got 'f1'"):
        run_task(TableModel(TABLE), ByteTokenizer(), write_task(tmp_path / "t.jsonl", ROWS), "f1", PCG32(0))


def test_an_item_that_cannot_be_scored_is_named(tmp_path):
    path = write_task(
        tmp_path / "task.jsonl", [ROWS[0], {"id": "long", "context": "a", "choices": ["bbbb", "c"], "answer": 0}]
    )
    with pytest.raises(ValueError, match=r"item 'long' \(line 2\): choice 'bbbb'"):
        run_task(TableModel(TABLE), ByteTokenizer(), path, "acc", PCG32(0), max_len=4)


def test_fault_row_23_a_model_that_scores_all_choices_alike_answers_the_first(tmp_path):
    path = write_task(
        tmp_path / "task.jsonl", [{"context": "a", "choices": ["b", "c"], "answer": i % 2} for i in range(6)]
    )
    assert run_task(Ledger(256), ByteTokenizer(), path, "acc", PCG32(0)).per_item.tolist() == [1, 0] * 3


# --- comparison


def result_of(per_item, ids=None):
    scores = np.asarray(per_item, dtype=np.float64)
    return Result(float(scores.mean()), -np.inf, np.inf, len(scores), scores, ids)


def test_compare_is_the_paired_permutation_test():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=50), rng.normal(size=50)
    assert compare(result_of(a), result_of(b)) == paired_permutation_test(a, b, n_perm=10000, rng=PCG32(0))
    p = compare(result_of(a), result_of(b), 99, PCG32(5))
    assert p == paired_permutation_test(a, b, n_perm=99, rng=PCG32(5))
    assert p * 100 == pytest.approx(round(p * 100))


def test_compare_pairs_the_items():
    """The same scores in another order are another question: shifted by a little on every item, b is surely worse."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=200)
    b = a - 0.01
    assert compare(result_of(a), result_of(b)) < 0.001
    assert compare(result_of(a), result_of(rng.permutation(b))) > 0.05


def test_fault_row_45_few_discordant_items_decide():
    """200 items, 20 of them discordant, 15 against 5: an unpaired z test of .6 against .55 would say p = .31."""
    a, b = np.zeros(200), np.zeros(200)
    a[:105], b[:105] = 1, 1
    a[105:120] = 1
    b[120:125] = 1
    exact = 2 * sum(math.comb(20, k) for k in range(15, 21)) / 2**20
    assert exact == pytest.approx(0.0414, abs=5e-5)
    assert compare(result_of(a), result_of(b), n_perm=100_000) == pytest.approx(exact, abs=0.003)


def test_compare_refuses_results_on_other_items():
    with pytest.raises(ValueError, match="same items, got 3 and 4"):
        compare(result_of([1, 0, 1]), result_of([1, 0, 1, 1]))
    with pytest.raises(ValueError, match="'b' and 'c' at index 1"):
        compare(result_of([1, 0], ids=("a", "b")), result_of([1, 0], ids=("a", "c")))
    assert compare(result_of([1, 0], ids=("a", "b")), result_of([1, 0])) == 1
