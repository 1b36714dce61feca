import math
import random
from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from tinyllm.models.gpt import save_gpt
from tinyllm.rng import PCG32
from tinyllm.training.gpt import RECIPE, Recipe, draw_windows, learning_rate, train

TINY = {"ctx_len": 16, "n_layer": 1, "n_head": 2, "n_embd": 16, "batch": 4, "steps": 6, "warmup_steps": 2}
RHYME = b"the cat sat on the mat, and the rat sat on the cat. " * 20


def bits_of_one_byte(text):
    """The entropy of the bytes on their own: what a model that has learned no context pays."""
    counts = np.array(list(Counter(text).values())) / len(text)
    return -(counts * np.log(counts)).sum()


def test_equal_seeds_give_equal_bytes_and_another_seed_gives_others(tmp_path):
    for place, seed in (("a", 0), ("b", 0), ("c", 1)):
        save_gpt(tmp_path / place, train(RHYME, seed=seed, **TINY), dtype="float16")
    a, b, c = ((tmp_path / place / "model.safetensors").read_bytes() for place in "abc")
    assert a == b
    assert a != c


def test_another_seed_draws_other_windows_and_not_only_other_weights():
    """Two constant texts and no learning make two losses: their pattern is the windows', whatever the weights."""
    patterns = []
    for seed in (0, 1):
        losses = []
        train(
            [b"a" * 40, b"b" * 40],
            seed=seed,
            on_step=lambda _, x, to=losses: to.append(x),
            **TINY | {"batch": 1, "steps": 30, "lr": 0.0},
        )
        assert len(set(losses)) == 2
        patterns.append([loss == losses[0] for loss in losses])
    assert patterns[0] != patterns[1]


def test_the_loss_falls_below_the_entropy_of_single_bytes():
    losses = []
    model = train(
        RHYME, seed=0, on_step=lambda _, loss: losses.append(loss), **TINY | {"batch": 8, "steps": 150, "lr": 1e-2}
    )
    floor = bits_of_one_byte(RHYME)
    assert losses[0] == pytest.approx(math.log(256), abs=0.1)  # it starts knowing nothing
    assert np.mean(losses[-10:]) < floor / 2
    ids = torch.tensor(list(b"and the rat sat o"))[None]
    with torch.no_grad():
        loss = model(ids[:, :-1], ids[:, 1:])[1].item()
    assert loss < floor / 2
    assert not model.training


def test_training_leaves_the_global_generators_and_the_thread_count_alone():
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002 - the global state is the subject
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = []
        train(RHYME, seed=0, on_step=lambda *_: seen.append(torch.get_num_threads()), **TINY)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.random.get_state()[1].tolist() == before[2]  # noqa: NPY002


def test_each_step_reports_its_number_and_its_loss():
    steps = []
    train(RHYME, seed=0, on_step=lambda step, loss: steps.append((step, loss)), **TINY)
    assert [step for step, _ in steps] == list(range(6))
    assert all(0 < loss < 10 for _, loss in steps)


