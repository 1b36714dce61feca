"""Parts of the data without a run: how many, which, and what a part never hides."""

import hashlib
import math
import struct
from fractions import Fraction

import numpy as np
import pytest

from tinyllm.errors import UsageError
from tinyllm.eval.limit import Limit, limit_items, limit_text, parse_limit
from tinyllm.eval.zoo import evaluate_entry
from tinyllm.formats.choices import parse_choices
from tinyllm.formats.manifest import load
from tinyllm.formats.tokens import HEADER, byte_tokens, open_tokens, write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram
from tinyllm.rng import PCG32

KEY = 0x0123456789ABCDEF


def items(n):
    rows = ({"id": f"q{i}", "context": "c", "choices": ["x"], "answer": 0} for i in range(n))
    return parse_choices(enumerate(rows, 1), "q.jsonl")


def row(**keys):
    return {"settings": {"max_len": 8}, "metric": "bpb"} | keys


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("1", 1),
        ("007", 7),
        ("100", 100),
        ("1.0", Fraction(1)),
        ("0.1", Fraction(1, 10)),
        (".25", Fraction(1, 4)),
        ("0.0000000001", Fraction(1, 10**10)),
    ],
)
def test_a_number_is_of_items_and_one_with_a_point_is_a_share_exactly(text, most):
    found = parse_limit(text)
    assert (found, type(found)) == (most, type(most))


