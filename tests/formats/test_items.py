"""Per-item scores: what goes in comes out, in the same bytes every time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from tinyllm.errors import FormatError
from tinyllm.formats.items import read_items, write_items
from tinyllm.formats.tensors import serialize

ROWS = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9._-]{1,8}", fullmatch=True),
    st.lists(st.tuples(st.floats(allow_nan=False), st.text()), max_size=5),
    max_size=4,
)


@given(rows=ROWS, named=st.booleans())
def test_scores_and_ids_round_trip(tmp_path_factory, rows, named):
    path = tmp_path_factory.mktemp("items") / "items.safetensors"
    given_rows = {k: (np.array([s for s, _ in v]), [i for _, i in v] if named else None) for k, v in rows.items()}
    write_items(path, given_rows)
    read = read_items(path)
    assert list(read) == sorted(rows)
    for name, (scores, ids) in given_rows.items():
        assert read[name][0].tobytes() == scores.astype(np.float64).tobytes()
        assert read[name][1] == ids


def test_equal_scores_give_equal_bytes_whatever_the_order_of_rows(tmp_path):
    rows = {name: (np.array([0.1, 2]), ["a", "b"]) for name in "cab"}
    write_items(tmp_path / "one", rows)
    write_items(tmp_path / "two", dict(reversed(rows.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_layout_is_the_documented_one(tmp_path):
    write_items(tmp_path / "items", {"gpt": ([1, 0.5], ["é", "b"])})
    tensors = load_file(tmp_path / "items")
    assert {name: (str(t.dtype), t.tolist()) for name, t in tensors.items()} == {
        "gpt/scores": ("float64", [1.0, 0.5]),
        "gpt/id_bytes": ("uint8", [0xC3, 0xA9, 0x62]),
        "gpt/id_offsets": ("int64", [0, 2, 3]),
    }


@pytest.mark.parametrize(
    ("scores", "ids", "message"),
    [
        ([[1.0]], None, r"scores of 'gpt' must be one-dimensional without NaN, got shape \(1, 1\)"),
        ([np.nan], None, "without NaN"),
        ([1.0, 2.0], ["a"], r"ids of 'gpt' must be one per score \(2\), got 1"),
    ],
)
def test_nothing_is_written_that_could_not_be_compared(tmp_path, scores, ids, message):
    with pytest.raises(ValueError, match=message):
        write_items(tmp_path / "items", {"gpt": (scores, ids)})


SCORES, BYTES, OFFSETS = np.zeros(2), np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"scores": SCORES}, "unknown tensor 'scores'; known are NAME/scores"),
        ({"a/score": SCORES}, "unknown tensor 'a/score'"),
        ({"a/scores": SCORES.astype("f4")}, r"a/scores: must be one-dimensional float64, got float32 of shape \(2,\)"),
        ({"a/scores": SCORES[:, None]}, r"must be one-dimensional float64, got float64 of shape \(2, 1\)"),
        ({"a/scores": np.array([0, np.nan])}, "a: must hold no NaN, got one at item 1"),
        ({"a/scores": SCORES, "a/id_bytes": BYTES}, r"a: must hold scores, .*, got \['id_bytes', 'scores'\]"),
        ({"a/id_offsets": OFFSETS, "a/id_bytes": BYTES}, "a: must hold scores"),
        (
            {"a/scores": SCORES, "a/id_bytes": BYTES, "a/id_offsets": OFFSETS[:2]},
            "must be 3 rising offsets from 0 to 3",
        ),
        ({"a/scores": SCORES, "a/id_bytes": BYTES, "a/id_offsets": OFFSETS[[0, 2, 1]]}, "must be 3 rising offsets"),
        (
            {"a/scores": np.zeros(3), "a/id_bytes": BYTES, "a/id_offsets": np.array([0, 2, 1, 3])},
            "must be 4 rising offsets",
        ),
        ({"a/scores": SCORES, "a/id_bytes": BYTES, "a/id_offsets": OFFSETS - 1}, "must be 3 rising offsets"),
        ({"a/scores": SCORES, "a/id_bytes": BYTES | 0x80, "a/id_offsets": OFFSETS}, "a/id_bytes: must be UTF-8"),
    ],
)
def test_a_file_that_is_not_of_this_format_is_named(tmp_path, tensors, message):
    (tmp_path / "items").write_bytes(serialize(tensors))
    with pytest.raises(FormatError, match=message):
        read_items(tmp_path / "items")
