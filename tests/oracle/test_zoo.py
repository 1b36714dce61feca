"""The course text's tests of `tinyllm.eval.zoo` for the families that are language models, from the contract alone.

Checkpoints whose score is known exactly: a uniform bigram is 8 bits per byte; a bigram whose table is not symmetric
tells a transposed reading; each other family is held against its own NLL.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from jsonschema import Draft202012Validator

from tinyllm.errors import CheckpointError
from tinyllm.eval import zoo
from tinyllm.eval.lm import compare, eval_ppl, token_nlls
from tinyllm.eval.zoo import kind_of, lm_token_nlls, load_model, read_config, run_zoo, score_entry, write_report
from tinyllm.formats.manifest import load
from tinyllm.formats.schema import load_schema
from tinyllm.formats.tokens import write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram
from tinyllm.models.gpt import GPT, GPTConfig, load_gpt, save_gpt
from tinyllm.models.ngram import NGramLM, save_ngram
from tinyllm.rng import PCG32, stream
from tinyllm.stats.intervals import mean_ci
from tinyllm.training.ngram import train as train_ngram

TEXT = b"the cat sat on the mat. the dog sat on the log. a cat and a dog sat and sat. " * 3


def write_text(folder, text=TEXT, name="text.bin"):
    write_tokens(folder / name, np.frombuffer(text, np.uint8), vocab_size=256, n_bytes=len(text) - 1)
    return name


def random_gpt(seed=0):
    torch.manual_seed(seed)
    model = GPT(GPTConfig(vocab_size=256, ctx_len=16, n_layer=1, n_head=2, n_embd=16))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 0.4)
    return model.eval()


@pytest.fixture
def small_zoo(tmp_path):
    """A folder with a text and a checkpoint of each language-model family."""
    write_text(tmp_path)
    save_bigram(tmp_path / "uniform", BigramLM(np.zeros((256, 256), np.float32)))
    table = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
    save_bigram(tmp_path / "bigram", BigramLM(table))
    save_ngram(tmp_path / "ngram.safetensors", train_ngram(TEXT[:80], order=3))
    save_gpt(tmp_path / "gpt", random_gpt())
    return tmp_path


def entry(folder, name, directory, **keys):
    return {"name": name, "dir": str(folder / directory), "data": str(folder / "text.bin"), **keys}


def rows_of(*entries, seed=0):
    return run_zoo({"suite": {"name": "test"}, "entry": list(entries)}, PCG32(seed))["rows"]


def test_hand_example_uniform_bigram_is_eight_bits(small_zoo):
    """Section 3: −ln(1/256) for every byte is exactly 8 bits, and the interval has no width."""
    (row,) = rows_of(entry(small_zoo, "uniform", "uniform"))
    assert (row["value"], row["lo"], row["hi"]) == (8.0, 8.0, 8.0)
    assert (row["metric"], row["unit"], row["n"], row["status"]) == ("bpb", "bits/byte", len(TEXT) - 1, "ok")
    assert (row["arch"], row["kind"], row["interval"]) == ("bigram", "lm", "student-t")


def test_a_bigram_reads_its_table_by_row_from_the_byte_before(tmp_path):
    """ln 4 for "b" after "a", ln 2 for "a" after "b", by a table that transposed would say the reverse."""
    table = np.zeros((256, 256))
    table[:] = -np.inf
    table[:, 0] = 0
    table[ord("a"), [0, ord("b")]] = np.log([3 / 4, 1 / 4])
    table[ord("b"), [0, ord("a")]] = np.log([1 / 2, 1 / 2])
    save_bigram(tmp_path / "bigram", BigramLM(np.where(np.isfinite(table), table, -1e4)))
    write_text(tmp_path, b"abab")
    (row,) = rows_of(entry(tmp_path, "bigram", "bigram", metric="nll"))
    assert row["value"] == pytest.approx((2 * math.log(4) + math.log(2)) / 3, rel=1e-6)
    assert row["unit"] == "nats/token"


def by_family(name, model, ids):
    """Each family's own NLL, without the zoo."""
    if name == "bigram":
        logits = model.table.astype(np.float64)
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return -log_p[ids[:-1], ids[1:]]
    if name == "ngram":
        return model.nll(ids)
    return token_nlls(model, ids, 16, 8)