@pytest.mark.parametrize("text", ["", "0", "00", "-1", "+1", "0.0", "1.1", "1.", ".", "1/2", "٣", "1_0", "1e2", "1\n"])
def test_anything_else_is_refused_by_its_text(text):
    with pytest.raises(UsageError, match="a limit must be a number of items of at least 1, or a share") as error:
        parse_limit(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize(
    ("text", "n", "kept"),
    [
        *(("5", 40, 5), ("40", 40, 40), ("41", 40, 40), ("1", 1, 1)),
        *(("0.1", 40, 4), ("0.1", 41, 5), ("0.001", 40, 1), ("1.0", 40, 40)),
        *(("0.07", 100, 7), ("0.29", 100, 29), ("0.57", 100, 57)),  # in floats 0.07 · 100 is above 7
    ],
)
def test_a_share_is_rounded_up_and_no_limit_is_above_all(text, n, kept):
    assert Limit(parse_limit(text), KEY).of(n) == kept


@pytest.mark.parametrize("most", [1, 7, 39])
def test_the_items_kept_are_those_of_the_smallest_hashes_in_file_order(most):
    before = {"max_len": 8}
    found = row(settings=before)
    kept = limit_items(items(40), found, Limit(most, KEY))
    digests = {
        f"q{i}": hashlib.sha256(struct.pack("<Q", KEY) + b"limit\0" + f"q{i}".encode()).digest() for i in range(40)
    }
    chosen = set(sorted(digests, key=digests.__getitem__)[:most])
    assert [item.id for item in kept] == [f"q{i}" for i in range(40) if f"q{i}" in chosen]
    assert found["settings"] == {"max_len": 8, "limit": most, "limit_of": 40}
    assert before == {"max_len": 8}  # a row that was shown to somebody does not change under him


@pytest.mark.parametrize("limit", [None, Limit(40, KEY), Limit(41, KEY), Limit(Fraction(1), KEY)])
def test_what_leaves_nothing_out_is_no_limit(limit):
    everything, found, text = items(40), row(), byte_tokens(b"x" * 41, "t")
    assert limit_items(everything, found, limit) == everything
    assert limit_text(text, found, limit) is text
    assert found == row()


def test_ids_that_utf8_does_not_have_are_hashed_as_they_are():
    ids = [chr(0xD800 + i) for i in range(20)]  # halves of surrogate pairs, which JSON may hold
    rows = ({"id": name, "context": "", "choices": ["x"], "answer": 0} for name in ids)
    kept = limit_items(parse_choices(enumerate(rows, 1), "q"), row(), Limit(5, KEY))
    salt = struct.pack("<Q", KEY) + b"limit\0"
    hashes = {name: hashlib.sha256(salt + name.encode("utf-8", "surrogatepass")).digest() for name in ids}
    assert {item.id for item in kept} == set(sorted(ids, key=hashes.__getitem__)[:5])


def test_of_a_text_the_first_scored_tokens_are_kept_and_the_one_before_them():
    text, found = byte_tokens(b"abcdefghij", "t"), row()
    kept = limit_text(text, found, Limit(4, KEY))
    assert bytes(kept.ids.tolist()) == b"abcde"
    assert (kept.n_bytes, kept.vocab_size, kept.sha256) == (4, 256, text.sha256)
    assert found["settings"] == {"max_len": 8, "limit": 4, "limit_of": 9}
    assert len(limit_text(text, row(), Limit(8, KEY)).ids) == 9  # one less than all


def test_a_text_with_nothing_to_score_is_left_to_its_own_error():
    for data in (b"", b"a"):
        text = byte_tokens(data, "t")
        assert limit_text(text, row(), Limit(Fraction(1, 2), KEY)) is text


@pytest.mark.parametrize(
    ("keys", "n_bytes"),
    [
        ({"vocab_size": 256, "n_bytes": 4}, 2),
        ({"vocab_size": 200, "n_bytes": 4}, 2),
        ({"vocab_size": 200, "n_bytes": 9}, None),  # tokens of several bytes each
        ({"vocab_size": 257, "n_bytes": 4}, None),  # one more than there are bytes: no token need be one
    ],
)
def test_the_bytes_of_a_part_are_known_where_tokens_are_bytes(tmp_path, keys, n_bytes):
    write_tokens(tmp_path / "t.bin", np.arange(5), **keys)
    data = open_tokens(tmp_path / "t.bin")
    assert limit_text(data, row(metric="nll"), Limit(2, KEY)).n_bytes == n_bytes
    if n_bytes is None:
        with pytest.raises(ValueError, match="the file has the bytes of all 4 tokens together"):
            limit_text(data, row(metric="bpb"), Limit(2, KEY))


@pytest.fixture
def scored(tmp_path):
    """``scored(limit, data=…)``: the row of a uniform bigram in this folder."""
    save_bigram(tmp_path / "uniform", BigramLM(np.zeros((256, 256), np.float32)))

    def score(limit, **keys):
        raw = {"name": "a", "dir": str(tmp_path / "uniform")} | {
            key: str(tmp_path / file) for key, file in keys.items()
        }
        (entry,) = load({"entry": [raw]}).entries
        return evaluate_entry(entry, PCG32(0), limit=Limit(limit, KEY)).row

    return score


def test_fault_row_66_a_bad_line_outside_the_part_is_an_error_all_the_same(scored, tmp_path):
    lines = [f'{{"context": "q{i}", "choices": ["x", "y"], "answer": 0}}' for i in range(5)]
    path = tmp_path / "t.jsonl"
    for bad in range(5):  # the part is one item: at least four of the five are outside
        path.write_text("\n".join([*lines[:bad], lines[bad].replace("0}", "2}"), *lines[bad + 1 :]]) + "\n")
        row = scored(1, choices="t.jsonl")
        assert (row["status"], row["value"], row["n"]) == ("error", None, None)
        assert f"t.jsonl: line {bad + 1}: answer: must be an integer from 0 to 1" in row["error"]["message"]
    path.write_text("\n".join(lines) + "\n")
    assert (scored(1, choices="t.jsonl")["n"], scored(1, choices="t.jsonl")["settings"]["limit_of"]) == (1, 5)


def test_fault_row_66_a_bad_token_outside_the_part_is_an_error_all_the_same(scored, tmp_path):
    path = tmp_path / "t.bin"
    write_tokens(path, np.full(100, 7, np.uint8), vocab_size=121, n_bytes=99)
    assert scored(3, data="t.bin")["value"] == 8
    whole = bytearray(path.read_bytes())
    whole[HEADER.size + 98] = 121
    path.write_bytes(whole)
    row = scored(3, data="t.bin")
    assert (row["status"], row["value"]) == ("error", None)
    assert "token 98: must lie below the vocabulary size 121, got 121" in row["error"]["message"]


def test_every_item_is_as_likely_to_be_kept():
    # 200 keys keep 10 of 40: each item is kept 50 times, give or take √(200 · ¼ · ¾) = 6.1
    kept = [item.id for key in range(200) for item in limit_items(items(40), row(), Limit(10, key))]
    counts = [kept.count(f"q{i}") for i in range(40)]
    assert sum(counts) == 2000
    assert math.dist(counts, [50] * 40) < 6.1 * math.sqrt(75)  # χ² of 39 degrees: above 75 once in 2,000
