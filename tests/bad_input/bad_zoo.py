"""The toy zoo with everything a user's folder can have wrong, an entry each, between healthy ones."""

import gzip
import pickle
import shutil
from pathlib import Path

import numpy as np
from tests.plugin.toys import entry, make_zoo

from tinyllm.formats.tokens import HEADER, write_tokens

HEALTHY = entry("healthy-text", "half", max=8) + entry("healthy-task", "half", choices="c.jsonl")
GOOD_LINE = '{"context": "q", "choices": ["x", "y"], "answer": 0}\n'

# name → (keys besides the name, type of the row's error, what its message says)
BAD = {
    "token-file-cut-short": (
        {"data": "cut.bin"},
        "FormatError",
        "cut.bin: file length: must be 328 bytes (128 + 200 tokens × 1), got 320: it is cut short",
    ),
    "token-header-cut-short": ({"data": "stub.bin"}, "FormatError", "must hold a header of 128 bytes, got 50"),
    "empty-data-file": (
        {"data": "empty"},
        "FormatError",
        "empty: file length: must hold a header of 128 bytes, got an empty",
    ),
    "ids-beyond-the-vocabulary": (
        {"data": "beyond.bin"},
        "FormatError",
        "beyond.bin: token 1: must lie below the vocabulary size 121, got 121",
    ),
    "data-is-a-folder": ({"data": "half"}, "FormatError", "half: must be a readable file, got 'Is a directory'"),
    "data-is-text": ({"data": "c.jsonl"}, "FormatError", "c.jsonl: header bytes 0-8: must start with"),
    "nothing-to-score": (
        {"data": "none.bin"},
        "FormatError",
        "must have at least 2 tokens, got 0: the first has no context, and is not scored",
    ),
    "one-token": (
        {"data": "one.bin"},
        "FormatError",
        "must have at least 2 tokens, got 1: the first has no context, and is not scored",
    ),
    "unknown-text": ({"data": "text:stories/helout"}, "UsageError", "did you mean 'stories/heldout'?"),
    "windows-too-long": (
        {"dir": "gpt", "data": "t.bin", "ctx_len": 33},
        "ValueError",
        "ctx_len must be at most the model's 32, got 33",
    ),
    "stride-of-a-window": (
        {"dir": "gpt", "data": "t.bin", "ctx_len": 8, "stride": 8},
        "ValueError",
        "stride must satisfy 1 <= stride < ctx_len, got stride=8 with ctx_len=8",
    ),
    "task-is-empty": ({"choices": "empty"}, "FormatError", "empty: must hold at least one row, got none"),
    "task-is-binary": ({"choices": "t.bin"}, "FormatError", "t.bin: "),
    "task-is-missing": ({"choices": "gone.jsonl"}, "FormatError", "gone.jsonl: must be a readable file, got 'No such"),
    "torn-tail-row-58": ({"choices": "torn.jsonl"}, "FormatError", "torn.jsonl: line 3"),
    "torn-gzip": ({"choices": "torn.jsonl.gz"}, "FormatError", "torn.jsonl.gz: "),
    "one-bad-line-row-66": ({"choices": "bad-line.jsonl"}, "FormatError", "bad-line.jsonl: line 2"),
    "ids-twice-row-54": ({"choices": "twice.jsonl"}, "FormatError", "twice.jsonl: line 3"),
    "answer-beyond-choices": ({"choices": "beyond.jsonl"}, "FormatError", "beyond.jsonl: line 1"),
    "empty-choice-row-29": ({"choices": "empty-choice.jsonl"}, "FormatError", "empty-choice.jsonl: line 1"),
    "choice-too-long-row-28": (
        {"choices": "long.jsonl", "dir": "gpt"},
        "ValueError",
        "has 40 tokens and does not fit into max_len=32",
    ),
    "missing-checkpoint": (
        {"dir": "nowhere"},
        "CheckpointError",
        "nowhere: must be a checkpoint folder or file, got nothing there",
    ),
    "checkpoint-is-a-text": ({"dir": "t.bin"}, "CheckpointError", "t.bin: must be a safetensors file"),
    "checkpoint-is-an-empty-folder": ({"dir": "hollow"}, "CheckpointError", "hollow: must hold config.json"),
    "name-too-long-for-the-disk": ({"dir": "d" * 300}, "CheckpointError", "ddd: must be a "),
    "name-with-a-zero": ({"dir": "a\0b"}, "CheckpointError", "must be a checkpoint folder or file, got nothing there"),
    "path-in-a-circle": ({"dir": "circle"}, "CheckpointError", "circle: must be a checkpoint folder or file, got "),
    "config-empty": ({"dir": "config-empty"}, "CheckpointError", "config-empty/config.json: line 1, column 1"),
    "config-a-list": ({"dir": "config-a-list"}, "CheckpointError", "must be a JSON object, got [1]"),
    "config-without-family": ({"dir": "config-without-family"}, "CheckpointError", "must name its family in tl_arch"),
    "config-family-a-number": ({"dir": "config-family-a-number"}, "CheckpointError", "in tl_arch"),
    "weights-empty": ({"dir": "weights-empty"}, "CheckpointError", "must be a safetensors file"),
    "weights-cut-short": ({"dir": "weights-cut-short"}, "CheckpointError", "must be a safetensors file"),
    "weights-a-pickle-row-65": ({"dir": "weights-a-pickle"}, "CheckpointError", "this is a pickle, not safetensors"),
    "weights-not-finite": ({"dir": "weights-not-finite"}, "CheckpointError", "must be finite, got nan at [2, 3]"),
    "link-out-of-the-folder-row-65": (
        {"dir": "link-out"},
        "CheckpointError",
        "link-out/model.safetensors: must lie in its folder, got a link to half/model.safetensors; copy the file",
    ),
    "pinned-to-another-hash": (
        {"sha256": "0" * 64},
        "CheckpointError",
        f"must hash to the manifest's sha256 {'0' * 64}, got ",
    ),
}


