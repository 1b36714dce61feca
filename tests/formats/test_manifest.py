"""The manifest: its own faults stop the run, an entry's faults stay with the entry."""

import json
from pathlib import Path

import pytest

from tinyllm.errors import FormatError, UsageError
from tinyllm.formats.manifest import ENTRY_KEYS, BrokenEntry, Entry, load

WHOLE = """
[suite]
name = "zoo"
seed = 7

[[entry]]
name = "gpt"
dir = "checkpoints/gpt"
data = "data/heldout.bin"
ctx_len = 128
stride = 64
max = 3

[[entry]]
name = "bigram"
dir = "/abs/bigram"
data = "text:stories/heldout"
min = 1.5

[[entry]]
name = "task"
dir = "checkpoints/gpt"
choices = "tasks/a.jsonl"
metric = "acc_norm"
task = "a"
max_len = 99
"""


def one(**keys):
    """The only entry of a manifest that holds it."""
    raw = {"name": "gpt", "dir": "d", "data": "a.bin"} | keys
    return load({"entry": [{key: value for key, value in raw.items() if value is not None}]}).entries[0]


def test_entries_come_in_manifest_order_with_absolute_paths(tmp_path):
    (tmp_path / "zoo.toml").write_text(WHOLE, encoding="utf-8")
    manifest = load(tmp_path / "zoo.toml")
    assert (manifest.name, manifest.seed, manifest.path) == ("zoo", 7, tmp_path / "zoo.toml")
    gpt, bigram, task = manifest.entries
    assert gpt == Entry(
        "gpt",
        tmp_path / "checkpoints/gpt",
        data="data/heldout.bin",
        data_path=tmp_path / "data/heldout.bin",
        ctx_len=128,
        stride=64,
        max=3.0,
    )
    assert type(gpt.max) is float
    assert (bigram.dir, bigram.text, bigram.data_path, bigram.min) == (
        Path("/abs/bigram"),
        ("stories", "heldout"),
        None,
        1.5,
    )
    assert (task.choices, task.data, task.metric, task.max_len) == (tmp_path / "tasks/a.jsonl", None, "acc_norm", 99)
    assert [entry.gated for entry in manifest.entries] == [True, True, False]


def test_json_and_a_mapping_mean_the_same_as_toml(tmp_path, monkeypatch):
    import tomllib

    document = tomllib.loads(WHOLE)
    (tmp_path / "zoo.toml").write_text(WHOLE, encoding="utf-8")
    (tmp_path / "zoo.json").write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    from_toml, from_json, from_mapping = load("zoo.toml"), load(tmp_path / "zoo.json"), load(document)
    assert from_toml.entries == from_json.entries == from_mapping.entries
    assert from_toml.digest == from_json.digest == from_mapping.digest
    assert from_mapping.path is None


def test_a_mapping_may_hold_paths_and_tuples(tmp_path):
    entry = load({"entry": ({"name": "a", "dir": tmp_path, "data": tmp_path / "a.bin"},)}).entries[0]
    assert (entry.dir, entry.data_path) == (tmp_path, tmp_path / "a.bin")


def test_the_digest_changes_with_the_content_only():
    a, b = {"name": "a", "dir": "d", "data": "x"}, {"data": "x", "dir": "d", "name": "a"}
    assert load({"entry": [a]}).digest == load({"entry": [b]}).digest
    assert load({"entry": [a]}).digest != load({"entry": [a | {"max": 1}]}).digest


def test_fault_row_60_a_byte_order_mark_and_crlf_change_nothing(tmp_path):
    (tmp_path / "a.toml").write_bytes(WHOLE.encode())
    (tmp_path / "b.toml").write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    assert load(tmp_path / "a.toml").digest == load(tmp_path / "b.toml").digest


def test_a_suite_without_a_name_is_called_after_its_file(tmp_path):
    text = '[[entry]]\nname = "a"\ndir = "d"\ndata = "x"\n'
    for file, name in [("nightly.toml", "nightly"), ("my zoo.toml", "suite")]:
        (tmp_path / file).write_text(text, encoding="utf-8")
        assert (load(tmp_path / file).name, load(tmp_path / file).seed) == (name, 0)


