"""Token files: a written file reads back, and every field of a header that lies is named."""

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tinyllm.errors import FormatError
from tinyllm.formats import tokens
from tinyllm.formats.tokens import byte_tokens, open_tokens, write_tokens

TOKENIZER = hashlib.sha256(b"a tokenizer").hexdigest()


@given(st.data())
def test_what_is_written_is_what_is_read(tmp_path_factory, data):
    vocab_size = data.draw(st.sampled_from([1, 2, 255, 256, 257, 65536, 65537, 2**32]))
    ids = data.draw(st.lists(st.integers(0, vocab_size - 1), max_size=20))
    n_bytes = data.draw(st.integers(1, 2**40)) if len(ids) > 1 else 0
    path = tmp_path_factory.mktemp("tokens") / "a.bin"
    write_tokens(path, np.array(ids, np.int64), vocab_size=vocab_size, n_bytes=n_bytes, tokenizer_sha256=TOKENIZER)
    read = open_tokens(path)
    assert read.ids.tolist() == ids
    assert (read.vocab_size, read.n_bytes, read.tokenizer_sha256) == (vocab_size, n_bytes, TOKENIZER)
    assert read.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(("vocab_size", "width"), [(256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_tokens_are_as_narrow_as_the_vocabulary_allows(tmp_path, vocab_size, width):
    write_tokens(tmp_path / "a.bin", [0, 1, 2], vocab_size=vocab_size, n_bytes=2)
    assert open_tokens(tmp_path / "a.bin").ids.dtype == np.dtype(f"u{width}")
    assert (tmp_path / "a.bin").stat().st_size == 128 + 3 * width


def test_ids_are_mapped_and_cannot_be_written(tmp_path):
    write_tokens(tmp_path / "a.bin", [1, 2], vocab_size=256, n_bytes=1)
    ids = open_tokens(tmp_path / "a.bin").ids
    assert isinstance(ids.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 9


def test_an_empty_file_opens_since_only_a_metric_refuses_it(tmp_path):
    write_tokens(tmp_path / "a.bin", [], vocab_size=256, n_bytes=0)
    read = open_tokens(tmp_path / "a.bin")
    assert (read.ids.shape, read.n_bytes) == ((0,), 0)


def header(magic=b"TLTOKENS", version=1, width=1, vocab=256, count=3, n_bytes=2, tokenizer=bytes(32), rest=bytes(56)):
    """The documented header, packed here independently of the writer."""
    numbers = struct.pack("<I", version) + struct.pack("<I", width) + struct.pack("<QQQ", vocab, count, n_bytes)
    return magic + numbers + tokenizer + rest


FAULTS = {
    "magic": (header(magic=b"TLTOKENZ") + b"abc", r"header bytes 0-8: must start with b'TLTOKENS', got b'TLTOKENZ'"),
    "version": (header(version=2) + b"abc", "header bytes 8-12: version must be 1, got 2"),
    "width": (header(width=3) + b"abc", "bytes per token must be 1, 2 or 4, got 3"),
    "vocab-zero": (header(vocab=0) + b"abc", r"vocabulary size must lie in 1 … 256 for 1-byte tokens, got 0"),
    "vocab-wide": (header(vocab=257) + b"abc", r"vocabulary size must lie in 1 … 256 for 1-byte tokens, got 257"),
    "cut": (header() + b"ab", r"must be 131 bytes \(128 \+ 3 tokens × 1\), got 130: it is cut short"),
    "trailing": (header() + b"abcdef", r"must be 131 bytes .*, got 134: 3 bytes trail"),
    "huge": (header(count=2**63) + b"abc", "got 131: it is cut short"),
    "n_bytes": (header(n_bytes=3) + b"abc", "must be 2 for 3 byte tokens, got 3"),
    "n_bytes-zero": (header(vocab=200, n_bytes=0) + b"abc", "must be 0 exactly when there are none, got 0 for 3"),
    "rest": (header(rest=bytes(55) + b"\x01") + b"abc", "header bytes 72-128: must be zeros"),
    "id": (header(vocab=99) + b"abc", "token 2: must lie below the vocabulary size 99, got 99"),
    "short": (b"TLTOKENS\x01", "must hold a header of 128 bytes, got 9"),
    "empty": (b"", "must hold a header of 128 bytes, got an empty file"),
}


@pytest.mark.parametrize(("data", "message"), FAULTS.values(), ids=FAULTS)
def test_each_header_field_that_lies_is_named(tmp_path, data, message):
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(FormatError, match=message):
        open_tokens(tmp_path / "a.bin")


def test_the_first_bad_id_is_named_by_its_place_in_the_file_not_in_its_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "_CHUNK", 2)
    (tmp_path / "a.bin").write_bytes(header(vocab=99, count=6, n_bytes=5) + b"aaaaca")
    with pytest.raises(FormatError, match="token 4: must lie below the vocabulary size 99, got 99"):
        open_tokens(tmp_path / "a.bin")


def test_a_header_packed_by_hand_opens(tmp_path):
    (tmp_path / "a.bin").write_bytes(header() + b"abc")
    assert open_tokens(tmp_path / "a.bin").ids.tobytes() == b"abc"


@pytest.mark.parametrize(
    ("magic", "version", "dtype", "vocab_size"), [(20240520, 1, np.uint16, 50257), (20240801, 7, np.uint32, 128256)]
)
def test_llm_c_files_open_as_its_writer_makes_them(tmp_path, magic, version, dtype, vocab_size):
    ids = np.array([vocab_size - 1, 0, 7], dtype)
    head = np.zeros(256, np.int32)
    head[:3] = magic, version, len(ids)
    (tmp_path / "a.bin").write_bytes(head.tobytes() + ids.tobytes())
    read = open_tokens(tmp_path / "a.bin", layout="llm.c", n_bytes=11)
    assert_array_equal(read.ids, ids)
    assert (read.vocab_size, read.n_bytes, read.tokenizer_sha256) == (vocab_size, 11, None)
    with pytest.raises(FormatError, match=f"token 0: must lie below the vocabulary size 9, got {vocab_size - 1}"):
        open_tokens(tmp_path / "a.bin", layout="llm.c", vocab_size=9)
    with pytest.raises(FormatError, match=r'say layout = "llm\.c"'):
        open_tokens(tmp_path / "a.bin")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 20240522, "header int 0: magic must be one of .*, got 20240522; that one is a multiple-choice file"),
        (1, 2, "header int 1: version must be 1 for magic 20240520, got 2"),
        (2, -1, "header int 2: count must not be negative, got -1"),
        (2, 4, r"must be 1032 bytes \(1024 \+ 4 tokens × 2\), got 1030: it is cut short"),
        (200, 5, "header int 200: must be 0, got 5"),
    ],
)
def test_each_llm_c_field_that_lies_is_named(tmp_path, place, value, message):
    head = np.zeros(256, np.int32)
    head[:3] = 20240520, 1, 3
    head[place] = value
    (tmp_path / "a.bin").write_bytes(head.tobytes() + bytes(6))
    with pytest.raises(FormatError, match=message):
        open_tokens(tmp_path / "a.bin", layout="llm.c")