class Marker:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def bad_entry(name: str) -> str:
    """An entry's lines: on the checkpoint "half" and the text, unless its fault is there."""
    keys = dict(BAD[name][0])
    return entry(name, keys.pop("dir", "half"), **keys)


def make_bad_zoo(folder: Path) -> None:
    """The toy zoo and the broken files; zoo.toml has the bad entries between two pairs of healthy rows."""
    make_zoo(folder)
    _make_bad_data(folder)
    _make_bad_checkpoints(folder)
    bad = [bad_entry(name) for name in BAD]
    middle = len(bad) // 2
    again = HEALTHY.replace("healthy", "again")
    text = "".join([HEALTHY, *bad[:middle], again, *bad[middle:], HEALTHY.replace("healthy", "last")])
    (folder / "zoo.toml").write_text(text, encoding="utf-8")


def _make_bad_data(folder: Path) -> None:
    whole = (folder / "t.bin").read_bytes()
    (folder / "cut.bin").write_bytes(whole[:-8])
    (folder / "stub.bin").write_bytes(whole[:50])
    (folder / "empty").write_bytes(b"")
    fields = list(HEADER.unpack(whole[:128]))
    fields[3] = 121  # the vocabulary: "x" is 120 and "y" 121
    (folder / "beyond.bin").write_bytes(HEADER.pack(*fields) + whole[128:])
    write_tokens(folder / "none.bin", np.zeros(0, np.uint8), vocab_size=256, n_bytes=0)
    write_tokens(folder / "one.bin", np.zeros(1, np.uint8), vocab_size=256, n_bytes=0)
    lines = {
        "torn": GOOD_LINE * 2 + GOOD_LINE[:30],
        "bad-line": GOOD_LINE + GOOD_LINE.replace("answer", "anwser") + GOOD_LINE * 3,
        "twice": "".join(GOOD_LINE.replace("}", f', "id": "{i}"}}') for i in (1, 2, 1)),
        "beyond": GOOD_LINE.replace("0", "2"),
        "empty-choice": GOOD_LINE.replace('"y"', '""'),
        "long": GOOD_LINE.replace('"y"', f'"{"y" * 40}"'),
    }
    for name, text in lines.items():
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "torn.jsonl.gz").write_bytes(gzip.compress(GOOD_LINE.encode() * 50)[:-12])


def _make_bad_checkpoints(folder: Path) -> None:
    (folder / "hollow").mkdir()
    (folder / "circle").symlink_to("circle")
    configs = {
        "config-empty": "",
        "config-a-list": "[1]",
        "config-without-family": '{"vocab_size": 256}',
        "config-family-a-number": '{"tl_arch": 3, "vocab_size": 256}',
    }
    weights = (folder / "half/model.safetensors").read_bytes()
    table = np.frombuffer(weights[-(256 * 256 * 4) :], np.float32).reshape(256, 256).copy()
    table[2, 3] = np.nan
    changed = {
        "weights-empty": b"",
        "weights-cut-short": weights[:-1],
        "weights-a-pickle": pickle.dumps(Marker(folder / "executed")),
        "weights-not-finite": weights[: -table.nbytes] + table.tobytes(),
    }
    for name in (*configs, *changed, "link-out"):
        shutil.copytree(folder / "half", folder / name)
    for name, text in configs.items():
        (folder / name / "config.json").write_text(text)
    for name, data in changed.items():
        (folder / name / "model.safetensors").write_bytes(data)
    (folder / "link-out/model.safetensors").unlink()
    (folder / "link-out/model.safetensors").symlink_to("../half/model.safetensors")