@pytest.mark.parametrize("name", ["bigram", "ngram", "gpt"])
def test_zoo_language_model_rows_are_each_familys_own_nll(small_zoo, name):
    """bpb and its interval from the family's own NLLs: total over the bytes, and Student's t in bits."""
    path = small_zoo / ("ngram.safetensors" if name == "ngram" else name)
    model = {"bigram": load_model, "ngram": NGramLM.load, "gpt": load_gpt}[name](path)
    ids = np.frombuffer(TEXT, np.uint8).astype(np.int64)
    nlls = by_family(name, model, ids)
    assert nlls.shape == (len(TEXT) - 1,)
    (row,) = rows_of(entry(small_zoo, name, path.name))
    bits = nlls / math.log(2)
    lo, hi = mean_ci(bits)
    assert row["value"] == pytest.approx(bits.sum() / (len(TEXT) - 1), rel=1e-12)
    assert (row["lo"], row["hi"]) == pytest.approx((lo, hi), rel=1e-9)
    assert row["settings"] == ({"ctx_len": 16, "stride": 8} if name == "gpt" else {})
    np.testing.assert_allclose(lm_token_nlls(model, ids), nlls, rtol=0, atol=1e-12)


def test_a_gpt_row_is_strided_as_the_entry_says(small_zoo):
    ids = np.frombuffer(TEXT, np.uint8).astype(np.int64)
    want = eval_ppl(load_gpt(small_zoo / "gpt"), ids, 10, 3, n_bytes=len(TEXT) - 1)
    (row,) = rows_of(entry(small_zoo, "gpt", "gpt", ctx_len=10, stride=3))
    assert (row["value"], row["lo"], row["hi"]) == (want["bpb"], want["bpb_lo"], want["bpb_hi"])
    assert row["settings"] == {"ctx_len": 10, "stride": 3}
    model = load_gpt(small_zoo / "gpt")
    np.testing.assert_array_equal(lm_token_nlls(model, ids, 10, 3), token_nlls(model, ids, 10, 3))


def test_windows_that_make_no_sense_for_a_family_are_refused(small_zoo):
    ids = np.arange(20)
    with pytest.raises(ValueError, match="at most the model's 16, got 17"):
        lm_token_nlls(load_gpt(small_zoo / "gpt"), ids, 17)
    with pytest.raises(ValueError, match="got 8 and None for BigramLM, which scores whole texts"):
        lm_token_nlls(load_model(small_zoo / "bigram"), ids, 8)
    with pytest.raises(ValueError, match="does not say how long its context is"):
        lm_token_nlls(lambda batch: np.zeros((*batch.shape, 4)), [0, 1, 2])


@pytest.mark.parametrize(("metric", "unit"), [("nll", "nats/token"), ("ppl", "perplexity"), ("bpb", "bits/byte")])
def test_a_row_can_be_in_any_metric_of_a_text(small_zoo, metric, unit):
    ids = np.frombuffer(TEXT, np.uint8).astype(np.int64)
    want = eval_ppl(load_gpt(small_zoo / "gpt"), ids, 16, 8, n_bytes=len(TEXT) - 1)
    (row,) = rows_of(entry(small_zoo, "gpt", "gpt", metric=metric))
    assert (row["value"], row["lo"], row["hi"]) == (want[metric], want[f"{metric}_lo"], want[f"{metric}_hi"])
    assert row["unit"] == unit


def test_zoo_report_validates_against_the_schema(small_zoo, tmp_path):
    """Schema, manifest order whatever the names, the seed, the base key; written and read back alike."""
    names = ["gpt", "uniform", "bigram"]
    manifest = {"suite": {"name": "three"}, "entry": [entry(small_zoo, name, name) for name in names]}
    report = run_zoo(manifest, PCG32(11), seed=11)
    Draft202012Validator(load_schema("eval-results")).validate(report)
    assert [row["name"] for row in report["rows"]] == names
    assert (report["suite"], report["seed"], report["complete"]) == ("three", 11, True)
    assert report["run"]["base_key"] == f"{PCG32(11).next_u64():016x}"
    write_report(report, tmp_path / "out" / "report.json")
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == json.loads(json.dumps(report))


