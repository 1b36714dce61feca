"""The n-gram model: its numbers are worked by hand, by a dictionary version of the formulas, and by nltk."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.errors import CheckpointError
from tinyllm.formats import checkpoints
from tinyllm.models import ngram
from tinyllm.models.grams import Grams
from tinyllm.models.ngram import NGramLM, load_ngram, save_ngram
from tinyllm.training.ngram import train

# The text "ababc" at order 2 with both discounts 1/2, worked by hand.
#   Pairs: ab 2, ba 1, bc 1. Distinct bytes seen before: a has {b}, b has {a}, c has {b}; 3 in all.
#   Order 1: p(a) = p(b) = p(c) = (1 - 1/2) / 3 + g / 256 with g = 3 · 1/2 / 3 = 1/2, every other byte g / 256.
#   After a: total 2, one kind: g = 1/4, p(b | a) = (2 - 1/2) / 2 + 1/4 p(b).
#   After b: total 2, two kinds: g = 1/2, p(a | b) = p(c | b) = (1 - 1/2) / 2 + 1/2 p(c).
#   After c: nothing was seen: g = 1.
SEEN, UNSEEN = 1 / 6 + 1 / 512, 1 / 512
A, B, C, Z = b"abcz"


def toy():
    return train(b"ababc", order=2, discounts=0.5)


def ids_of(text):
    return np.frombuffer(text, dtype=np.uint8)


def english(n_bytes):
    """The same sentences in another order each time: enough repetition for every order."""
    words = b"the cat sat on the mat and the dog sat on the cat while a bird saw the dog and ran away".split()
    draw = np.random.default_rng(5).integers(0, len(words), n_bytes)
    return b" ".join(words[i] for i in draw)[:n_bytes]


def kneser_ney(text, order, discounts, min_counts=None):
    """p(w | h) straight from Chen and Goodman 1999, equations 19 to 22 with continuation counts, in dictionaries."""
    least = min_counts or [1] * order
    counts = {k: Counter(text[i : i + k] for i in range(len(text) - k + 1)) for k in range(1, order + 1)}
    before = {k: Counter(gram[1:] for gram in counts[k + 1]) for k in range(1, order)}  # N1+(• gram)

    def adjusted(gram):
        return (counts if len(gram) == order else before)[len(gram)][gram]

    def discounted(gram):
        if len(gram) > 1 and counts[len(gram)][gram] < least[len(gram) - 1]:
            return 0.0
        return max(adjusted(gram) - discounts[len(gram) - 1], 0.0)

    def p(w, h):
        lower = p(w, h[1:]) if h else 1 / 256
        followers = [h + bytes([v]) for v in range(256)]
        total = sum(map(adjusted, followers))
        if total == 0:
            return lower
        gamma = 1 - sum(map(discounted, followers)) / total
        return discounted(h + w) / total + gamma * lower

    return lambda sequence: [
        p(sequence[t : t + 1], sequence[max(0, t - order + 1) : t]) for t in range(1, len(sequence))
    ]


def test_the_hand_worked_toy_is_scored_as_on_paper():
    p = np.exp(-toy().nll(ids_of(b"ababcz")))
    b_after_a, a_after_b = 3 / 4 + SEEN / 4, 1 / 4 + SEEN / 2
    np.testing.assert_allclose(p, [b_after_a, a_after_b, b_after_a, a_after_b, UNSEEN], rtol=1e-6)


def test_the_hand_worked_toy_is_stored_as_in_formats_checkpoints_md():
    one, two = toy().tables
    assert two.suffix.tolist() == [A, B, C]
    assert two.byte.tolist() == [B, A, B]
    np.testing.assert_allclose(np.exp(two.log_prob), [0.3343, 0.7922, 0.3343], atol=5e-5)
    np.testing.assert_allclose(np.exp(one.log_backoff[[A, B, C, Z]]), [1 / 4, 1 / 2, 1, 1], rtol=1e-6)


def test_the_hand_worked_toy_gives_these_rows():
    rows = np.exp(toy()(ids_of(b"bz")[None])[0])
    np.testing.assert_allclose(rows[0, [A, B, C, Z]], [1 / 4 + SEEN / 2, SEEN / 2, 1 / 4 + SEEN / 2, UNSEEN / 2], 1e-6)
    np.testing.assert_allclose(rows[1, [A, B, C, Z]], [SEEN, SEEN, SEEN, UNSEEN], rtol=1e-6)


@st.composite
def settings(draw):
    order = draw(st.integers(1, 5))
    text = draw(st.binary(min_size=order, max_size=40) | st.text("ab", min_size=order, max_size=40).map(str.encode))
    discounts = draw(st.lists(st.floats(0.05, 1.0), min_size=order, max_size=order))
    min_counts = sorted(draw(st.lists(st.integers(1, 3), min_size=order, max_size=order)))
    scored = draw(st.binary(min_size=2, max_size=8) | st.text("ab", min_size=2, max_size=12).map(str.encode))
    return text, order, discounts, min_counts, scored


@given(settings())
def test_scores_equal_the_formulas_in_dictionaries(setting):
    text, order, discounts, min_counts, scored = setting
    model = train(text, order=order, discounts=discounts, min_counts=min_counts)
    expected = -np.log(kneser_ney(text, order, discounts, min_counts)(scored))
    np.testing.assert_allclose(model.nll(ids_of(scored)), expected, rtol=1e-6, atol=1e-6)


def test_scores_equal_the_formulas_at_order_8_with_bytes_from_0_to_255():
    draw = np.random.default_rng(3)
    text = bytes(draw.choice([0, 1, 127, 128, 254, 255], 400).astype(np.uint8))
    discounts = [0.9, 0.8, 0.7, 0.75, 0.6, 0.5, 0.4, 0.3]
    scored = text[100:160] + text[:30]
    expected = -np.log(kneser_ney(text, 8, discounts)(scored))
    np.testing.assert_allclose(train(text, order=8, discounts=discounts).nll(ids_of(scored)), expected, atol=2e-6)


def nltk_model(text, order, discount):
    from nltk.lm import KneserNeyInterpolated
    from nltk.util import everygrams

    model = KneserNeyInterpolated(order, discount=discount)
    words = [chr(byte) for byte in text]  # nltk's vocabulary takes strings only
    model.fit([list(everygrams(words, max_len=order))], vocabulary_text=words)
    return model


@pytest.mark.parametrize("order", [2, 3, 4])  # nltk counts continuations at order 1 even if that is the top
def test_scores_equal_nltk_within_1e_6_log10(order):
    # nltk does not discount order 1. The text ends as it begins: see the next test for what happens otherwise.
    text = english(400)
    text += text[:order]
    discounts = [0.0] + [0.75] * (order - 1)
    scored = english(700)[400:500].decode()
    theirs = nltk_model(text, order, 0.75)
    expected = [
        math.log10(theirs.score(scored[t], tuple(scored[max(0, t - order + 1) : t]))) for t in range(1, len(scored))
    ]
    ours = -train(text, order=order, discounts=discounts).nll(ids_of(scored.encode())) / math.log(10)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-6)


def test_a_gram_that_only_opens_the_text_is_in_nltk_s_back_off_weight_and_not_in_ours():
    # "acabab" at order 3. "ac" is preceded by nothing: N1+(• ac) = 0, so after a only b was ever "seen", twice.
    # nltk still counts two kinds of byte after a, so its weight is 3/4 · 2/2 where the sum leaves 3/4 · 1/2.
    text = b"acabab"
    theirs = nltk_model(text, 3, 0.75)
    assert sum(theirs.score(w, ("a",)) for w in "abc") == pytest.approx(1 + 3 / 4 * 1 / 2)
    ours = train(text, order=3, discounts=[0.0, 0.75, 0.75])
    assert np.exp(ours(ids_of(b"a")[None])).sum() == pytest.approx(1, abs=1e-6)


@given(settings())
def test_every_distribution_sums_to_1(setting):
    text, order, discounts, min_counts, scored = setting
    model = train(text, order=order, discounts=discounts, min_counts=min_counts)
    np.testing.assert_allclose(np.exp(model(ids_of(scored)[None])).sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(model.context_sums(), 1, atol=1e-6)


def test_context_sums_shows_a_distribution_that_is_off():
    tables = list(toy().tables)
    log_backoff = tables[0].log_backoff.copy()
    log_backoff[A] += np.float32(0.1)
    tables[0] = Grams(tables[0].suffix, tables[0].byte, tables[0].log_prob, log_backoff)
    # after a, all bytes but b have weight 1/4 · e^0.1 instead of 1/4
    off = np.exp(0.1) - 1
    sums = NGramLM(tables).context_sums()
    assert sums[1 + A] == pytest.approx(1 + off * (1 - SEEN) / 4, abs=1e-6)
    np.testing.assert_allclose(np.delete(sums, 1 + A), 1, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3, 6, 8])
def test_nll_is_read_off_the_rows_bit_for_bit(order):
    model = train(english(3000), order=order)
    ids = ids_of(english(4000)[3000:] + b"\x00Zq\xff")
    rows = model(ids[None])
    assert rows.shape == (1, len(ids), 256)
    np.testing.assert_array_equal(model.nll(ids), -rows[0, np.arange(len(ids) - 1), ids[1:]])


def test_changing_a_byte_changes_nothing_before_it():
    model = train(english(2000), order=5)
    one = ids_of(english(2100)[2000:])
    other = one.copy()
    other[60] = Z
    np.testing.assert_array_equal(model(one[None])[0, :60], model(other[None])[0, :60])
    np.testing.assert_array_equal(model.nll(one)[:59], model.nll(other)[:59])
    assert (model.nll(one)[59:64] != model.nll(other)[59:64]).all()


def test_a_byte_is_scored_from_order_minus_1_bytes_before_it_and_no_more():
    model = train(english(2000), order=4)
    one, other = ids_of(b"the cat sat"), ids_of(b"xyz cat sat")
    differs = model.nll(one) != model.nll(other)
    assert differs.tolist() == [True] * 5 + [False] * 5  # byte 3 + 3 is the first whose three bytes before are equal


def test_chunks_join_without_a_seam(monkeypatch):
    model = train(english(2000), order=6)
    ids = ids_of(english(2500)[2000:])
    whole = model.nll(ids)
    for chunk in (1, 2, 3, 7, 100):
        monkeypatch.setattr(ngram, "CHUNK", chunk)
        np.testing.assert_array_equal(model.nll(ids), whole)


def test_torch_and_numpy_ids_score_alike():
    model, text = toy(), list(b"abcz")
    np.testing.assert_array_equal(model.nll(torch.tensor(text)), model.nll(np.array(text)))
    np.testing.assert_array_equal(model(torch.tensor([text])), model(np.array([text])))


def test_one_byte_has_no_nll():
    assert toy().nll(np.array([A])).shape == (0,)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([], dtype=np.int64), r"shape \[T\] with T >= 1, got \[0\]"),
        (np.array([[97]]), r"got \[1, 1\]"),
        (np.array([97.0]), "integers, got float64"),
        (np.array([97, 256]), "0 to 255, got 97 to 256"),
        (np.array([-1, 97]), "0 to 255, got -1 to 97"),
    ],
)
def test_ids_that_are_no_row_of_bytes_are_refused_with_what_came(ids, message):
    with pytest.raises(ValueError, match=message):
        toy().nll(ids)


def test_what_is_saved_is_loaded_bit_for_bit_and_equal_models_are_equal_files(tmp_path):
    model = train(english(3000), order=5, min_counts=[1, 1, 1, 2, 2])
    save_ngram(tmp_path / "a.safetensors", model, training={"seed": 0, "data_sha256": "ab" * 32})
    save_ngram(tmp_path / "b.safetensors", model, training={"seed": 0, "data_sha256": "ab" * 32})
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    ids = ids_of(english(3500)[3000:])
    loaded = NGramLM.load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(loaded.nll(ids), model.nll(ids))
    for ours, theirs in zip(model.tables, loaded.tables, strict=True):
        for column in ("suffix", "byte", "log_prob", "log_backoff"):
            assert getattr(ours, column).tobytes() == getattr(theirs, column).tobytes()


def test_the_metadata_of_the_file_names_the_family_and_the_sizes(tmp_path):
    save_ngram(tmp_path / "model.safetensors", toy(), training={"recipe": {"order": 2}})
    assert checkpoints.read_config(tmp_path / "model.safetensors") == {
        "tl_arch": "ngram",
        "order": 2,
        "vocab_size": 256,
        "grams": [256, 3],
        "training": {"recipe": {"order": 2}},
    }


def test_a_folder_with_the_one_file_loads_too(tmp_path):
    save_ngram(tmp_path / "stories.safetensors", toy())
    assert load_ngram(tmp_path).order == 2


def stored(model):
    """The metadata and tensors of a checkpoint, to be broken by a test."""
    config = {"tl_arch": "ngram", "order": 2, "vocab_size": 256, "grams": [256, 3]}
    one, two = model.tables
    return config, {
        "log_prob.1": one.log_prob.copy(),
        "log_backoff.1": one.log_backoff.copy(),
        "suffix.2": two.suffix.copy(),
        "byte.2": two.byte.copy(),
        "log_prob.2": two.log_prob.copy(),
    }


def test_the_parts_that_the_next_tests_break_are_a_good_checkpoint(tmp_path):
    checkpoints.save_file(tmp_path / "m.safetensors", *stored(toy()))
    np.testing.assert_array_equal(load_ngram(tmp_path / "m.safetensors").nll([A, B, C]), toy().nll([A, B, C]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tl_arch": "nplm"}, "tl_arch must be 'ngram', got 'nplm'"),
        ({"order": 3}, r"one number for each of 3 orders, got \[256, 3\]"),
        ({"order": 9}, "an integer in 1 … 8, got 9"),
        ({"vocab_size": 512}, "must be 256, got 512"),
        ({"grams": [256, 4]}, r"must have shape \(4,\), got \(3,\)"),
        ({"grams": [256, -3]}, r"numbers of grams, order 1 first, got \[256, -3\]"),
        ({"orders": 2}, "unknown key 'orders'; did you mean 'order'"),
    ],
)
def test_metadata_that_does_not_fit_is_refused(tmp_path, change, message):
    config, tensors = stored(toy())
    checkpoints.save_file(tmp_path / "m.safetensors", config | change, tensors)
    with pytest.raises(CheckpointError, match=message):
        load_ngram(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("byte.2", None, "missing tensor 'byte.2'"),
        ("suffix.3", np.zeros(1, np.int32), "unknown tensor 'suffix.3'"),
        ("log_backoff.2", np.zeros(3, np.float32), "unknown tensor 'log_backoff.2'"),
        ("suffix.2", np.array([97, 98, 99], np.int64), "must have dtype int32, got int64"),
        ("suffix.2", np.array([99, 98, 97], np.int32), "order 2 must be sorted and distinct, row 1"),
        ("suffix.2", np.array([97, 98, 256], np.int32), "suffix of order 2 must be a row of order 1, 0 to 255"),
        ("log_prob.2", np.array([-1, 0.5, -1], np.float32), "order 2 must hold log-probabilities of at most 0"),
        (
            "log_prob.2",
            np.array([-1, -1, -1], np.float32),
            "every distribution must sum to 1, got 0.57.* for context b'a'",
        ),
        ("log_prob.1", np.full(256, -5, np.float32), "every distribution must sum to 1, got .* for context b''"),
    ],
)
def test_tensors_that_are_no_n_gram_model_are_refused(tmp_path, name, value, message):
    config, tensors = stored(toy())
    tensors = {key: tensor for key, tensor in (tensors | {name: value}).items() if tensor is not None}
    checkpoints.save_file(tmp_path / "m.safetensors", config, tensors)
    with pytest.raises(CheckpointError, match=message):
        load_ngram(tmp_path / "m.safetensors")


def test_a_stored_nan_is_refused_with_its_place(tmp_path):
    from safetensors.numpy import save_file

    config, tensors = stored(toy())
    tensors["log_prob.1"][7] = np.nan
    metadata = {key: str(value) for key, value in config.items()}
    save_file(tensors, tmp_path / "m.safetensors", metadata=metadata)
    with pytest.raises(CheckpointError, match=r"tensor 'log_prob.1': must be finite, got nan at \[7\]"):
        load_ngram(tmp_path / "m.safetensors")


def test_a_gram_that_stands_twice_is_refused():
    one, two = toy().tables
    twice = [0, 0, 1, 2]
    tables = [one, Grams(two.suffix[twice], two.byte[twice], two.log_prob[twice], two.log_backoff[twice])]
    with pytest.raises(ValueError, match="the grams of order 2 must be sorted and distinct, row 1 is not"):
        NGramLM(tables)


def test_a_gram_whose_context_has_no_entry_is_refused():
    model = train(b"abcabc", order=3)
    one, two, three = model.tables
    keep = ~((two.byte == A) & (two.suffix == B))  # "ab", the context of "abc"
    suffix = (np.cumsum(keep) - 1)[three.suffix].astype(np.int32)
    tables = [one, Grams(two.suffix[keep], two.byte[keep], two.log_prob[keep], two.log_backoff[keep])]
    tables.append(Grams(suffix, three.byte, three.log_prob, three.log_backoff))
    with pytest.raises(
        ValueError, match=r"every gram without its newest byte must be a gram, row \d of order 3 is not"
    ):
        NGramLM(tables)


@pytest.mark.parametrize("n_tables", [0, 9])
def test_an_order_outside_1_to_8_is_refused(n_tables):
    with pytest.raises(ValueError, match=f"1 to 8 orders, got {n_tables}"):
        NGramLM([toy().tables[0]] * n_tables)


def test_a_byte_the_text_does_not_hold_is_impossible_without_a_discount_at_order_1(tmp_path):
    model = train(b"ababc", order=2, discounts=[0.0, 0.5])
    assert model.nll(ids_of(b"az")).tolist() == [math.inf]
    with pytest.raises(CheckpointError, match="must be finite, got -inf"):
        save_ngram(tmp_path / "m.safetensors", model)