def test_the_rate_rises_in_a_line_and_falls_in_half_a_cosine():
    recipe = replace(Recipe(), lr=1.0, warmup_steps=4, steps=12)
    rates = [learning_rate(step, recipe) for step in range(12)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[4] == 1.0
    assert rates[6] == pytest.approx((1 + math.sqrt(0.5)) / 2)
    assert rates[8] == pytest.approx(0.5)
    assert rates[10] == pytest.approx((1 - math.sqrt(0.5)) / 2)
    assert rates[11] == pytest.approx((1 - math.cos(math.pi / 8)) / 2)


def test_a_run_shorter_than_its_warm_up_is_only_a_warm_up():
    recipe = replace(Recipe(), lr=1.0, warmup_steps=4, steps=2)
    assert [learning_rate(step, recipe) for step in range(2)] == [0.25, 0.5]


def test_one_step_with_a_vanishing_gradient_decays_matrices_and_nothing_else():
    """Clipped to nothing, Adam's step is nothing: what is left is lr · weight_decay, on matrices."""
    still = TINY | {"steps": 1, "warmup_steps": 0, "clip_norm": 1e-30, "lr": 0.1}
    drawn = train(RHYME, seed=0, **still, weight_decay=0.0).state_dict()
    decayed = train(RHYME, seed=0, **still, weight_decay=0.5).state_dict()
    moved = train(RHYME, seed=0, **still | {"clip_norm": 1.0}, weight_decay=0.0).state_dict()
    for name, tensor in drawn.items():
        shrunk = tensor * (1 - 0.1 * 0.5) if tensor.ndim == 2 else tensor
        torch.testing.assert_close(decayed[name], shrunk, rtol=1e-6, atol=1e-20)
        assert not torch.equal(moved[name], tensor), name


def test_windows_reach_both_ends_of_a_text_and_are_its_bytes_in_order():
    text = np.arange(10, 30, dtype=np.uint8)
    windows = draw_windows([text], [1.0], PCG32(0), batch=400, ctx_len=5)
    assert windows.dtype == torch.int64
    assert windows.shape == (400, 6)
    assert (windows.diff(dim=1) == 1).all()
    assert sorted(set(windows[:, 0].tolist())) == list(range(10, 25))  # the last starts 6 bytes before the end


def test_windows_come_from_each_text_by_its_share():
    texts = [np.full(50, fill, dtype=np.uint8) for fill in (1, 2, 3)]
    windows = draw_windows(texts, [0.25, 0.0, 0.75], PCG32(0), batch=4000, ctx_len=5)
    counts = Counter(windows[:, 0].tolist())
    assert counts[2] == 0
    assert abs(counts[1] - 1000) < 4 * math.sqrt(4000 * 0.25 * 0.75)
    assert counts[1] + counts[3] == 4000


def test_windows_are_the_documented_draws():
    texts = [np.arange(40, dtype=np.uint8), np.arange(100, 180, dtype=np.uint8)]
    rng = PCG32(3)
    expected = []
    for _ in range(20):
        text = texts[0] if rng.random() < 0.3 else texts[1]
        start = rng.bounded(len(text) - 7)
        expected.append(text[start : start + 8].tolist())
    assert draw_windows(texts, [0.3, 0.7], PCG32(3), batch=20, ctx_len=7).tolist() == expected


def test_without_shares_each_byte_counts_the_same():
    kept = []
    for shares in (None, (0.25, 0.75)):
        losses = []
        train([RHYME[:100], RHYME[:300]], seed=0, shares=shares, on_step=lambda _, x, to=losses: to.append(x), **TINY)
        kept.append(losses)
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("texts", "shares", "message"),
    [
        (b"x" * 16, None, r"longer than ctx_len = 16 bytes, got \[16\]"),
        ([RHYME, b""], None, r"longer than ctx_len = 16 bytes, got \[1040, 0\]"),
        ([], None, r"longer than ctx_len = 16 bytes, got \[\]"),
        ([RHYME, RHYME], [1.0], r"2 probabilities that sum to 1, got \[1.0\]"),
        ([RHYME, RHYME], [0.5, 0.6], r"2 probabilities that sum to 1, got \[0.5, 0.6\]"),
        ([RHYME, RHYME], [-0.5, 1.5], r"2 probabilities that sum to 1, got \[-0.5, 1.5\]"),
    ],
)
def test_texts_and_shares_that_cannot_be_drawn_from_are_refused_with_their_numbers(texts, shares, message):
    with pytest.raises(ValueError, match=message):
        train(texts, seed=0, shares=shares, **TINY)


def test_a_key_that_is_no_part_of_the_recipe_is_refused():
    with pytest.raises(TypeError, match="learning_rate"):
        train(RHYME, seed=0, learning_rate=0.1)


def test_the_recipe_is_plain_data_that_trains_the_same_model_again():
    assert asdict(Recipe()) == RECIPE
    assert {type(value) for value in RECIPE.values()} <= {int, float}
    first, again = train(RHYME, seed=0, **TINY), train(RHYME, seed=0, **RECIPE | TINY)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
