"""What is no comparison is never a pass: other items, data or protocol, a lost row, a harmed or missing baseline."""

import json
import shutil

import numpy as np
import pytest
from tests.plugin.test_baseline_option import ZOO, answers, make, saved  # noqa: F401 (a fixture)
from tests.plugin.toys import entry

from tinyllm.formats.tokens import write_tokens


def gated(project, *args):
    return project.run("evals", "--tinyllm-baseline=main", *args)


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        (entry("uniform", metric="nll"), "metric 'bpb' there and 'nll' here"),
        (entry("uniform", data="other.bin"), "data of SHA-256 * there and * here"),
        (entry("uniform", data="short.bin"), "data of SHA-256 * there and * here; 199 items there and 99 here"),
        (entry("uniform", "gpt", ctx_len=16), "ctx_len absent there and 16 here; stride absent there and 8 here"),
        (entry("uniform", "half", choices="c.jsonl"), "metric 'bpb' there and 'acc' here; data * 40 here"),
    ],
)
def test_fault_row_57_another_measurement_is_red_and_says_what_differs(saved, now, difference):  # noqa: F811
    write_tokens(saved.path / "evals/other.bin", np.frombuffer(b"xz" * 100, np.uint8), vocab_size=256, n_bytes=199)
    write_tokens(saved.path / "evals/short.bin", np.frombuffer(b"xy" * 50, np.uint8), vocab_size=256, n_bytes=99)
    saved.manifest(now + ZOO[len(entry("uniform")) :])
    result = gated(saved)
    assert result.ret == 1
    assert answers(saved) == {"uniform": "refused", "half": "pass", "cloze": "pass"}
    line = f"FAILED uniform: not the measurement that baseline main/0001 has: {difference}; undo that, or save a new *"
    result.stdout.fnmatch_lines([line.replace("[", "[[]")])


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (entry("uniform", "broken"), "has bpb 8.0, and this run has no number: error: CheckpointError: broken*"),
        (entry("uniform", "weird"), "has bpb 8.0, and this run has no number: skipped: UnknownFamilyError: *'rwkv'*"),
        ("", "has a number for this row, and this run has no such row; put its entry back, or save a new baseline"),
    ],
)
def test_fault_row_53_a_row_that_lost_its_number_is_red(saved, now, why):  # noqa: F811
    saved.manifest(now + ZOO[len(entry("uniform")) :])
    result = gated(saved)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["against baseline main/0001: 2 held, 1 lost", f"FAILED uniform: baseline main/0001 {why}"]
    )


def test_a_new_row_is_said_so_and_is_not_red(saved):  # noqa: F811
    saved.manifest(ZOO + entry("new"))
    result = gated(saved)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "against baseline main/0001: 3 held, 1 new",
            "new: new row, nothing to compare: baseline main/0001 has no such row",
        ]
    )


def test_rows_that_were_not_selected_are_said_so_and_are_not_red(saved):  # noqa: F811
    result = gated(saved, "-k", "half")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["against baseline main/0001: 1 held, 2 not selected"])


def test_a_run_that_compares_nothing_does_not_pass_when_it_was_asked_to(saved):  # noqa: F811
    saved.file("evals/test_other.py", "def test_other():\n    pass\n")
    for option in ("--tinyllm-baseline=main", "--tinyllm-save-baseline=main"):
        result = saved.run("evals/test_other.py", option)
        assert result.ret == 1
        result.stdout.fnmatch_lines(
            ["FAILED no row was scored, so nothing was compared with a baseline or saved as one"]
        )
    saved.ini("tinyllm_baseline = main")
    assert saved.run("evals/test_other.py").ret == 0


@pytest.mark.parametrize("option", ["--tinyllm-baseline=main", "--tinyllm-save-baseline=main"])
def test_a_run_that_does_not_reach_the_evaluations_is_a_usage_error(saved, option):  # noqa: F811
    saved.file("tests/test_one.py", "def test_one():\n    pass\n")
    result = saved.run("tests", option)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --tinyllm-baseline and --tinyllm-save-baseline need a run that reaches *"])