def test_the_known_keys_are_the_fields_of_an_entry():
    assert set(ENTRY_KEYS) == set(Entry.__dataclass_fields__) - {"data_path", "text", "folder", "code", "own_task"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"strid": 1}, r"entry\[0\] 'gpt': unknown key 'strid'; did you mean 'stride'"),
        ({"limit": 1}, r"entry\[0\] 'gpt': unknown key 'limit'; "),
        ({"dir": None}, r"entry\[0\] 'gpt': missing key 'dir'"),
        ({"choices": "c.jsonl"}, r"must have exactly one of the keys data and choices, got data and choices"),
        ({"data": None}, r"entry\[0\] 'gpt': must have exactly one of the keys data and choices, got neither"),
        ({"stride": "64"}, r"entry\[0\]\.stride of 'gpt': must be an integer, got '64'"),
        ({"stride": 64.0}, "must be an integer, got 64.0"),
        ({"ctx_len": True}, "must be an integer, got True"),
        ({"ctx_len": 0}, r"entry\[0\]\.ctx_len of 'gpt': must be at least 1, got 0"),
        ({"max": "2"}, "must be a number, got '2'"),
        ({"max": True}, "must be a number, got True"),
        ({"max": float("nan")}, r"entry\[0\]\.max of 'gpt': must be a finite number or null, got nan"),
        ({"min": float("-inf")}, "must be a finite number or null, got -inf"),
        ({"min": 10**400}, r"entry\[0\]\.min of 'gpt': must be a number of at most 2\*\*53, got 1000"),
        ({"min": 2, "max": 1}, r"entry\[0\]\.min of 'gpt': must not exceed max \(1\), got 2"),
        ({"layout": "llmc"}, r"layout of 'gpt': must be one of 'tinyllm', .*, got 'llmc'; did you mean 'llm.c'"),
        ({"layout": "nanogpt"}, "layout of 'gpt': must come with vocab_size when it is 'nanogpt'"),
        ({"data": "text:stories"}, "must be text:NAME/SPLIT or a path, got 'text:stories'"),
        ({"data": "text:stories/heldout", "vocab_size": 9}, "vocab_size of 'gpt': must go with a token file"),
        ({"data": None, "choices": "c", "n_bytes": 9}, "n_bytes of 'gpt': must go with a token file"),
        ({"dir": 3}, r"entry\[0\]\.dir of 'gpt': must be a string, got 3"),
        ({"dir": ""}, "must be at least 1 character long, got ''"),
        ({"task": object()}, "must be plain JSON, got <object"),
    ],
)
def test_an_entrys_fault_is_that_entrys_row(keys, message):
    broken = one(**keys)
    assert isinstance(broken, BrokenEntry)
    assert isinstance(broken.error, FormatError)
    assert broken.name == "gpt"
    assert broken.gated == ("min" in keys or "max" in keys)
    with pytest.raises(FormatError, match=message):
        raise broken.error


def test_a_broken_entry_leaves_its_neighbours_whole():
    entries = [{"name": name, "dir": "d", "data": "x"} for name in "abc"]
    entries[1]["strid"] = 3
    a, b, c = load({"entry": entries}).entries
    assert [type(entry) for entry in (a, b, c)] == [Entry, BrokenEntry, Entry]
    assert str(b.error) == ("manifest: entry[1] 'b': unknown key 'strid'; did you mean 'stride'?")


GOOD = '[[entry]]\nname = "a"\ndir = "d"\ndata = "x"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"zoo.toml: missing key 'entry'"),
        ("entry = []", r"entry: must hold at least 1 item, got \[\]"),
        ("entry = 3", "entry: must be an array, got 3"),
        ("entry = [3]", r"entry\[0\]: must be an object, got 3"),
        (GOOD.replace("entry", "entries"), "unknown key 'entries'; did you mean 'entry'"),
        ("[suit]\n" + GOOD, "unknown key 'suit'; did you mean 'suite'"),
        ("[suite]\nsed = 1\n" + GOOD, "suite: unknown key 'sed'; did you mean 'seed'"),
        ("[suite]\nseed = -1\n" + GOOD, "suite.seed: must be at least 0, got -1"),
        ("[suite]\nseed = 1.0\n" + GOOD, "suite.seed: must be an integer, got 1.0"),
        ("[suite]\nseed = nan\n" + GOOD, "suite.seed: must be a finite number or null, got nan"),
        ('[suite]\nname = "a b"\n' + GOOD, "suite.name: must match .*, got 'a b'"),
        pytest.param(
            GOOD + GOOD, r"entry\[1\].name: must be unique, got 'a' again \(first in entry\[0\]\)", id="twice-row-54"
        ),
        (GOOD.replace('"a"', '"a b"'), r"entry\[0\].name: must be a slug of 1 to 64 characters .*, got 'a b'"),
        (GOOD.replace('"a"', '"é"'), "must be a slug .*, got 'é'"),
        (GOOD.replace('"a"', '"a\\n"'), "must be a slug .*, got 'a.n'"),
        (GOOD.replace('"a"', f'"{"a" * 65}"'), "must be a slug"),
        (GOOD.replace('name = "a"', ""), r"entry\[0\].name: must be a slug .*, got None"),
        ("[suite\n", "must be TOML, got a syntax error: .*line 1, column 7"),
    ],
)
def test_a_fault_of_the_manifest_itself_is_a_usage_error(tmp_path, text, message):
    (tmp_path / "zoo.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load(tmp_path / "zoo.toml")


def test_a_manifest_that_cannot_be_read_is_a_usage_error_with_its_path(tmp_path):
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    (tmp_path / "bad.json").write_bytes(b'{"entry": [],}')
    for name, message in [
        ("gone.toml", "gone.toml: the manifest must be a readable file, got 'No such file or directory'"),
        (".", "must be a readable file, got 'Is a directory'"),
        ("bad.toml", "bad.toml: the manifest must be UTF-8, got byte 0xff at byte 0"),
        ("bad.json", r"bad.json: line 1, column \d+: must be JSON"),
    ]:
        with pytest.raises(UsageError, match=message):
            load(tmp_path / name)


def test_a_mapping_with_foreign_keys_is_refused_not_crashed_on():
    with pytest.raises(UsageError, match="unknown key '3'"):
        load({3: 1, "entry": [{"name": "a", "dir": "d", "data": "x"}]})
    assert isinstance(load({"entry": [{"name": "a", "dir": "d", "data": "x", 3: 1}]}).entries[0], BrokenEntry)
