"""What is wrong with the run itself ends it with exit status 4 and one sentence, before anything runs."""

import pytest
from tests.plugin.toys import entry

GOOD = entry("a")


@pytest.mark.parametrize("workers", ["-n0", "-n2", "-pno:xdist"])
@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ("[suite\n", "evals/zoo.toml: the manifest must be TOML, got a syntax error: *(at line 1, column 7)"),
        ("[suite]\nsede = 1\n" + GOOD, "evals/zoo.toml: suite: unknown key 'sede'; did you mean 'seed'?"),
        ("[swite]\n" + GOOD, "evals/zoo.toml: unknown key 'swite'; did you mean 'suite'?"),
        (GOOD + GOOD, "evals/zoo.toml: entry[1].name: must be unique, got 'a' again (first in entry[0])"),
        (entry("a b"), "evals/zoo.toml: entry[0].name: must be a slug *, got 'a b'"),
        (entry("a::b"), "evals/zoo.toml: entry[0].name: must be a slug *, got 'a::b'"),
        ("[suite]\nname = 'x'\n", "evals/zoo.toml: *entry*"),
        ("", "evals/zoo.toml: *entry*"),
    ],
)
def test_a_manifests_own_fault(project, workers, manifest, sentence):
    project.manifest(manifest)
    nothing_runs(project, sentence, workers, "evals")


def nothing_runs(project, sentence, *args):
    project.file(
        "evals/test_never.py", "from pathlib import Path\nPath('it-ran').write_text('')\ndef test_never(): pass\n"
    )
    result = project.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.strip()]
    pattern = sentence.replace("[", "[[]").replace("?", "[?]")
    result.stderr.fnmatch_lines([f"ERROR: *{pattern}"])
    assert "Traceback" not in result.stdout.str()
    assert not (project.path / "it-ran").exists()
    assert not (project.path / "eval-report").is_dir()
    return line


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_named_manifest_that_is_not_there(project, workers):
    sentence = "evals/zoo2.toml: the manifest must be a readable file, got 'No such file or directory'"
    nothing_runs(project, sentence, workers, "evals", "--tinyllm-manifest=evals/zoo2.toml")


def test_an_ini_manifest_that_is_not_there(project):
    project.ini("tinyllm_manifest = evals/zoo2.toml")
    nothing_runs(project, "evals/zoo2.toml: the manifest must be a readable file, got *", "evals")


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_report_folder_that_cannot_be_written(project, workers):
    project.manifest(GOOD)
    project.file("eval-report", "a file in the way")
    sentence = (
        "eval-report: the report folder must be writable, got 'Not a directory'; choose another with --tinyllm-report"
    )
    nothing_runs(project, sentence, workers, "evals")


def test_a_report_folder_below_a_file(project):
    project.manifest(GOOD)
    nothing_runs(
        project, "/t.bin/x: the report folder must be writable, got *", "evals", "--tinyllm-report=evals/t.bin/x"
    )


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_an_ini_value_that_is_no_choice(project, workers):
    project.manifest(GOOD)
    project.ini("tinyllm_undecided = maybe")
    nothing_runs(project, "tinyllm_undecided must be fail or warn, got 'maybe'", workers, "evals")


def test_an_option_that_is_no_choice(project):
    result = project.run("evals", "--tinyllm-undecided=maybe")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--tinyllm-undecided: invalid choice: 'maybe'*"])


def test_the_exit_status_is_that_of_the_process(project):
    project.manifest("[suite\n")
    result = project.run_process("evals", "-n2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *the manifest must be TOML*"])


def test_no_manifest_where_one_is_asked_for_is_exit_status_4_and_one_sentence(project):
    (project.path / "evals/zoo.toml").unlink()
    result = project.run("evals", "-n0")
    assert result.ret == 4
    assert "zoo.toml does not exist; name one with --tinyllm-manifest" in "".join([*result.outlines, *result.errlines])
    assert "Traceback" not in result.stdout.str()
