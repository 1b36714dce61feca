"""Training and held-out text share no piece of 50 bytes, in both texts and the task; the filter that sees to it."""

from __future__ import annotations

import sys

import pytest

from tinyllm.errors import TinyllmError, UsageError
from tinyllm.texts import cloze_items, load, pydoc, stories
from tinyllm.texts.overlap import joined_apart, windows

ROW = bytes(range(33, 127))


def pieces_of_50(data: bytes) -> set[bytes]:
    """Every 50 bytes, by another road than the code's: all suffixes, cut."""
    view = memoryview(data)
    return {bytes(view[start : start + 50]) for start in range(len(data)) if start + 50 <= len(data)}


@pytest.fixture(scope="module")
def held_out():
    found = pieces_of_50(load("stories", "heldout")) | pieces_of_50(load("pydoc", "heldout"))
    for item in cloze_items():
        found |= pieces_of_50((item["context"] + item["choices"][item["answer"]]).encode())
    return found


@pytest.mark.parametrize("name", ["stories", "pydoc"])
def test_no_50_bytes_of_held_out_text_or_task_are_in_the_training_text(name, held_out):
    train = load(name, "train")
    assert len(train) > 300_000
    shared = [train[i : i + 50] for i in range(len(train) - 49) if train[i : i + 50] in held_out]
    assert shared == []


def test_the_filter_leaves_few_stories_out(held_out):
    length, dropped = 200_000, 0
    _, dropped = joined_apart(stories.whole_stories("stories/train"), held_out, n_bytes=length)
    assert dropped < 0.2 * length / 1000  # a story has some 1,000 bytes; in fact 3 %


def test_the_windows_of_a_text_are_all_its_pieces_of_50_bytes():
    assert windows(ROW[:49]) == set()
    assert windows(ROW[:50]) == {ROW[:50]}
    assert windows(ROW) == pieces_of_50(ROW)
    assert len(windows(ROW)) == 45


def test_a_piece_with_49_bytes_in_common_stays_and_one_with_50_goes():
    held = windows(ROW[:50])
    assert joined_apart([b"!" + ROW[:49] + b"\n\n"], held) == (b"!" + ROW[:49] + b"\n\n", 0)
    assert joined_apart([b"?" + ROW[:50] + b"\n\n"], held) == (b"", 1)


@pytest.mark.parametrize("at", [1, 25, 49])
def test_a_window_that_only_the_join_of_two_pieces_makes_is_kept_out(at):
    text, dropped = joined_apart([ROW[:at], ROW[at:50], b"another"], windows(ROW[:50]))
    assert (text, dropped) == (ROW[:at] + b"another", 1)


def test_the_text_is_cut_at_exactly_the_bytes_asked_for():
    assert joined_apart([b"one\n\n", b"two\n\n", b"three\n\n"], set(), n_bytes=7) == (b"one\n\ntw", 0)


def test_pydoc_holds_out_whole_topics_by_name_on_every_python():
    names = {name for name in pydoc.topics() if pydoc.is_held_out(name)}
    assert 5 <= len(names) <= len(pydoc.topics()) / 3
    # sha256 of the name, first byte modulo 5, as sha256sum prints them: 78 = 120, 25 = 37, 1e = 30
    assert [pydoc.is_held_out(name) for name in ("function", "assert", "try")] == [True, False, True]
    heldout = load("pydoc", "heldout")
    assert 20_000 < len(heldout) <= 32_768
    heldout.decode()  # whole characters
    first = min(names)
    assert heldout.startswith(pydoc.topics()[first].encode()[:32_768])


def test_pydoc_cuts_no_character_in_half(monkeypatch):
    monkeypatch.setattr(pydoc, "topics", lambda: dict.fromkeys(["function"], "\u2026" * 20_000))
    monkeypatch.setattr(pydoc, "is_held_out", lambda _: True)
    assert pydoc.held_out().decode() == "\u2026" * 10_922  # 3 bytes each: 32,766 of 32,768


def test_a_python_without_pydoc_data_is_told_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(TinyllmError, match=r"needs the module pydoc_data\.topics .* or use text 'stories'"):
        pydoc.topics()


def test_an_unknown_text_is_refused_with_the_nearest_known():
    with pytest.raises(UsageError, match=r"got 'storeis'/'train'; did you mean 'stories/train'\?"):
        load("storeis", "train")
    with pytest.raises(UsageError, match=r"got 'pydoc'/'test'"):
        load("pydoc", "test")
