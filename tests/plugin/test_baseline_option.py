"""``--tinyllm-save-baseline`` and ``--tinyllm-baseline``: unchanged is green, worse is red, and only that."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.plugin.toys import Reported, entry

from tinyllm.formats import checkpoints
from tinyllm.formats.tokens import open_tokens, write_tokens
from tinyllm.models.bigram import BigramLM, save_bigram
from tinyllm.rng import PCG32

ZOO = entry("uniform") + entry("half", "half") + entry("cloze", "half", choices="c.jsonl")


@pytest.fixture
def saved(project):
    """The project with its run saved as baseline main."""
    project.manifest(ZOO)
    assert project.run("evals", "--tinyllm-save-baseline=main").ret == 0
    return project


def answers(project):
    return {name: row["baseline"] and row["baseline"]["answer"] for name, row in project.reported.rows.items()}


def make(project, name, gain):
    """A bigram in place of a checkpoint: `x` e^gain times as likely as each other byte, after any byte."""
    shutil.rmtree(project.path / "evals" / name)
    table = np.zeros((256, 256), np.float32)
    table[:, ord("x")] = gain
    save_bigram(project.path / "evals" / name, BigramLM(table))


def test_a_run_is_saved_as_the_next_number_with_report_and_items(saved):
    first = Reported(saved.path / "evals/baselines/main/0001")
    assert first.row_bytes == saved.reported.row_bytes
    assert first.item_bytes == saved.reported.item_bytes
    before = {path: path.read_bytes() for path in first.folder.iterdir()}
    result = saved.run("evals", "--tinyllm-save-baseline=main")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["saved as baseline main/0002: evals/baselines/main/0002"])
    assert {path: path.read_bytes() for path in first.folder.iterdir()} == before
    assert answers(saved) == dict.fromkeys(("uniform", "half", "cloze"))


def test_an_unchanged_run_is_green_and_its_rows_say_so(saved):
    result = saved.run("evals", "--tinyllm-baseline=main")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["against baseline main/0001: 3 held"])
    assert answers(saved) == {"uniform": "pass", "half": "pass", "cloze": "pass"}
    verdict = saved.reported.rows["half"]["baseline"]
    assert (verdict["against"], verdict["delta"], verdict["p"], verdict["n"]) == ("main/0001", 0.0, 1.0, 199)
    assert [saved.reported.rows[name]["baseline"]["margin"] for name in ("half", "cloze")] == [1e-4, 0.0]


def test_an_unchanged_model_is_green_in_20_of_20_seeds(project):
    zoo = entry("half", "half") + entry("cloze", "half", choices="c.jsonl")
    project.manifest("[suite]\nseed = 0\n" + zoo)
    project.run("evals", "--tinyllm-save-baseline=main")
    for seed in range(1, 21):
        project.manifest(f"[suite]\nseed = {seed}\n" + zoo)
        assert project.run("evals", "--tinyllm-baseline=main").ret == 0
        assert set(answers(project).values()) == {"pass"}


@pytest.mark.parametrize("mode", ["-n0", "-n1"])
def test_fault_row_72_a_worse_checkpoint_turns_exactly_its_rows_red(saved, mode):
    make(saved, "half", gain=-3.0)  # x, half of the text and 30 of 40 answers, is now what it likes least
    result = saved.run("evals", "--tinyllm-baseline=main", mode)
    assert result.ret == 1
    result.assert_outcomes(passed=3)  # the gate is judged over the whole run, after its tests
    assert answers(saved) == {"uniform": "pass", "half": "worse", "cloze": "worse"}
    result.stdout.fnmatch_lines(
        [
            "row * gate",
            "report: *",
            "against baseline main/0001: 1 held, 2 worse",
            "FAILED half: worse than baseline main/0001: bpb 5.017* (margin 0.0001), one-sided p = *, * by Holm over "
            "3 rows, n = 199; NLL grew most at token 2 (+*), token 4 (+*",
            "FAILED cloze: worse than baseline main/0001: acc 0.75 → 0.25, delta -0.5 an item (margin 0), one-sided "
            "p = *, n = 40; 30 right there and wrong here, 10 the other way: 0:*, 1:*, 2:*, 4:*, …",
        ]
    )


def test_a_better_checkpoint_is_green(saved):
    make(saved, "uniform", gain=3.0)
    assert saved.run("evals", "--tinyllm-baseline=main").ret == 0
    assert saved.reported.rows["uniform"]["baseline"]["delta"] < -0.1


def test_noise_on_one_layer_of_a_trained_model_turns_exactly_its_rows_red(project, pytestconfig):
    zoo = pytestconfig.rootpath / "evals"
    shutil.copytree(zoo / "checkpoints/gpt", project.path / "evals/trained")
    ids = np.asarray(open_tokens(zoo / "data/stories-heldout.bin").ids[:1000])
    write_tokens(project.path / "evals/stories.bin", ids, vocab_size=256, n_bytes=999)
    project.manifest(
        ZOO
        + entry("gpt-128", "trained", data="stories.bin")
        + entry("gpt-64", "trained", data="stories.bin", ctx_len=64)
    )
    assert project.run("evals", "--tinyllm-save-baseline=main").ret == 0
    path = project.path / "evals/trained"
    weights = load_file(path / "model.safetensors")
    name = next(key for key in sorted(weights) if weights[key].ndim == 2 and "0" in key)
    noise = PCG32(1).random_array(weights[name].numel()).astype(np.float32).reshape(weights[name].shape) - 0.5
    weights[name] = torch.from_numpy(weights[name].numpy() * (1 + noise))  # each weight by at most a half of itself
    config = json.loads((path / "config.json").read_text())
    shutil.rmtree(path)
    checkpoints.save(path, config, weights)
    assert project.run("evals", "--tinyllm-baseline=main").ret == 1
    red = {name for name, answer in answers(project).items() if answer != "pass"}
    assert red == {"gpt-128", "gpt-64"}
    assert all(project.reported.rows[name]["baseline"]["answer"] == "worse" for name in red)


def test_a_drop_within_the_entrys_margin_is_let_pass(saved):
    make(saved, "half", gain=-3.0)
    saved.manifest(
        ZOO.replace('name = "half"', 'name = "half"\nmargin = 9').replace('"cloze"', '"cloze"\nmargin = 0.5')
    )
    assert saved.run("evals", "--tinyllm-baseline=main").ret == 0
    assert [row["baseline"]["margin"] for row in saved.reported.rows.values()] == [1e-4, 9.0, 0.5]


def test_a_number_of_a_baseline_may_be_named(saved):
    make(saved, "half", gain=-3.0)
    assert saved.run("evals", "--tinyllm-save-baseline=main").ret == 0
    assert saved.run("evals", "--tinyllm-baseline=main").ret == 0
    assert saved.run("evals", "--tinyllm-baseline=main/0001").ret == 1


def test_the_ini_line_names_the_baseline_and_an_empty_ini_line_none(saved):
    make(saved, "half", gain=-3.0)
    saved.ini("tinyllm_baseline = main")
    assert saved.run("evals").ret == 1
    assert saved.run("evals", "-otinyllm_baseline=").ret == 0


def test_a_run_of_other_tests_knows_nothing_of_the_ini_line(saved):
    saved.ini("tinyllm_baseline = absent")
    saved.file("tests/test_one.py", "def test_one():\n    pass\n")
    assert saved.run("tests").ret == 0


def test_an_eval_in_plain_python_is_held_against_its_baseline_too(project):
    project.file("evals/test_zoo.py", 'def test_half(evaluate):\n    evaluate("half")\n')
    project.manifest(entry("half", "half"))
    project.run("evals", "--tinyllm-save-baseline=main")
    make(project, "half", gain=-3.0)
    assert project.run("evals", "--tinyllm-baseline=main").ret == 1
    assert answers(project) == {"half": "worse"}
