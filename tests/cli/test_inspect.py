"""``tinyllm inspect REPORT ROW [ITEM]``: the numbers it shows are the row's, and what is not as it was is said."""

import json
import math
import re
import shutil

import numpy as np
import pytest
from tests.plugin.toys import entry

from tinyllm.cli import main
from tinyllm.eval.lm import ByteTokenizer, score_choices, token_nlls
from tinyllm.eval.zoo import load_model
from tinyllm.formats.report import read_items, write_items
from tinyllm.formats.tokens import write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram

ROWS = (
    entry("gpt", "gpt", ctx_len=16, stride=5)
    + entry("half", "half")
    + entry("cloze", "half", choices="c.jsonl")
    + entry("gpt-cloze", "gpt", choices="c.jsonl", metric="acc_norm")
    + entry("broken", "broken")
)


@pytest.fixture(scope="session")
def run_of_rows(zoo_files, tmp_path_factory):
    """A folder in which ROWS were run: its evals/zoo.toml and its eval-report."""
    folder = tmp_path_factory.mktemp("run")
    shutil.copytree(zoo_files, folder / "evals")
    (folder / "evals/zoo.toml").write_text(ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["eval", "--suite", "zoo"]) == 1
    return folder


@pytest.fixture
def ran(here, run_of_rows):
    """The working directory, with a run of ROWS in eval-report."""
    shutil.copytree(run_of_rows / "eval-report", here / "eval-report")
    shutil.copy(run_of_rows / "evals/zoo.toml", here / "evals/zoo.toml")
    return here


@pytest.fixture
def looked(tinyllm, ran):
    """``looked(row, item)``: what inspect says of it as JSON; it must say that nothing has changed."""

    def look(*args) -> dict:
        done = tinyllm("inspect", "eval-report", *args, "--json")
        assert (done.status, done.err) == (0, "")
        found = json.loads(done.out)
        assert found["changes"] == []
        return found

    return look


def replace(path, text):
    """Write a new file: the toy zoo's are links to those of every other test."""
    path.unlink()
    path.write_text(text)


def stored(folder, row) -> np.ndarray:
    return read_items(folder / "eval-report/items.safetensors")[row][0]


@pytest.mark.parametrize("stretch", [(1, 199), (90, 95), (15, 16), (199, 199), (1, 1)])
@pytest.mark.parametrize("row", ["gpt", "half"])
def test_a_texts_log_probabilities_are_the_rows_own_to_the_bit(looked, ran, row, stretch):
    first, last = stretch
    shown = looked(row, f"{first}-{last}")
    assert [token["position"] for token in shown["tokens"]] == list(range(first, last + 1))
    assert [-token["log_p"] for token in shown["tokens"]] == stored(ran, row)[first - 1 : last].tolist()
    assert shown["stored"] == stored(ran, row)[first - 1 : last].tolist()


def test_a_whole_texts_log_probabilities_add_up_to_the_rows_value(looked, ran):
    total = math.fsum(token["log_p"] for token in looked("gpt", "1-199")["tokens"])
    (row,) = (row for row in json.loads((ran / "eval-report/report.json").read_text())["rows"] if row["name"] == "gpt")
    assert -total / 199 / math.log(2) == pytest.approx(row["value"], rel=1e-14)
    nlls = token_nlls(load_model(ran / "evals/gpt"), np.frombuffer(b"xy" * 100, np.uint8), 16, 5)
    assert -total == pytest.approx(nlls.sum(), rel=1e-14)


def test_a_token_is_shown_with_its_id_its_text_and_what_comes_before_it(looked):
    shown = looked("half", "7")
    assert shown["before"] == repr("xyxyxyx")
    assert shown["tokens"] == [{"position": 7, "id": ord("y"), "text": "'y'", "log_p": pytest.approx(-math.log(510))}]


