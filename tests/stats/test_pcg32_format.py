"""The worked example of ``formats/pcg32.md``: every number is recomputed, without tinyllm and with it."""

import json
import re
from pathlib import Path

import pytest
from tests.stats import naive
from tests.stats.naive import NaivePCG32, digest_stream

from tinyllm.rng import PCG32, stream
from tinyllm.stats.intervals import bootstrap_ci
from tinyllm.stats.permutation import paired_permutation_test

TEXT = (Path(__file__).parents[2] / "formats" / "pcg32.md").read_text(encoding="utf-8")
EXAMPLE = json.loads(re.search(r"```json\n(.*?)```", TEXT, re.DOTALL).group(1))


@pytest.fixture(params=[NaivePCG32, PCG32], ids=["naive", "tinyllm"])
def make(request):
    return lambda case: request.param(case["seed"], case["sequence"])


def test_the_example_has_no_part_that_no_test_recomputes():
    recomputed = {"next_u32", "next_u64", "bounded", "random", "shuffled", "stream", "stream_of_item", "fork"}
    assert set(EXAMPLE) == recomputed | {"bootstrap_ci", "paired_permutation_test"}


def test_words(make):
    case = EXAMPLE["next_u32"]
    rng = make(case)
    assert [f"{rng.next_u32():08x}" for _ in case["hex"]] == case["hex"]


def test_double_words():
    case = EXAMPLE["next_u64"]
    rng, naive_rng = PCG32(case["seed"], case["sequence"]), NaivePCG32(case["seed"], case["sequence"])
    assert [f"{rng.next_u64():016x}" for _ in case["hex"]] == case["hex"]
    assert [f"{naive_rng.next_u32():08x}{naive_rng.next_u32():08x}" for _ in case["hex"]] == case["hex"]


def test_bounded_draws_and_the_rejected_word_that_the_text_names(make):
    case = EXAMPLE["bounded"]
    rng, raw = make(case), make(case)
    assert [rng.bounded(case["n"]) for _ in case["values"]] == case["values"]
    third = [raw.next_u32() for _ in range(3)][2]
    assert third < 2**32 % case["n"]
    assert f"(here {third}, the third)" in TEXT


def test_floats(make):
    case = EXAMPLE["random"]
    rng = make(case)
    assert [rng.next_u32() / 2**32 for _ in case["values"]] == case["values"]
    assert PCG32(case["seed"], case["sequence"]).random_array(len(case["values"])).tolist() == case["values"]


def test_a_shuffle(make):
    case = EXAMPLE["shuffled"]
    assert naive.shuffled(make(case), case["n"]) == case["values"]
    assert PCG32(case["seed"], case["sequence"]).shuffled(case["n"]).tolist() == case["values"]


@pytest.mark.parametrize("part", ["stream", "stream_of_item", "fork"])
def test_derived_streams(part):
    case = EXAMPLE[part]
    name = case["name"].encode()
    if part == "fork":
        data = case["of_seed"].to_bytes(8, "little") + case["of_sequence"].to_bytes(8, "little") + name
        derived = PCG32(case["of_seed"], case["of_sequence"]).fork(case["name"])
    else:
        index = b"" if part == "stream" else b"\0" + case["index"].to_bytes(8, "little")
        data = case["key"].to_bytes(8, "little") + name + index
        derived = stream(case["key"], case["name"], case.get("index"))
    assert digest_stream(data) == (case["sha256"], case["seed"], case["sequence"])
    reference = NaivePCG32(case["seed"], case["sequence"])
    assert [f"{reference.next_u32():08x}" for _ in case["hex"]] == case["hex"]
    assert [f"{derived.next_u32():08x}" for _ in case["hex"]] == case["hex"]


def test_the_bootstrap_interval_bit_by_bit(make):
    case = EXAMPLE["bootstrap_ci"]
    rng, x = make(case), case["x"]
    assert [[rng.bounded(len(x)) for _ in x] for _ in range(case["n_boot"])] == case["indexes"]
    assert f"{rng.next_u32():08x}" == case["next_u32_after"]
    assert naive.resample_means(x, case["indexes"]) == case["means"]
    assert (naive.quantile(case["means"], 0.025), naive.quantile(case["means"], 0.975)) == (case["lo"], case["hi"])
    fast = PCG32(case["seed"], case["sequence"])
    assert bootstrap_ci(x, fast, n_boot=case["n_boot"]) == (case["lo"], case["hi"])
    assert f"{fast.next_u32():08x}" == case["next_u32_after"]


def test_the_permutation_test_bit_by_bit(make):
    case = EXAMPLE["paired_permutation_test"]
    rng, n_perm = make(case), case["n_perm"]
    d = [u - v for u, v in zip(case["a"], case["b"], strict=True) if u != v]
    assert len(d) == case["m"]
    assert [f"{rng.next_u32():08x}" for _ in range(n_perm)] == case["words_hex"]
    patterns = [[int(i in flips) for i in range(len(d))] for flips in case["flipped"]]
    assert patterns == list(naive.drawn_patterns(len(d), n_perm, make(case)))
    assert naive.count_hits(d, patterns) == case["hits"]
    assert (1 + case["hits"]) / (1 + n_perm) == case["p"]
    fast = PCG32(case["seed"], case["sequence"])
    assert paired_permutation_test(case["a"], case["b"], n_perm, fast) == case["p"]