def test_without_a_stream_the_base_key_comes_from_the_seed(small_zoo):
    manifest = {"entry": [entry(small_zoo, "uniform", "uniform")]}
    assert run_zoo(manifest, None, seed=5)["run"]["base_key"] == f"{PCG32(5).next_u64():016x}"


def test_relative_paths_are_relative_to_the_manifest(small_zoo, monkeypatch):
    (small_zoo / "zoo.toml").write_text('[[entry]]\nname = "u"\ndir = "uniform"\ndata = "text.bin"\nmax = 8\n')
    monkeypatch.chdir(small_zoo.parent)
    report = run_zoo(small_zoo / "zoo.toml", PCG32(0))
    assert report["suite"] == "zoo"
    assert report["rows"][0]["status"] == "ok"
    assert report["rows"][0]["gate"]["answer"] == "pass"


def test_zoo_reports_failures_as_rows(small_zoo):
    """A missing directory is an error row, an unknown family a skipped one, and the healthy row is scored."""
    (small_zoo / "rwkv").mkdir()
    (small_zoo / "rwkv" / "config.json").write_text('{"tl_arch": "rwkv"}')
    healthy = entry(small_zoo, "healthy", "uniform")
    missing, unknown, after = rows_of(
        entry(small_zoo, "missing", "nowhere", max=3), entry(small_zoo, "unknown", "rwkv"), healthy
    )
    assert missing["status"] == "error"
    assert missing["error"]["type"] == "CheckpointError"
    assert "nowhere" in missing["error"]["message"]
    assert missing["gate"]["answer"] == "not-evaluated"
    assert unknown["status"] == "skipped"
    assert "unknown family 'rwkv'" in unknown["error"]["message"]
    assert unknown["arch"] == "rwkv"
    for row in (missing, unknown):
        assert (row["value"], row["lo"], row["hi"], row["n"]) == (None, None, None, None)
    assert after == rows_of(healthy)[0]
    assert after["value"] == 8.0


@pytest.mark.parametrize(
    ("keys", "kind", "message"),
    [
        ({"dta": "x"}, "FormatError", "unknown key 'dta'; did you mean 'data'"),
        ({"metric": "f1"}, "ValueError", "must be one of bpb, nll, ppl, got 'f1'"),
        ({"ctx_len": 8}, "ValueError", "which scores whole texts"),
        ({"max_len": 8}, "FormatError", "must not stand beside data, which it says nothing about, got 8"),
        ({"data": "missing.bin"}, "FormatError", "missing.bin"),
    ],
)
def test_an_entrys_own_fault_is_its_row(small_zoo, keys, kind, message):
    broken = {**entry(small_zoo, "broken", "bigram"), **keys}
    row, healthy = rows_of(broken, entry(small_zoo, "uniform", "uniform"))
    assert (row["status"], row["error"]["type"]) == ("error", kind)
    assert message in row["error"]["message"]
    assert healthy["status"] == "ok"


def test_a_message_names_paths_from_the_manifest_wherever_the_run_was_started(small_zoo, monkeypatch):
    entries = ('name = "gone"\ndir = "nowhere"\ndata = "text.bin"', 'name = "typo"\ndir = "uniform"\ndta = "text.bin"')
    (small_zoo / "zoo.toml").write_text("".join(f"[[entry]]\n{keys}\n" for keys in entries))
    found = []
    for folder, manifest in ((small_zoo.parent, small_zoo / "zoo.toml"), (small_zoo, "zoo.toml")):
        monkeypatch.chdir(folder)
        found.append(run_zoo(manifest, PCG32(0))["rows"])
    assert found[0] == found[1]
    gone, typo = (row["error"]["message"] for row in found[0])
    assert gone.startswith("nowhere: ")
    assert typo.startswith("zoo.toml: entry[1] 'typo': unknown key 'dta'")


