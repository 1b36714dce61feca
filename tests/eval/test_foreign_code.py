"""What a model of somebody else does while it is scored costs its own row, and says so."""

import numpy as np
import pytest
from tests.plugin.toys import entry, make_zoo

from tinyllm.cli import main
from tinyllm.errors import CheckpointError
from tinyllm.eval import zoo
from tinyllm.eval.checkpoints import Checkpoints, load_pinned
from tinyllm.eval.zoo import load_model, run_zoo
from tinyllm.formats.checkpoints import weights_sha256
from tinyllm.formats.manifest import load
from tinyllm.models.bigram import BigramLM, save_bigram


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Model:
    """Of bytes, and of whatever a test gives it."""

    vocab_size = 256

    def __init__(self, nll, **attributes):
        self.nll = nll
        self.__dict__.update(attributes)

    def __call__(self, ids):
        return np.zeros((*ids.shape, 256))


def raising(error):
    def nll(ids):
        raise error

    return Model(nll)


@pytest.fixture
def folder(tmp_path):
    make_zoo(tmp_path / "evals")
    return tmp_path / "evals"


@pytest.fixture
def rows_with(folder, monkeypatch):
    """Two rows: of a model of the test's, and of half."""
    (folder / "zoo.toml").write_text(entry("a", "uniform") + entry("b", "half"))

    def rows(model):
        monkeypatch.setattr(zoo, "load_model", lambda path: model if path.name == "uniform" else load_model(path))
        return run_zoo(folder / "zoo.toml", None)["rows"]

    return rows


MODELS = {
    "leaves": (raising(SystemExit(0)), "SystemExit", "0"),
    "closes": (raising(GeneratorExit()), "GeneratorExit", "GeneratorExit without a message"),
    "no memory": (raising(MemoryError()), "MemoryError", "MemoryError without a message"),
    "no words": (raising(SilentError()), "SilentError", "SilentError, whose message cannot be shown"),
    "complex": (Model(lambda ids: np.ones(len(ids) - 1, complex)), "ValueError", "real numbers, got dtype complex128"),
    "words": (
        Model(lambda ids: ["a"] * (len(ids) - 1)),
        "ValueError",
        "Model.nll must give real numbers, got dtype <U1",
    ),
    "size": (Model(None, vocab_size="256"), "ValueError", "Model.vocab_size must be a whole number of at"),
    "length": (
        Model(None, vocab_size=2.5),
        "ValueError",
        "Model.vocab_size must be a whole number of at least 1, got 2.5",
    ),
}


@pytest.mark.parametrize("what", MODELS)
def test_it_is_the_error_of_its_row_and_the_others_are_scored(rows_with, what):
    model, error, message = MODELS[what]
    a, b = rows_with(model)
    assert (a["status"], a["error"]["type"]) == ("error", error)
    assert message in a["error"]["message"]
    assert (b["status"], b["arch"]) == ("ok", "bigram")


def test_a_model_that_leaves_is_exit_status_1_of_every_command(folder, rows_with, capsys):
    rows_with(raising(SystemExit(0)))
    for command in (["eval", "--report", str(folder / "r"), "--suite"], ["plan"]):
        assert main([*command, str(folder / "zoo.toml")]) == 1
        out = capsys.readouterr().out
        assert [line.split()[0] for line in out.splitlines()[1:3]] == ["a", "b"]
        assert "SystemExit" in out


def write_another(folder):
    table = np.zeros((256, 256), np.float32)
    table[:, ord("y")] = np.log(255)
    save_bigram(folder / "next", BigramLM(table))
    (folder / "next/model.safetensors").replace(folder / "half/model.safetensors")


def test_a_number_and_its_hash_are_of_the_same_files(folder):
    (folder / "zoo.toml").write_text(entry("a", "half") + entry("b", "half"))
    first, second = load(folder / "zoo.toml").entries
    remembered = Checkpoints(load_model)
    old, old_hash = load_pinned(first, remembered)
    again, _ = load_pinned(second, remembered)
    assert again is old
    write_another(folder)
    new, new_hash = load_pinned(second, remembered)
    assert new.table[0, ord("y")] > 5 > old.table[0, ord("y")]
    assert old_hash != new_hash == weights_sha256(folder / "half")


def test_files_that_change_while_they_are_read_are_nobodys_number(folder):
    (folder / "zoo.toml").write_text(entry("a", "half"))

    def slow(path):
        model = load_model(path)
        write_another(folder)
        return model

    with pytest.raises(CheckpointError, match="half: must not change while it is read, got other files"):
        load_pinned(load(folder / "zoo.toml").entries[0], Checkpoints(slow))
