"""``tinyllm validate``: every example of every format, and what else a user may hand it."""

import gzip
import shutil

import pytest
from tests.plugin.toys import entry

from tinyllm.formats.schema import formats_folder

EXAMPLES = formats_folder() / "examples"
NAMES = {"eval-results": "report", "checkpoints": "checkpoint", "tokens-bin": "tokens"}


def examples(kind):
    paths = sorted(path for path in EXAMPLES.glob(f"*/{kind}/*") if path.suffix != ".reason")
    return [pytest.param(path, id=str(path.relative_to(EXAMPLES))) for path in paths]


def format_of(path):
    folder = path.parent.parent.name
    return NAMES.get(folder, folder)


@pytest.mark.parametrize("path", examples("valid"))
def test_a_valid_example_is_valid(tinyllm, path):
    done = tinyllm("validate", path, "--format", format_of(path))
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{path}: valid {format_of(path)}, ")


@pytest.mark.parametrize("path", examples("invalid"))
def test_an_invalid_example_is_refused_for_its_reason(tinyllm, path):
    done = tinyllm("validate", path, "--format", format_of(path))
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"invalid: {path}")
    reason = path.with_name(f"{path.name}.reason").read_text().strip()
    assert reason in done.err.replace(str(path), path.name)


@pytest.mark.parametrize("path", [param for param in examples("valid") if "/items/" not in str(param.values[0])])
def test_a_format_is_told_by_the_file(tinyllm, path):
    assert f": valid {format_of(path)}, " in tinyllm("validate", path).out


def test_items_are_told_by_their_name(tinyllm, here):
    shutil.copy(EXAMPLES / "items/valid/ids.safetensors", here / "items.safetensors")
    assert ": valid items, " in tinyllm("validate", "items.safetensors").out


def test_a_folder_with_a_report_is_a_run_and_its_items_are_checked(tinyllm, here):
    (here / "evals/zoo.toml").write_text(entry("entry") + entry("b", "half", choices="c.jsonl"))
    tinyllm("eval", "--suite", "zoo")
    assert tinyllm("validate", "eval-report").out == "eval-report: valid run, 2 rows\n"
    assert tinyllm("validate", "eval-report/report.json").out == "eval-report/report.json: valid report, 2 rows\n"
    (here / "eval-report/items.safetensors").unlink()
    done = tinyllm("validate", "eval-report")
    assert (done.status, done.out) == (1, "")
    assert "items.safetensors" in done.err


@pytest.mark.parametrize("model", ["uniform", "gpt"])
def test_a_checkpoint_is_loaded_by_its_family(tinyllm, model):
    arch = {"uniform": "bigram"}.get(model, model)
    assert tinyllm("validate", f"evals/{model}").out == f"evals/{model}: valid checkpoint, {arch}\n"


@pytest.mark.parametrize(
    ("model", "fault"),
    [("broken", "must hold model.safetensors"), ("weird", "unknown family 'rwkv'"), (".", "config.json")],
)
def test_a_checkpoint_that_does_not_load_is_invalid(tinyllm, model, fault):
    done = tinyllm("validate", f"evals/{model}")
    assert (done.status, done.out) == (1, "")
    assert fault in done.err


def test_a_zipped_file_is_told_by_the_ending_before(tinyllm, here):
    (here / "c.jsonl.gz").write_bytes(gzip.compress((here / "evals/c.jsonl").read_bytes()))
    assert tinyllm("validate", "c.jsonl.gz").out == "c.jsonl.gz: valid choices, 40 items\n"


def test_an_entrys_fault_makes_a_manifest_invalid(tinyllm, here):
    (here / "zoo.toml").write_text(entry("a") + entry("b", stide=1))
    done = tinyllm("validate", "zoo.toml")
    assert done.status == 1
    assert done.err == f"invalid: {here / 'zoo.toml'}: entry[1] 'b': unknown key 'stide'; did you mean 'stride'?\n"


def test_a_file_that_is_not_there_is_exit_status_4(refused):
    assert refused("validate", "nowhere.toml") == "tinyllm: nowhere.toml: there is no such file or folder"


def test_an_ending_that_tells_no_format_is_exit_status_4(refused, here):
    (here / "notes.md").write_text("")
    line = refused("validate", "notes.md")
    assert line.startswith("tinyllm: notes.md: the ending must tell the format; name it with --format: report, run, ")