@pytest.mark.parametrize("key", ["ctx_len", "stride"])
def test_windows_beside_choices_are_an_error_and_never_ignored(small_zoo, key):
    choices = {"name": "c", "dir": str(small_zoo / "gpt"), "choices": write_choices(small_zoo)}
    (row,) = rows_of({**choices, key: 8})
    assert f"entry[0].{key} of 'c': must not stand beside choices" in row["error"]["message"]


@pytest.mark.parametrize("config", [{"tl_arc": "bigram"}, {}, {"tl_arch": 3}, {"tl_arch": None}, {"tl_arch": ""}])
def test_a_config_that_names_no_family_is_an_error_and_never_skipped(small_zoo, config):
    (small_zoo / "bigram" / "config.json").write_text(json.dumps(config))
    (row,) = rows_of(entry(small_zoo, "b", "bigram"))
    assert (row["status"], row["error"]["type"]) == ("error", "CheckpointError")
    assert "bigram: config: must name its family in tl_arch" in row["error"]["message"]
    with pytest.raises(CheckpointError, match="tl_arch"):
        load_model(small_zoo / "bigram")


@pytest.mark.parametrize("text", [b"", b"a"])
def test_a_text_of_fewer_than_two_tokens_says_so_by_name(small_zoo, text):
    write_tokens(small_zoo / "short.bin", np.frombuffer(text, np.uint8), vocab_size=256, n_bytes=0)
    (row,) = rows_of({**entry(small_zoo, "b", "bigram"), "data": str(small_zoo / "short.bin")})
    assert f"short.bin: a text must have at least 2 tokens, got {len(text)}" in row["error"]["message"]


def test_a_text_of_unknown_bytes_says_what_to_give(small_zoo):
    (small_zoo / "raw.bin").write_bytes(np.arange(50, dtype=np.uint16).tobytes())
    raw = {
        **entry(small_zoo, "b", "bigram"),
        "data": str(small_zoo / "raw.bin"),
        "layout": "nanogpt",
        "vocab_size": 256,
    }
    none, some, other = rows_of(raw, {**raw, "name": "some", "n_bytes": 49}, {**raw, "name": "other", "metric": "nll"})
    assert "give n_bytes, or ask for metric 'nll' or 'ppl'" in none["error"]["message"]
    assert some["status"] == other["status"] == "ok"


def test_a_text_of_another_tokenizer_is_not_read_as_bytes(small_zoo):
    ids = np.frombuffer(TEXT, np.uint8)
    write_tokens(small_zoo / "bpe.bin", ids, vocab_size=256, n_bytes=900, tokenizer_sha256="ab" * 32)
    (row,) = rows_of({**entry(small_zoo, "b", "bigram"), "data": str(small_zoo / "bpe.bin")})
    assert "a model of bytes needs a text of bytes, got one of tokenizer abababababab" in row["error"]["message"]


def test_a_max_len_beyond_the_models_context_is_refused(small_zoo):
    keys = {"name": "c", "dir": str(small_zoo / "gpt"), "choices": write_choices(small_zoo), "max_len": 30}
    assert "max_len must be at most the model's context of 16, got 30" in rows_of(keys)[0]["error"]["message"]


def test_a_context_of_one_token_is_refused_as_what_it_is(small_zoo):
    (row,) = rows_of(entry(small_zoo, "g", "gpt", ctx_len=1))
    assert "ctx_len must be at least 2" in row["error"]["message"]


def test_a_perplexity_of_one_token_has_no_interval_at_either_end(small_zoo):
    write_text(small_zoo, b"ab", "two.bin")
    (row,) = rows_of({**entry(small_zoo, "u", "uniform", metric="ppl"), "data": str(small_zoo / "two.bin")})
    assert (row["lo"], row["hi"]) == (None, None)


def test_an_exception_of_a_loader_is_its_row_too(small_zoo, monkeypatch):
    def explode(path):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(zoo, "load_model", explode)
    (row,) = rows_of(entry(small_zoo, "bigram", "bigram"))
    assert (row["status"], row["error"]) == ("error", {"type": "ZeroDivisionError", "message": "inside"})
    assert (row["arch"], row["kind"]) == ("bigram", "lm")


