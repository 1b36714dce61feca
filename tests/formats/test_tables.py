"""Labelled sentences, word pairs and sentence pairs: every row is read, or its line is named."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.errors import FormatError
from tinyllm.formats.labelled import read_labelled
from tinyllm.formats.pairs import read_pairs
from tinyllm.formats.wordpairs import read_wordpairs

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r")).filter(str.strip)


@given(rows=st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=5), end=st.sampled_from(["\n", "\r\n"]))
def test_labelled_rows_come_back_as_they_were_written(tmp_path_factory, rows, end):
    path = tmp_path_factory.mktemp("labelled") / "a.tsv"
    lines = [("split", "sentence", "label"), *rows]
    path.write_bytes("".join("\t".join(cells) + end for cells in lines).encode())
    assert [(row.split, row.sentence, row.label) for row in read_labelled(path)] == rows


@given(st.lists(st.tuples(CELL, CELL, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=5))
def test_word_pairs_keep_every_bit_of_their_score(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("wordpairs") / "a.tsv"
    path.write_bytes("\n".join(["w1\tw2\tscore", *(f"{a}\t{b}\t{s!r}" for a, b, s in rows)]).encode())
    assert [(row.w1, row.w2, row.score) for row in read_wordpairs(path)] == rows


def test_columns_may_stand_in_any_order_and_lines_are_counted_from_the_header(tmp_path):
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress('\ufefflabel\tsplit\tsentence\n1\tval\t"a\n\n'.encode()))
    (row,) = read_labelled(tmp_path / "a.tsv.gz")
    assert (row.split, row.sentence, row.label, row.line) == ("val", '"a', "1", 2)


def test_fault_row_59_a_unicode_line_mark_splits_no_table_row(tmp_path):
    (tmp_path / "a.tsv").write_bytes("w1\tw2\tscore\na\u2028b\tc\x85\t1\n".encode())
    (pair,) = read_wordpairs(tmp_path / "a.tsv")
    assert (pair.w1, pair.w2) == ("a\u2028b", "c\x85")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: must name the columns split, sentence, label, got ''"),
        ("split\tsentence\n", r"line 1: must name .* once each, got \['split', 'sentence'\]"),
        ("split\tsentence\tlable\n", "line 1: must name .*, got 'lable'; did you mean 'label'"),
        ("split\tsentence\tlabel\tlabel\n", "line 1: must name .* once each"),
        ("val\tgood\t1\n", "line 1: must name the columns .*, got 'val'"),
        ("split\tsentence\tlabel\n", "must hold at least one row below its header, got none"),
        ("split\tsentence\tlabel\nval\tgood\t1\nval\tgood\n", "line 3: must have 3 tab-separated cells, got 2"),
        ("split\tsentence\tlabel\nval\ta\tb\t1\n", "line 2: must have 3 tab-separated cells, got 4"),
        ("split\tsentence\tlabel\nval\t \t1\n", "line 2: sentence: must not be empty, got ' '"),
        ("split\tsentence\tlabel\nval\tgood\t\n", "line 2: label: must not be empty, got ''"),
    ],
)
def test_fault_row_66_a_bad_labelled_row_is_named_by_its_line(tmp_path, text, message):
    (tmp_path / "a.tsv").write_bytes(text.encode())
    with pytest.raises(FormatError, match=message):
        read_labelled(tmp_path / "a.tsv")


@pytest.mark.parametrize("score", ["nan", "inf", "1e999", "1,5", "1_0", " 1", "٣", "high"])
def test_a_score_must_be_a_finite_decimal_number(tmp_path, score):
    (tmp_path / "a.tsv").write_bytes(f"w1\tw2\tscore\na\tb\t{score}\n".encode())
    with pytest.raises(FormatError, match=f"line 2: score: must be a finite decimal number, got '{score}'"):
        read_wordpairs(tmp_path / "a.tsv")


def test_sentence_pairs_are_read_with_other_fields_left_alone(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"src":"a b","tgt":"","id":3}\n{"tgt":"d","src":"c"}\n')
    assert [(p.src, p.tgt, p.line) for p in read_pairs(tmp_path / "a.jsonl")] == [("a b", "", 1), ("c", "d", 2)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"src":"a"}', r"line 2: missing field 'tgt', got \['src'\]"),
        ('{"scr":"a","tgt":"b"}', r"line 2: missing field 'src', got \['scr', 'tgt'\]"),
        ('{"src":"","tgt":"b"}', "line 2: src: must be a non-empty string, got ''"),
        ('{"src":"a","tgt":null}', "line 2: tgt: must be a string, got None"),
    ],
)
def test_a_bad_sentence_pair_is_named_by_line_and_field(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_bytes(b'{"src":"a","tgt":"b"}\n' + line.encode())
    with pytest.raises(FormatError, match=message):
        read_pairs(tmp_path / "a.jsonl")


def test_a_pairs_file_without_rows_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"")
    with pytest.raises(FormatError, match="must hold at least one row, got none"):
        read_pairs(tmp_path / "a.jsonl")


def test_rows_of_the_same_text_have_different_ids_and_changed_text_another(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"w1\tw2\tscore\nmoney\tcash\t9\nmoney\tcash\t9\nmoney\tcash\t8\n")
    first, second, third = (pair.id for pair in read_wordpairs(tmp_path / "a.tsv"))
    assert first.split(":")[1] == second.split(":")[1] != third.split(":")[1]
    assert [name.split(":")[0] for name in (first, second, third)] == ["0", "1", "2"]
