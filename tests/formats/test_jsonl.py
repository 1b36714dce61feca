"""JSON Lines: no row falls into pieces, none is dropped, and the bad one is named by its line."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.errors import FormatError
from tinyllm.formats.jsonl import content_id, read_jsonl

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(rows=st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=5), end=st.sampled_from(["\n", "\r\n"]))
def test_rows_come_back_as_they_were_written(tmp_path_factory, rows, end):
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    text = end.join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_bytes(text.encode("utf-8"))
    assert list(read_jsonl(path)) == list(enumerate(rows, start=1))


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x1c"], ids=ascii)
def test_fault_row_59_a_unicode_line_mark_inside_a_string_splits_no_row(tmp_path, mark):
    row = {"context": f"one{mark}two"}
    (tmp_path / "a.jsonl").write_bytes(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    assert list(read_jsonl(tmp_path / "a.jsonl")) == [(1, row)]


def test_fault_row_60_byte_order_mark_crlf_no_final_newline_and_blank_last_lines_are_fine(tmp_path):
    (tmp_path / "bom.jsonl").write_bytes(b'\xef\xbb\xbf{"a":1}\r\n{"a":2}')
    (tmp_path / "blank.jsonl").write_bytes(b'{"a":1}\n{"a":2}\n\n  \n')
    for name in ("bom.jsonl", "blank.jsonl"):
        assert list(read_jsonl(tmp_path / name)) == [(1, {"a": 1}), (2, {"a": 2})]


def test_fault_row_60_a_blank_line_before_the_last_row_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a":1}\n\n{"a":2}\n')
    with pytest.raises(FormatError, match=r"a.jsonl: line 2: must hold a row, got a blank line"):
        list(read_jsonl(tmp_path / "a.jsonl"))


def test_fault_row_61_the_locale_does_not_choose_the_encoding(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('{"a":"😀"}\n'.encode())
    code = (
        "import sys; from tinyllm.formats.jsonl import read_jsonl; from tinyllm.formats.atomic import write_atomic;"
        "rows = list(read_jsonl(sys.argv[1])); assert rows == [(1, {'a': chr(0x1F600)})], ascii(rows)"
    )
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.jsonl"], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_fault_row_66_one_bad_line_in_five_fails_by_its_number(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a":1}\n' * 3 + b'{"a":\n' + b'{"a":1}\n')
    with pytest.raises(FormatError, match=r"line 4, column 6: must be JSON, got a syntax error"):
        list(read_jsonl(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1]", r"line 1: must be a JSON object, got '\[1\]'"),
        (b"{} {}", "line 1, column 4: must be JSON, got a syntax error: Extra data"),
        (b'{"a":[1,NaN]}', r"line 1: a\[1\]: must be a finite number, got nan"),
        (b'{"a":1e999}', "line 1: a: must be a finite number, got inf"),
        (b'{"a":' + b"9" * 400 + b".0}", "line 1: a: must be a finite number, got inf"),
        (b'{"a":1,"a":2}', "line 1: .*the key 'a' stands there twice"),
        (b'{"a":"\\ud83d"}', "line 1: a: must be Unicode text, got half of a surrogate pair"),
        (b'{"\\ud83d":1}', r"\(the key\): must be Unicode text"),
        (b'{"a":"\xff"}', "line 1: must be UTF-8, got byte 0xff at byte 6"),
        (b'{"a":' + b"9" * 5000 + b"}", "line 1: must be JSON with distinct keys and sane numbers"),
        (b'{"a":' + b"[" * 100_000, "line 1: must be nested less deeply"),
    ],
)
def test_fault_row_66_a_bad_line_is_named_with_what_came(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_bytes(line)
    with pytest.raises(FormatError, match=message):
        list(read_jsonl(tmp_path / "a.jsonl"))


def test_gzip_reads_like_the_plain_file_whatever_its_name(tmp_path):
    data = b'{"a":1}\n{"a":2}\n'
    for name in ("a.jsonl.gz", "a.jsonl"):
        (tmp_path / name).write_bytes(gzip.compress(data))
        assert [row for _, row in read_jsonl(tmp_path / name)] == [{"a": 1}, {"a": 2}]


def test_a_gzip_that_is_cut_short_or_flipped_is_refused(tmp_path):
    whole = gzip.compress(b'{"a":1}\n' * 100)
    (tmp_path / "cut.gz").write_bytes(whole[:-9])
    flipped = bytearray(whole)
    flipped[-6] ^= 1  # the checksum
    (tmp_path / "flipped.gz").write_bytes(flipped)
    (tmp_path / "plain.gz").write_bytes(b'{"a":1}\n')
    for name, message in [("cut", "must be a whole gzip"), ("flipped", "must be a whole gzip"), ("plain", "is named")]:
        with pytest.raises(FormatError, match=message):
            list(read_jsonl(tmp_path / f"{name}.gz"))


def test_a_missing_file_and_a_folder_are_sentences(tmp_path):
    for path, reason in [(tmp_path / "gone", "No such file"), (tmp_path, "Is a directory")]:
        with pytest.raises(FormatError, match=f"must be a readable file, got '{reason}"):
            list(read_jsonl(path))


def test_a_content_id_hashes_canonical_json():
    # printf '{"a":"é","b":[1,2]}' | sha256sum
    assert content_id(3, {"b": [1, 2], "a": "é"}) == "3:9cfb1f938a87"