def test_a_text_of_more_tokens_than_the_model_knows_is_an_error_row(small_zoo):
    save_bigram(small_zoo / "small", BigramLM(np.zeros((128, 128), np.float32)))
    (row,) = rows_of(entry(small_zoo, "small", "small"))
    assert "got 256 for the text and 128 for the model" in row["error"]["message"]


def test_one_scored_token_has_a_value_and_a_null_interval(small_zoo):
    write_text(small_zoo, b"ab", "two.bin")
    (row,) = rows_of({**entry(small_zoo, "uniform", "uniform"), "data": str(small_zoo / "two.bin")})
    assert (row["value"], row["lo"], row["hi"], row["n"]) == (8.0, None, None, 1)


def test_an_empty_text_is_an_error_row_and_never_a_zero(small_zoo):
    write_tokens(small_zoo / "empty.bin", np.zeros(0, np.uint8), vocab_size=256, n_bytes=0)
    for name in ("bigram", "gpt"):
        (row,) = rows_of({**entry(small_zoo, name, name), "data": str(small_zoo / "empty.bin")})
        assert row["status"] == "error"


def test_an_infinite_nll_is_an_error_row_that_names_the_token(tmp_path):
    table = np.full((256, 256), -np.inf, np.float32)
    table[:, ord("a")] = 0
    write_text(tmp_path, b"aaaba")
    model = BigramLM(table)
    assert model.nll(np.frombuffer(b"aaaba", np.uint8)).tolist() == [0, 0, math.inf, 0]

    save_bigram(tmp_path / "bigram", BigramLM(np.zeros((256, 256), np.float32)))
    (found,) = load({"entry": [entry(tmp_path, "b", "bigram")]}).entries
    row = zoo.evaluate_entry(found, PCG32(0), load=lambda _: model).row
    assert row["status"] == "error"
    assert "got inf for token 3" in row["error"]["message"]


def test_fault_row_18_a_model_worse_than_uniform_is_said_to_be(small_zoo):
    good, bad = rows_of(entry(small_zoo, "uniform", "uniform"), entry(small_zoo, "gpt", "gpt"))
    assert good["notes"]["worse_than_uniform"] is False
    assert bad["value"] > 8
    assert bad["notes"]["worse_than_uniform"] is True


def test_score_entry_is_the_row_of_run_zoo(small_zoo):
    manifest = {"entry": [entry(small_zoo, "gpt", "gpt", max=99)]}
    (found,) = load(manifest).entries
    key = PCG32(0).next_u64()
    assert score_entry(found, stream(key, "gpt")) == run_zoo(manifest, PCG32(0))["rows"][0]


def test_rows_do_not_depend_on_their_neighbours_or_their_order(small_zoo):
    a, b = entry(small_zoo, "bigram", "bigram"), entry(small_zoo, "gpt", "gpt")
    assert rows_of(a, b) == rows_of(b, a)[::-1]
    assert rows_of(a) == rows_of(a, b)[:1]


def test_scoring_leaves_the_thread_count_as_it_was(small_zoo):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rows_of(entry(small_zoo, "gpt", "gpt"))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# --- tasks


