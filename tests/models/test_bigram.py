"""A bigram is one table of logits: what it scores is read off the table by hand."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tinyllm.errors import CheckpointError
from tinyllm.formats import checkpoints
from tinyllm.models.bigram import BigramLM, load_bigram, save_bigram

# Rows of probabilities 1/2 1/4 1/4, 1/8 1/8 3/4, 1/3 1/3 1/3; a constant added to a row's logits changes nothing.
PROBABILITIES = np.array([[1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 8, 3 / 4], [1 / 3, 1 / 3, 1 / 3]])
TABLE = (np.log(PROBABILITIES) + np.array([[0.0], [5.0], [-3.0]])).astype(np.float32)


def test_a_table_of_zeros_scores_every_byte_at_exactly_ln_256_which_is_8_bits():
    nlls = BigramLM(np.zeros((256, 256), dtype=np.float32)).nll(np.array([0, 255, 7, 7, 100]))
    assert nlls.tolist() == [math.log(256)] * 4
    assert nlls[0] / math.log(2) == 8.0


def test_the_row_is_the_token_before_and_the_column_the_token_after():
    # 0 → 1 has 1/4, 1 → 2 has 3/4, 2 → 0 has 1/3; read transposed they would be 1/8, 1/3, 1/4.
    nlls = BigramLM(TABLE).nll(np.array([0, 1, 2, 0]))
    np.testing.assert_allclose(np.exp(-nlls), [1 / 4, 3 / 4, 1 / 3], rtol=1e-6)


def test_the_softmax_of_the_logits_is_the_probability_behind_each_nll():
    ids = np.array([2, 1, 1, 0, 2])
    logits = BigramLM(TABLE)(ids[None])
    assert logits.shape == (1, 5, 3)
    assert logits.dtype == np.float64
    log_probs = torch.log_softmax(torch.from_numpy(logits[0]), dim=-1).numpy()  # torch is the reference
    np.testing.assert_allclose(BigramLM(TABLE).nll(ids), -log_probs[np.arange(4), ids[1:]], rtol=1e-13)


@given(arrays(np.float32, (4, 4), elements=st.floats(-80, 80, width=32)))
def test_nll_is_torch_s_log_softmax_in_float64(table):
    expected = -torch.log_softmax(torch.from_numpy(table).double(), dim=-1).numpy()
    pairs = [(a, b) for a in range(4) for b in range(4)]
    model = BigramLM(table)
    scored = [model.nll(np.array(pair)).item() for pair in pairs]
    np.testing.assert_allclose(scored, [expected[pair] for pair in pairs], rtol=1e-12, atol=1e-12)


def test_changing_a_token_changes_no_logit_before_it():
    before, after = BigramLM(TABLE)([[0, 1, 2, 0]]), BigramLM(TABLE)([[0, 1, 2, 1]])
    np.testing.assert_array_equal(before[0, :3], after[0, :3])
    assert (before[0, 3] != after[0, 3]).any()


def test_torch_ids_and_a_torch_table_score_as_numpy_ones():
    model = BigramLM(torch.from_numpy(TABLE))
    np.testing.assert_array_equal(model.nll(torch.tensor([0, 1, 2])), BigramLM(TABLE).nll(np.array([0, 1, 2])))
    assert model.vocab_size == 3


def test_one_token_has_no_nll():
    assert BigramLM(TABLE).nll(np.array([1])).shape == (0,)


def test_a_logit_of_minus_infinity_is_probability_zero():
    nlls = BigramLM([[0, -math.inf], [0, 0]]).nll(np.array([0, 0, 1]))
    assert nlls.tolist() == [0.0, math.inf]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((2, 3)), r"shape \[V, V\] with V >= 1, got \[2, 3\]"),
        (np.zeros((0, 0)), r"got \[0, 0\]"),
        ([[0, 0], [math.nan, 0]], r"no NaN or \+inf, got nan at \[1, 0\]"),
        ([[0, math.inf], [0, 0]], r"got inf at \[0, 1\]"),
        ([[0, 0], [-math.inf, -math.inf]], "row 1 has none"),
    ],
)
def test_a_table_that_is_no_distribution_is_refused_with_its_place(table, message):
    with pytest.raises(ValueError, match=message):
        BigramLM(table)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([], dtype=np.int64), r"shape \[T\] with T >= 1, got \[0\]"),
        (np.array([[0, 1]]), r"got \[1, 2\]"),
        (np.array([0.0, 1.0]), "integers, got float64"),
        (np.array([0, 3]), "0 to 2, got 0 to 3"),
        (np.array([-1, 2]), "0 to 2, got -1 to 2"),
    ],
)
def test_ids_outside_the_contract_are_refused_with_what_came(ids, message):
    with pytest.raises(ValueError, match=message):
        BigramLM(TABLE).nll(ids)


def test_a_call_wants_a_batch_of_one():
    with pytest.raises(ValueError, match=r"shape \[1, T\] with T >= 1, got \[2, 2\]"):
        BigramLM(TABLE)(np.zeros((2, 2), dtype=np.int64))


def test_what_is_saved_is_loaded_bit_for_bit(tmp_path):
    save_bigram(tmp_path, BigramLM(TABLE), training={"seed": 0})
    loaded = load_bigram(tmp_path)
    assert loaded.table.tobytes() == TABLE.tobytes()
    assert json.loads((tmp_path / "config.json").read_text()) == {
        "tl_arch": "bigram",
        "vocab_size": 3,
        "training": {"seed": 0},
    }


GOOD = {"tl_arch": "bigram", "vocab_size": 3}


@pytest.mark.parametrize(
    ("config", "tensors", "message"),
    [
        (GOOD, {}, "missing tensor 'table'"),
        (GOOD, {"table": TABLE, "bias": TABLE[0]}, "unknown tensor 'bias'"),
        (GOOD, {"table": TABLE[:, :2]}, r"must have shape \(3, 3\), got \(3, 2\)"),
        (GOOD, {"table": TABLE.astype(np.int32)}, "must have dtype float32 or float16, got int32"),
        (GOOD | {"vocab": 3}, {"table": TABLE}, "unknown key 'vocab'; did you mean 'vocab_size'"),
        ({"tl_arch": "bigram"}, {"table": TABLE}, "missing key 'vocab_size'"),
        (GOOD | {"tl_arch": "trigram"}, {"table": TABLE}, "tl_arch must be 'bigram', got 'trigram'"),
    ],
)
def test_a_checkpoint_that_is_not_exactly_a_bigram_is_refused(tmp_path, config, tensors, message):
    checkpoints.save(tmp_path, config, tensors)
    with pytest.raises(CheckpointError, match=message):
        load_bigram(tmp_path)


def test_a_stored_nan_is_refused_with_its_place(tmp_path):
    from safetensors.numpy import save_file

    save_bigram(tmp_path, BigramLM(TABLE))
    poisoned = TABLE.copy()
    poisoned[1, 2] = np.nan
    save_file({"table": poisoned}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"tensor 'table': must be finite, got nan at \[1, 2\]"):
        load_bigram(tmp_path)


def test_a_model_with_a_probability_of_zero_cannot_be_saved(tmp_path):
    with pytest.raises(CheckpointError, match=r"must be finite, got -inf at \[0, 1\]"):
        save_bigram(tmp_path, BigramLM([[0, -math.inf], [0, 0]]))