@pytest.mark.parametrize(("row", "model"), [("cloze", "half"), ("gpt-cloze", "gpt")])
@pytest.mark.parametrize("index", [0, 3, 39])
def test_a_choices_log_probabilities_add_up_to_its_score(looked, ran, row, model, index):
    shown = looked(row, str(index))
    assert shown["score"] == shown["stored"] == stored(ran, row)[index]
    lm, context = load_model(ran / "evals" / model), f"q{index}"
    for per_byte in (False, True):
        scores = score_choices(lm, ByteTokenizer(), context, ["x", "y"], normalize=per_byte)
        key = "per_byte" if per_byte else "total"
        assert [choice[key] for choice in shown["choices"]] == scores.tolist()
    for choice in shown["choices"]:
        assert math.fsum(token["log_p"] for token in choice["tokens"]) == choice["total"]
    assert shown["chosen"] == scores.argmax()
    assert (shown["chosen"] == shown["answer"]) == shown["score"]


def test_the_printed_log_probabilities_add_up_to_the_printed_sum(tinyllm, ran):
    replace(ran / "evals/c.jsonl", '{"context": "ab", "choices": ["xyz", "xx"], "answer": 0}\n')
    tinyllm("eval", "--suite", "zoo")
    out = tinyllm("inspect", "eval-report", "gpt-cloze", "0").out
    _, *choices = out.split("\nchoice ")
    assert len(choices) == 2
    for choice, length in zip(choices, (3, 2), strict=True):
        total, per_byte = map(float, re.search(r"sum (\S+), per byte (\S+)", choice).groups())
        shown = [float(line.split()[-1]) for line in choice.splitlines() if re.match(r" +\d+ +\d+ +'", line)]
        assert len(shown) == length
        assert sum(shown) == pytest.approx(total, abs=length * 1e-6)
        assert per_byte == pytest.approx(total / length, abs=2e-6)


def test_an_item_by_hand(tinyllm, ran):
    # half gives x 1/2 and every other byte 1/510
    done = tinyllm("inspect", "eval-report", "cloze", "3")
    assert (done.status, done.err) == (0, "")
    heading, item, context, *choices, chosen = done.out.splitlines()
    assert heading == "cloze: bigram on c, bos False: acc 0.7500, n = 40"
    assert re.fullmatch(r"item 3:[0-9a-f]{12} \(line 4\)", item)
    assert context == "context 'q3'"
    assert choices == [
        "choice 0 'x': sum -0.693147, per byte -0.693147",
        "    after 2 context tokens",
        " position      id  token               ln p",
        "        2     120  'x'            -0.693147",
        "choice 1 'y': sum -6.234411, per byte -6.234411",
        "    after 2 context tokens",
        " position      id  token               ln p",
        "        2     121  'y'            -6.234411",
    ]
    assert chosen == "chosen: 0 'x': wrong, the answer is 1; score 0, as in the report"


def test_a_cut_context_is_shown_as_the_model_read_it(tinyllm, ran):
    replace(ran / "evals/c.jsonl", json.dumps({"context": "q" * 40 + "r", "choices": ["xy"], "answer": 0}) + "\n")
    tinyllm("eval", "--suite", "zoo")
    (choice,) = json.loads(tinyllm("inspect", "eval-report", "gpt-cloze", "0", "--json").out)["choices"]
    assert choice["context_ids"] == [*b"q" * 29, *b"r"]  # 32 tokens of context, two of them the choice's
    assert (choice["truncated"], choice["read"]) == (11, "q" * 29 + "r")
    lines = tinyllm("inspect", "eval-report", "gpt-cloze", "0").out.splitlines()
    assert lines[4:6] == ["    after 30 context tokens, 11 cut from the left", f"    read: {'q' * 29 + 'r'!r}"]


def test_fault_row_62_a_probability_of_zero_is_null_in_json_and_minus_infinity_for_people(tinyllm, ran):
    (ran / "evals/models").mkdir()
    (ran / "evals/models/never.py").write_text(
        "import numpy as np\nARCH, KIND = 'never', 'lm'\n"
        "class Never:\n    vocab_size = 256\n"
        "    def __call__(self, ids):\n"
        "        logits = np.zeros((*ids.shape, 256))\n        logits[..., ord('y')] = -np.inf\n        return logits\n"
        "def load_never(path): return Never()\n"
    )
    shutil.copytree(ran / "evals/half", ran / "evals/never")
    replace(ran / "evals/never/config.json", '{"tl_arch": "never"}')
    (ran / "evals/zoo.toml").write_text(entry("cloze", "never", choices="c.jsonl"))
    assert tinyllm("eval", "--suite", "zoo").status == 0
    done = tinyllm("inspect", "eval-report", "cloze", "0", "--json")
    x, y = json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))["choices"]
    assert (y["total"], y["per_byte"], y["tokens"][0]["log_p"]) == (None, None, None)
    assert x["total"] == pytest.approx(-math.log(255))
    assert "choice 1 'y': sum -inf, per byte -inf" in tinyllm("inspect", "eval-report", "cloze", "0").out


