"""Every example of every format: valid ones open, and an invalid one is refused for the reason that lies beside it."""

import re
from pathlib import Path

import pytest

from tinyllm.errors import TinyllmError
from tinyllm.formats import checkpoints
from tinyllm.formats.choices import read_choices
from tinyllm.formats.config import anything, integer
from tinyllm.formats.items import read_items
from tinyllm.formats.labelled import read_labelled
from tinyllm.formats.manifest import BrokenEntry, load
from tinyllm.formats.pairs import read_pairs
from tinyllm.formats.report import read_report
from tinyllm.formats.schema import formats_folder
from tinyllm.formats.tokens import open_tokens, write_tokens
from tinyllm.formats.wordpairs import read_wordpairs

FORMATS = formats_folder()


def read_manifest(path):
    for entry in load(path).entries:
        if isinstance(entry, BrokenEntry):
            raise entry.error


def read_checkpoint(path):
    """The bigram family's rules, over any vocabulary."""
    config = checkpoints.read_config(path)
    checkpoints.check_config(config, {"vocab_size": integer(1), "training": anything()}, path)
    shape = (config["vocab_size"],) * 2
    checkpoints.load_tensors(path, {"table": (shape, checkpoints.FLOATS)})


READERS = {
    "checkpoints": read_checkpoint,
    "choices": read_choices,
    "eval-results": read_report,
    "items": read_items,
    "labelled": read_labelled,
    "manifest": read_manifest,
    "pairs": read_pairs,
    "tokens-bin": open_tokens,
    "wordpairs": read_wordpairs,
}
WITHOUT_FILES = {"pcg32"}  # a stream, not a file: its examples are in its own tests


def examples(kind):
    paths = sorted(path for path in (FORMATS / "examples").glob(f"*/{kind}/*") if path.suffix != ".reason")
    return [pytest.param(path, id=str(path.relative_to(FORMATS / "examples"))) for path in paths]


def reader(path: Path):
    return READERS[path.parent.parent.name]


def test_every_format_has_a_reader_here_and_examples_of_both_kinds():
    described = {re.sub(r"(\.schema\.json|\.md)$", "", path.name) for path in FORMATS.glob("[!.]*.*")}
    folders = {path.name for path in (FORMATS / "examples").iterdir()}
    assert described - WITHOUT_FILES == folders == set(READERS)
    for name in folders:
        assert {path.name for path in (FORMATS / "examples" / name).iterdir()} == {"valid", "invalid"}
        assert list((FORMATS / "examples" / name / "valid").iterdir())
        assert len(list((FORMATS / "examples" / name / "invalid").glob("*.reason"))) >= 3


@pytest.mark.parametrize("path", examples("valid"))
def test_a_valid_example_opens(path):
    reader(path)(path)


@pytest.mark.parametrize("path", examples("invalid"))
def test_an_invalid_example_is_refused_for_the_reason_beside_it(path):
    reason = path.with_name(f"{path.name}.reason").read_text(encoding="utf-8").strip()
    assert reason
    with pytest.raises(TinyllmError) as refusal:
        reader(path)(path)
    assert reason in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_every_reason_belongs_to_an_example():
    for reason in (FORMATS / "examples").glob("*/*/*.reason"):
        assert reason.parent.name == "invalid"
        assert reason.with_suffix("").exists()


def test_the_byte_by_byte_example_of_tokens_bin_is_what_the_writer_writes(tmp_path):
    page = (FORMATS / "tokens-bin.md").read_text(encoding="utf-8")
    block = page.split("```hex\n")[1].split("```")[0]
    data = b""
    for line in block.splitlines():
        offset, pairs = re.fullmatch(r"(\d+) +((?:[0-9a-f]{2} )*[0-9a-f]{2})(?:  .*)?", line).groups()
        assert int(offset) == len(data)
        data += bytes.fromhex(pairs)
    write_tokens(tmp_path / "he.bin", list("hé".encode()), vocab_size=256, n_bytes=2)
    assert data == (tmp_path / "he.bin").read_bytes()
    assert data == (FORMATS / "examples/tokens-bin/valid/he.bin").read_bytes()


def test_the_worked_id_of_choices_is_the_one_given(tmp_path):
    page = (FORMATS / "choices.md").read_text(encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(page.split("```json\n")[1].split("```")[0], encoding="utf-8")
    assert f"is called `{read_choices(tmp_path / 'a.jsonl')[0].id}`" in page


@pytest.mark.parametrize(("name", "read"), [("labelled", read_labelled), ("wordpairs", read_wordpairs)])
def test_the_table_on_each_page_opens(tmp_path, name, read):
    page = (FORMATS / f"{name}.md").read_text(encoding="utf-8")
    (tmp_path / "a.tsv").write_text(page.split("```tsv\n")[1].split("```")[0], encoding="utf-8")
    assert len(read(tmp_path / "a.tsv")) == 2
