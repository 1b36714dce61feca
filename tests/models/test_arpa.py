"""ARPA text: read back by hand, and by kenlm."""

import math

import numpy as np
import pytest

from tinyllm.models.arpa import write_arpa
from tinyllm.training.ngram import train


def prose():
    """Real English that every Python carries; its bytes differ between versions, which a comparison does not mind."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics)).encode()


def entries(path):
    """{(words): (log10 p, log10 back-off or None)} and the header's counts."""
    counts, grams = [], {}
    for line in path.read_text().splitlines():
        if line.startswith("ngram "):
            counts.append(int(line.partition("=")[2]))
        elif "\t" in line:
            p, words, *backoff = line.split("\t")
            grams[tuple(words.split(" "))] = (float(p), float(backoff[0]) if backoff else None)
    return counts, grams


def test_the_hand_worked_toy_has_these_entries(tmp_path):
    # "ababc" at order 2, discounts 1/2: the numbers are worked out in test_ngram.py.
    write_arpa(train(b"ababc", order=2, discounts=0.5), tmp_path / "toy.arpa")
    counts, grams = entries(tmp_path / "toy.arpa")
    seen = 1 / 6 + 1 / 512
    assert counts == [256 + 3, 3]
    assert 10 ** np.array(grams["x61",]) == pytest.approx([seen, 1 / 4], rel=1e-6)
    assert 10 ** np.array(grams["x62",]) == pytest.approx([seen, 1 / 2], rel=1e-6)
    assert 10 ** np.array(grams["x63",]) == pytest.approx([seen, 1], rel=1e-6)
    assert 10 ** np.array(grams["x00",]) == pytest.approx([1 / 512, 1], rel=1e-6)
    assert {gram for gram in grams if len(gram) == 2} == {("x61", "x62"), ("x62", "x61"), ("x62", "x63")}
    assert grams["x61", "x62"][1] is None
    assert 10 ** grams["x61", "x62"][0] == pytest.approx(3 / 4 + seen / 4, rel=1e-6)
    assert [grams[word,] for word in ("<unk>", "<s>", "</s>")] == [(-99, None)] * 3


def test_the_file_is_laid_out_as_arpa_with_the_oldest_word_first(tmp_path):
    write_arpa(train(b"\x00AB", order=3, discounts=0.5), tmp_path / "m.arpa")
    lines = (tmp_path / "m.arpa").read_text().splitlines()
    assert lines[:6] == ["\\data\\", "ngram 1=259", "ngram 2=2", "ngram 3=1", "", "\\1-grams:"]
    assert lines[lines.index("\\3-grams:") + 1].endswith("\tx00 x41 x42")
    assert lines[-2:] == ["", "\\end\\"]


def test_a_probability_of_zero_is_written_as_minus_99(tmp_path):
    write_arpa(train(b"ab", order=1, discounts=0.0), tmp_path / "m.arpa")
    assert entries(tmp_path / "m.arpa")[1]["x63",] == (-99, None)


@pytest.mark.parametrize(("order", "min_counts"), [(2, None), (4, [1, 1, 2, 3]), (6, None)])
def test_kenlm_reads_the_file_and_scores_every_byte_alike_within_1e_6_log10(tmp_path, order, min_counts):
    kenlm = pytest.importorskip("kenlm", reason="needs the oracles-cpp extra")
    text = prose()
    model = train(text[:100_000], order=order, min_counts=min_counts)
    write_arpa(model, tmp_path / "m.arpa")
    scored = text[200_000:220_000] + bytes(range(256))
    sentence = " ".join(f"x{byte:02x}" for byte in scored)
    theirs = [
        score for score, _, _ in kenlm.Model(str(tmp_path / "m.arpa")).full_scores(sentence, bos=False, eos=False)
    ]
    ours = -model.nll(np.frombuffer(scored, dtype=np.uint8)) / math.log(10)
    np.testing.assert_allclose(theirs[1:], ours, rtol=0, atol=1e-6)