def harm(folder, file, how):
    path = folder / file
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    if how == "deleted":
        path.unlink()
    elif how == "emptied":
        path.write_bytes(b"")
    else:
        data[{"flipped": -9, "first": 0}[how]] ^= 1
        path.write_bytes(data)


@pytest.mark.parametrize("file", ["report.json", "items.safetensors", "SHA256SUMS"])
@pytest.mark.parametrize("how", ["deleted", "emptied", "flipped", "first"])
def test_a_harmed_baseline_is_exit_status_4_and_nothing_runs(saved, file, how):  # noqa: F811
    shutil.rmtree(saved.path / "eval-report")
    harm(saved.path / "evals/baselines/main/0001", file, how)
    result = gated(saved)
    assert result.ret == 4
    assert "collected" not in result.stdout.str()
    assert not (saved.path / "eval-report").exists()
    (line,) = [line for line in result.stderr.lines if line]
    assert line.startswith(f"ERROR: {saved.path}/evals/baselines/main/0001/")


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        ("--tinyllm-baseline=mian", "there is no baseline 'mian'; did you mean 'main'?; save one with *"),
        ("--tinyllm-baseline=main/0002", "baseline 'main' has no number 0002; it has 0001"),
        ("--tinyllm-baseline=../main", "a baseline's name must be NAME or NAME/0001, * got '../main'"),
        ("--tinyllm-save-baseline=../main", "a baseline's name must be NAME or NAME/0001, * got '../main'"),
        ("--tinyllm-save-baseline=main/0001", "a baseline is saved under a name without a number, *'main/0001'"),
    ],
)
def test_a_name_that_stands_for_nothing_is_exit_status_4_and_nothing_runs(saved, option, fault):  # noqa: F811
    shutil.rmtree(saved.path / "eval-report")
    result = saved.run("evals", option)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: *{fault}"])
    assert not (saved.path / "eval-report").exists()


def test_a_folder_that_cannot_be_written_is_exit_status_4(saved):  # noqa: F811
    saved.file("evals/baselines/taken", "a file in the way")
    result = saved.run("evals", "--tinyllm-save-baseline=taken")
    assert result.ret == 4


def test_a_run_that_is_not_complete_is_not_saved(saved):  # noqa: F811
    result = saved.run("evals", "--tinyllm-save-baseline=main", "-k", "half")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAILED the baseline was not saved: *a baseline must be a complete run, but not run *"]
    )
    assert [path.name for path in (saved.path / "evals/baselines/main").iterdir()] == ["0001"]


def test_a_run_that_is_worse_does_not_become_the_baseline_that_it_was_held_against(saved):  # noqa: F811
    make(saved, "half", gain=-3.0)
    result = gated(saved, "--tinyllm-save-baseline=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["not saved as baseline main: the run is red against its own baseline"])
    assert [path.name for path in (saved.path / "evals/baselines/main").iterdir()] == ["0001"]


def test_a_row_without_a_number_is_named_when_it_is_saved(project):
    project.manifest(entry("half", "half") + entry("weird", "weird"))
    result = project.run("evals", "--tinyllm-save-baseline=main")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["rows without a number, which it cannot hold anything to: weird"])


def test_collect_only_compares_and_saves_nothing(saved):  # noqa: F811
    before = sorted(saved.path.rglob("*"))
    result = saved.run("evals", "--collect-only", "--tinyllm-baseline=main", "--tinyllm-save-baseline=main")
    assert result.ret == 0
    assert sorted(p for p in saved.path.rglob("*") if "__pycache__" not in p.parts) == [
        p for p in before if "__pycache__" not in p.parts
    ]


def test_the_verdicts_are_in_the_report_as_its_schema_has_them(saved):  # noqa: F811
    make(saved, "half", gain=-3.0)
    gated(saved)
    row = json.loads((saved.path / "eval-report/report.json").read_text())["rows"][2]
    assert len(row["baseline"]["items"]) == 10
    assert row["baseline"]["items"][0]["before"] == 1.0
    assert row["baseline"]["items"][0]["now"] == 0.0
    assert row["baseline"]["p_holm"] <= 0.05