def test_without_an_item_the_worst_are_listed_and_nothing_is_scored(tinyllm, ran, monkeypatch):
    monkeypatch.setattr("tinyllm.scoring.forward.logits", lambda *_: pytest.fail("scored"))
    lines = tinyllm("inspect", "eval-report", "cloze", "--show", "11").out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["0.0000"] * 10 + ["1.0000"]
    assert re.fullmatch(r"   0\.0000  3:[0-9a-f]{12} +'q3' → 'y'", lines[2])
    found = json.loads(tinyllm("inspect", "eval-report", "gpt", "--show", "3", "--json").out)["items"]
    nlls = stored(ran, "gpt")
    assert [line["score"] for line in found] == sorted(nlls, reverse=True)[:3]
    assert [nlls[int(line["item"]) - 1] for line in found] == [line["score"] for line in found]


@pytest.mark.parametrize("which", ["7", "7:", "FULL"])
def test_an_item_is_named_by_id_by_its_beginning_or_by_index(looked, ran, which):
    ids = read_items(ran / "eval-report/items.safetensors")["cloze"][1]
    shown = looked("cloze", ids[7] if which == "FULL" else which)
    assert (shown["id"], shown["line"]) == (ids[7], 8)


def test_an_id_of_the_files_own_comes_before_an_index(tinyllm, ran):
    items = [{"context": "a", "choices": ["x"], "answer": 0, "id": name} for name in ("1", "0", "10")]
    replace(ran / "evals/c.jsonl", "".join(json.dumps(item) + "\n" for item in items))
    tinyllm("eval", "--suite", "zoo")
    lines = [json.loads(tinyllm("inspect", "eval-report", "cloze", which, "--json").out)["line"] for which in "012"]
    assert lines == [2, 1, 3]


def test_fault_row_57_other_weights_are_said_and_are_exit_status_1(tinyllm, ran):
    table = np.zeros((256, 256), np.float32)
    save_bigram(ran / "half-again", BigramLM(table))
    for file in (ran / "half-again").iterdir():
        (ran / "evals/half" / file.name).unlink()
        file.rename(ran / "evals/half" / file.name)
    done = tinyllm("inspect", "eval-report", "half", "7")
    assert done.status == 1
    assert re.fullmatch(
        r"half: the checkpoint is not the one that was scored: "
        r"sha256 [0-9a-f]{12}… in the report and [0-9a-f]{12}… on disk\n",
        done.err,
    )
    assert "        7     121  'y'            -5.545177" in done.out  # uniform now, and shown as it is
    assert done.out.endswith("over 1 token, off by up to 0.69 nats\n")  # ln 510 − ln 256


def test_fault_row_57_other_data_are_said_and_are_exit_status_1(tinyllm, ran):
    (ran / "evals/t.bin").unlink()
    write_tokens(ran / "evals/t.bin", np.frombuffer(b"xz" * 100, np.uint8), vocab_size=256, n_bytes=199)
    done = tinyllm("inspect", "eval-report", "half", "7")
    assert done.status == 1
    assert done.err.startswith("half: the data is not the one that was scored: sha256 ")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"stride": 6, "ctx_len": 16}, "stride is not the row's: 5 in the report, 6 now"),
        ({"stride": 5, "ctx_len": 8}, "ctx_len is not the row's: 16 in the report, 8 now"),
        (
            {"stride": 5, "ctx_len": 16, "metric": "nll"},
            "the metric is not the row's: 'bpb' in the report, 'nll' in the manifest",
        ),
    ],
)
def test_fault_row_57_another_setting_in_the_manifest_is_said_and_is_exit_status_1(tinyllm, ran, changed, sentence):
    (ran / "evals/zoo.toml").write_text(entry("gpt", "gpt", **changed))
    done = tinyllm("inspect", "eval-report", "gpt", "7")
    assert (done.status, done.err) == (1, f"gpt: {sentence}\n")