def write_choices(folder):
    rows = [{"context": "ab" * i + "a", "choices": ["b", "zz"], "answer": i % 2} for i in range(10)]
    (folder / "cloze.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "cloze.jsonl")


def test_a_choices_entry_is_a_wilson_accuracy_with_what_a_reader_should_know(small_zoo):
    """The uniform bigram gives "b" 8 bits and "zz" 16: acc answers the first, acc_norm ties and so does too."""
    path = write_choices(small_zoo)
    keys = {"name": "cloze", "dir": str(small_zoo / "uniform"), "choices": path}
    (row,) = rows_of(keys)
    assert (row["task"], row["metric"], row["value"], row["n"]) == ("cloze", "acc", 0.5, 10)
    z = 1.959963984540054
    centre, half = 0.5, z / (1 + z * z / 10) * math.sqrt(0.25 / 10 + z * z / 400)
    assert (row["lo"], row["hi"]) == pytest.approx((centre - half, centre + half), rel=1e-12)
    assert row["interval"] == "wilson"
    assert row["notes"] == {"n_merged": 0, "n_truncated": 0, "predicted": [10, 0], "constant": True}
    assert row["settings"] == {"max_len": None, "bos": False}
    assert rows_of({**keys, "metric": "acc_norm"})[0]["value"] == 0.5


def test_a_choices_entry_on_a_gpt_cuts_contexts_to_its_length_and_counts_them(small_zoo):
    (row,) = rows_of({"name": "cloze", "dir": str(small_zoo / "gpt"), "choices": write_choices(small_zoo)})
    assert row["settings"]["max_len"] == 16
    # context 2i + 1 tokens, the longer choice 2: beyond 16 from i = 7 on
    assert row["notes"]["n_truncated"] == 3
    (short,) = rows_of({"name": "c", "dir": str(small_zoo / "gpt"), "choices": write_choices(small_zoo), "max_len": 5})
    assert short["notes"]["n_truncated"] == 8


def test_fault_row_21_a_space_at_a_contexts_end_makes_another_task(small_zoo):
    """ "A:" and "A: " are other items: the row's data differs, and so do the ids, so that no comparison mixes them."""
    paths = []
    for name, context in (("bare", "A:"), ("spaced", "A: ")):
        paths.append(small_zoo / f"{name}.jsonl")
        rows = [{"context": context, "choices": ["x", "y"], "answer": 0}]
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    entries = [{"name": p.stem, "dir": str(small_zoo / "bigram"), "choices": str(p)} for p in paths]
    (bare, bare_result), (spaced, spaced_result) = (
        zoo.evaluate_entry(found, PCG32(0)) for found in load({"entry": entries}).entries
    )
    assert bare["data"]["sha256"] != spaced["data"]["sha256"]
    with pytest.raises(ValueError, match="same items in the same order"):
        compare(bare_result, spaced_result)


def test_fault_row_9_the_windows_of_a_row_are_stated_and_matter_to_a_gpt(small_zoo):
    """Same text at another context: the same tokens are scored, with other numbers, and the row says which it was."""
    long, short = rows_of(entry(small_zoo, "a", "gpt"), entry(small_zoo, "b", "gpt", ctx_len=4, stride=2))
    assert long["n"] == short["n"]
    assert long["value"] != short["value"]
    assert (long["settings"], short["settings"]) == ({"ctx_len": 16, "stride": 8}, {"ctx_len": 4, "stride": 2})


def test_a_task_for_a_model_without_a_tokenizer_is_an_error_row(small_zoo):
    save_bigram(small_zoo / "small", BigramLM(np.zeros((128, 128), np.float32)))
    (row,) = rows_of({"name": "c", "dir": str(small_zoo / "small"), "choices": write_choices(small_zoo)})
    assert "needs a tokenizer; BigramLM has none, and a vocabulary of 128" in row["error"]["message"]


# --- dispatch


def test_kind_of_knows_families_and_hugging_face_folders():
    assert kind_of({"tl_arch": "bigram"}) == kind_of({"tl_arch": "gpt"}) == kind_of({"model_type": "llama"}) == "lm"
    assert kind_of({"tl_arch": "rwkv"}) is None
    assert kind_of({"tl_arch": "arpa"}) is None  # a module of the room, and no family
    assert kind_of({}) is None


def test_load_model_dispatches_on_tl_arch_also_in_the_ngrams_metadata(small_zoo):
    assert isinstance(load_model(small_zoo / "bigram"), BigramLM)
    assert isinstance(load_model(str(small_zoo / "gpt")), GPT)
    assert isinstance(load_model(small_zoo / "ngram.safetensors"), NGramLM)
    assert read_config(small_zoo / "ngram.safetensors")["tl_arch"] == "ngram"
    assert read_config(small_zoo / "gpt")["ctx_len"] == 16


def test_zoo_has_the_contracts_names():
    assert set(zoo.__all__) >= {
        "read_config", "kind_of", "load_model", "lm_token_nlls", "score_entry", "run_zoo", "write_report",
    }  # fmt: skip
    assert all(hasattr(zoo, name) for name in zoo.__all__)
