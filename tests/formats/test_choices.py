"""Rows of a log-likelihood task: every bad one is refused with its line and field."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.errors import FormatError
from tinyllm.formats.choices import read_choices

GOOD = {"context": "a", "choices": ["bb", "c"], "answer": 1}


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(TEXT, st.lists(TEXT.filter(bool), min_size=1, max_size=4), st.integers(0, 3)), min_size=1))
def test_rows_come_back_as_they_were_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("choices") / "a.jsonl"
    write(path, *({"context": c, "choices": ch, "answer": a % len(ch)} for c, ch, a in rows))
    items = read_choices(path)
    assert [(i.context, list(i.choices), i.answer) for i in items] == [(c, ch, a % len(ch)) for c, ch, a in rows]
    assert [i.line for i in items] == list(range(1, len(rows) + 1))
    assert len({i.id for i in items}) == len(items)


def test_an_item_without_an_id_is_named_by_its_index_and_the_hash_of_its_text(tmp_path):
    items = read_choices(write(tmp_path / "a.jsonl", GOOD, {**GOOD, "cluster": "x", "source": "kept elsewhere"}))
    # printf '{"answer":1,"choices":["bb","c"],"context":"a"}' | sha256sum
    assert [item.id for item in items] == ["0:663a145c3eb9", "1:663a145c3eb9"]
    assert [item.cluster for item in items] == [None, "x"]


def test_given_ids_and_clusters_are_kept_as_text(tmp_path):
    items = read_choices(write(tmp_path / "a.jsonl", {**GOOD, "id": 1, "cluster": 7}, {**GOOD, "id": "b"}))
    assert [(item.id, item.cluster) for item in items] == [("1", "7"), ("b", None)]


@pytest.mark.parametrize("ids", [(1, 1, 2), ("1", 1, 2), ("x", "y", "x")], ids=repr)
def test_fault_row_54_an_id_given_twice_is_refused(tmp_path, ids):
    path = write(tmp_path / "a.jsonl", *({**GOOD, "id": name} for name in ids))
    line = max(i for i, name in enumerate(ids, start=1) if str(name) == str(ids[0]))
    message = rf"line {line}: id: must be unique, got '{ids[0]}' again \(first on line 1\)"
    with pytest.raises(FormatError, match=message):
        read_choices(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": None}, "line 2: context: must be a string, got None"),
        ({"choices": []}, r"line 2: choices: must be a list of at least one string, got \[\]"),
        ({"choices": "bb"}, "line 2: choices: must be a list of at least one string, got 'bb'"),
        ({"choices": ["bb", ""]}, r"line 2: choices\[1\]: must be a non-empty string, got ''"),
        ({"choices": ["bb", 3]}, r"line 2: choices\[1\]: must be a non-empty string, got 3"),
        ({"answer": 2}, "line 2: answer: must be an integer from 0 to 1 .*, got 2"),
        ({"answer": -1}, "line 2: answer: must be an integer from 0 to 1 .*, got -1"),
        ({"answer": True}, "line 2: answer: must be an integer from 0 to 1 .*, got True"),
        ({"answer": 1.0}, "line 2: answer: must be an integer from 0 to 1 .*, got 1.0"),
        ({"answer": "1"}, "line 2: answer: must be an integer from 0 to 1 .*, got '1'"),
        ({"id": ""}, "line 2: id: must be a non-empty string or an integer, got ''"),
        ({"id": None}, "line 2: id: must be a non-empty string or an integer, got None"),
        ({"cluster": True}, "line 2: cluster: must be a non-empty string or an integer, got True"),
        ({"clusters": "x"}, "line 2: unknown field 'clusters'; did you mean 'cluster'"),
        ({"ID": "x"}, "line 2: unknown field 'ID'; did you mean 'id'"),
    ],
)
def test_a_bad_field_is_named_with_file_line_and_value(tmp_path, change, message):
    with pytest.raises(FormatError, match=f"a.jsonl: {message}"):
        read_choices(write(tmp_path / "a.jsonl", GOOD, {**GOOD, **change}))


@pytest.mark.parametrize("key", GOOD)
def test_a_missing_field_is_named(tmp_path, key):
    row = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(FormatError, match=f"line 2: missing field '{key}'"):
        read_choices(write(tmp_path / "a.jsonl", GOOD, row))


def test_a_file_without_rows_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"\n")
    with pytest.raises(FormatError, match="must hold at least one row, got none"):
        read_choices(tmp_path / "a.jsonl")


def test_an_empty_context_is_legal(tmp_path):
    assert read_choices(write(tmp_path / "a.jsonl", {**GOOD, "context": ""}))[0].context == ""