def test_a_number_that_is_not_the_stored_one_is_exit_status_1(tinyllm, ran):
    report = ran / "eval-report"
    ids = read_items(report / "items.safetensors")["cloze"][1]
    items = read_items(report / "items.safetensors")
    flipped = items["cloze"][0].copy()
    right = int(np.flatnonzero(flipped)[0])
    flipped[3], flipped[right] = 1, 0  # two items, so that the row's value is still that of its items
    write_items(report / "items.safetensors", items | {"cloze": (flipped, ids)})
    done = tinyllm("inspect", "eval-report", "cloze", "3")
    assert done.status == 1
    assert done.out.endswith("wrong, the answer is 1; score 0, 1 in the report\n")


def test_a_row_that_could_not_be_scored_says_why_and_is_exit_status_1(tinyllm, ran):
    done = tinyllm("inspect", "eval-report", "broken")
    assert done.status == 1
    assert done.out.startswith("broken: bigram on t: error: CheckpointError: broken: must hold model.safetensors")
    assert done.err.startswith("broken: cannot be scored again: ")


def test_an_error_rows_items_can_be_looked_at_where_they_can_be_scored(tinyllm, ran):
    # gpt's context is 32 tokens: the second item's choice alone does not fit, and the row is an error
    items = [{"context": "q", "choices": [choice], "answer": 0} for choice in ("x", "x" * 40)]
    replace(ran / "evals/c.jsonl", "".join(json.dumps(item) + "\n" for item in items))
    tinyllm("eval", "--suite", "zoo")
    done = tinyllm("inspect", "eval-report", "gpt-cloze", "0")
    assert done.status == 0
    assert done.out.endswith("right; score 1, none in the report\n")
    done = tinyllm("inspect", "eval-report", "gpt-cloze", "1")
    assert done.status == 1
    assert "has 40 tokens and does not fit into max_len=32" in done.err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("eval-reports", "gpt"), "eval-reports: must be a readable file, got 'No such file or directory'"),
        (("eval-report", "gtp"), "eval-report has no row 'gtp'; did you mean 'gpt'?"),
        (("eval-report", "gpt", "0"), "tokens 1 to 199 of this text are scored, got '0'"),
        (("eval-report", "gpt", "5-200"), "tokens 1 to 199 of this text are scored, got '5-200'"),
        (("eval-report", "gpt", "7-5"), "tokens 1 to 199 of this text are scored, got '7-5'"),
        (("eval-report", "gpt", "x"), "an item of a text is a token's number or FROM-TO, got 'x'"),
        (("eval-report", "cloze", "40"), "no item has the id '40'; there are 40, from 0:*"),
        (("eval-report", "cloze", "1:zz"), "no item has the id '1:zz'; there are 40, from 0:*"),
        (("eval-report", "cloze", "--show", "0"), "--show must be at least 1, got 0"),
        (("eval-report", "gpt", "--manifest", "no.toml"), "no.toml: the manifest must be a readable file, *"),
    ],
)
def test_what_was_asked_wrongly_is_exit_status_4_and_one_line(refused, ran, args, sentence):
    line = refused("inspect", *args)
    assert line.startswith(f"tinyllm: {sentence.removesuffix('*')}")
    assert sentence.endswith("*") or line == f"tinyllm: {sentence}"


def test_a_manifest_that_is_no_longer_there_can_be_named(tinyllm, refused, ran):
    (ran / "evals/zoo.toml").rename(ran / "evals/zoo2.toml")
    line = refused("inspect", "eval-report", "half", "7")
    assert line == (
        "tinyllm: the manifest that eval-report names must be a file, got 'evals/zoo.toml'; "
        "run from the folder that the run was started in, or say --manifest PATH"
    )
    assert tinyllm("inspect", "eval-report", "half", "7", "--manifest", "evals/zoo2.toml").status == 0


def test_an_entry_that_is_no_longer_in_the_manifest_is_refused(refused, ran):
    (ran / "evals/zoo.toml").write_text(entry("gpts", "gpt"))
    line = refused("inspect", "eval-report", "gpt", "7")
    assert line == "tinyllm: evals/zoo.toml has no entry 'gpt' to score it from; did you mean 'gpts'?"