def test_a_nanogpt_file_is_bare_uint16_and_must_be_told_its_vocabulary(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\x01\x02\xff\x00")
    read = open_tokens(tmp_path / "a.bin", layout="nanogpt", vocab_size=50257)
    assert (read.ids.tolist(), read.n_bytes) == ([513, 255], None)
    with pytest.raises(FormatError, match="needs vocab_size"):
        open_tokens(tmp_path / "a.bin", layout="nanogpt")
    (tmp_path / "a.bin").write_bytes(b"\x01\x02\xff")
    with pytest.raises(FormatError, match=r"must be 2 bytes .*, got 3: 1 bytes trail"):
        open_tokens(tmp_path / "a.bin", layout="nanogpt", vocab_size=50257)


def test_our_own_header_cannot_be_overruled(tmp_path):
    write_tokens(tmp_path / "a.bin", [1, 2], vocab_size=256, n_bytes=1)
    assert open_tokens(tmp_path / "a.bin", vocab_size=256, n_bytes=1).vocab_size == 256
    with pytest.raises(FormatError, match=r"vocab_size must be what the header says \(256\), got 257"):
        open_tokens(tmp_path / "a.bin", vocab_size=257)
    with pytest.raises(FormatError, match=r"n_bytes must be what the header says \(1\), got 2"):
        open_tokens(tmp_path / "a.bin", n_bytes=2)


def test_a_layout_is_never_guessed(tmp_path):
    with pytest.raises(ValueError, match=r"got 'llmc'; did you mean 'llm\.c'"):
        open_tokens(tmp_path / "a.bin", layout="llmc")


def test_a_missing_file_is_a_sentence_with_its_name(tmp_path):
    with pytest.raises(FormatError, match=r"gone\.bin: must be a readable file, got 'No such file or directory'"):
        open_tokens(tmp_path / "gone.bin")


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        ([-1], {"vocab_size": 256, "n_bytes": 0}, "ids must lie in 0 … 255, got -1 … -1"),
        ([256, 1], {"vocab_size": 256, "n_bytes": 1}, "ids must lie in 0 … 255, got 1 … 256"),
        ([0.5], {"vocab_size": 256, "n_bytes": 0}, "one-dimensional integers, got float64"),
        ([[1]], {"vocab_size": 256, "n_bytes": 0}, r"one-dimensional integers, got int64 of shape \(1, 1\)"),
        ([1, 2], {"vocab_size": 300, "n_bytes": 0}, "n_bytes must be 0 exactly when n < 2"),
        ([1, 2], {"vocab_size": 256, "n_bytes": 2}, "n_bytes must be 1 for 2 byte tokens, got 2"),
        ([1], {"vocab_size": 0, "n_bytes": 0}, r"vocab_size must lie in 1 … 2\*\*32, got 0"),
        ([1], {"vocab_size": 9, "n_bytes": 0, "tokenizer_sha256": "ab"}, "must be 64 hex digits, not all 0, got 'ab'"),
    ],
)
def test_nothing_is_written_that_would_not_open(tmp_path, ids, options, message):
    with pytest.raises(ValueError, match=message):
        write_tokens(tmp_path / "a.bin", ids, **options)
    assert not (tmp_path / "a.bin").exists()


def test_a_text_in_memory_is_one_token_a_byte():
    text = byte_tokens("né".encode(), "greeting")
    assert text.ids.tolist() == [0x6E, 0xC3, 0xA9]
    assert (text.vocab_size, text.n_bytes, text.name) == (256, 2, "greeting")
    assert text.sha256 == hashlib.sha256("né".encode()).hexdigest()
    assert byte_tokens(b"", "nothing").n_bytes == 0
