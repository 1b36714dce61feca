"""Each file of each shipped checkpoint, damaged in each way: its row alone is lost, the others are the same bytes.

The rows are on 200 bytes of the zoo's own text; each is pinned by its ``sha256``, as in the shipped manifest.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tinyllm.eval import zoo
from tinyllm.eval.zoo import evaluate_manifest, score_entry
from tinyllm.formats.checkpoints import weights_sha256
from tinyllm.formats.manifest import load
from tinyllm.formats.tokens import open_tokens, write_tokens
from tinyllm.rng import PCG32, stream

EVALS = Path(__file__).parents[2] / "evals"
SHIPPED = EVALS / "checkpoints"
FILES = sorted(str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*") if path.is_file())


def checkpoint_of(file: str) -> str:
    """The folder of a file, or the file itself: what an entry's ``dir`` names."""
    return file.split("/", maxsplit=1)[0]


def name_of(file: str) -> str:
    return checkpoint_of(file).removesuffix(".safetensors")


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("shipped") / "t.bin"
    write_tokens(path, open_tokens(EVALS / "data/stories-heldout.bin").ids[:200], vocab_size=256, n_bytes=199)
    return path


@pytest.fixture
def checkpoints(tmp_path):
    """A copy that may be damaged: links, which a test replaces and never writes through."""
    shutil.copytree(SHIPPED, tmp_path / "checkpoints", copy_function=os.link)
    return tmp_path / "checkpoints"


def manifest(folder: Path, data: Path) -> dict:
    names = sorted({checkpoint_of(file) for file in FILES})
    entries = [
        {
            "name": name_of(name),
            "dir": str(folder / name),
            "sha256": weights_sha256(SHIPPED / name),
            "data": str(data),
            "max": 9,
        }
        for name in names
    ]
    return {"suite": {"name": "shipped"}, "entry": entries}


def run(folder: Path, data: Path) -> tuple[dict[str, str], dict[str, bytes]]:
    report, results = evaluate_manifest(manifest(folder, data), PCG32(0))
    rows = {row["name"]: json.dumps(row, sort_keys=True) for row in report["rows"]}
    return rows, {name: result.per_item.tobytes() for name, result in results.items()}


@pytest.fixture(scope="session")
def healthy(data):
    rows, items = run(SHIPPED, data)
    assert {json.loads(row)["status"] for row in rows.values()} == {"ok"}
    assert len(rows) == len({checkpoint_of(file) for file in FILES}) == 5
    return rows, items


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def flipped(content: bytes, place: int, bit: int = 0) -> bytes:
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


DAMAGES = {
    "deleted": Path.unlink,
    "truncated": lambda path: replace(path, path.read_bytes()[:-1]),
    "emptied": lambda path: replace(path, b""),
    "flipped": lambda path: replace(path, flipped(path.read_bytes(), -1 % path.stat().st_size)),
    "renamed": lambda path: path.rename(path.with_name(path.name + ".bak")),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_loses_its_row_and_no_other(checkpoints, data, healthy, file, damage):
    DAMAGES[damage](checkpoints / file)
    rows, items = run(checkpoints, data)
    lost = json.loads(rows.pop(name_of(file)))
    assert (lost["status"], lost["value"], lost["error"]["type"]) == ("error", None, "CheckpointError")
    assert lost["gate"]["answer"] == "not-evaluated"
    message = lost["error"]["message"]
    assert checkpoint_of(file) in message
    assert "\n" not in message
    assert rows == {name: row for name, row in healthy[0].items() if name != name_of(file)}
    assert items == {name: scores for name, scores in healthy[1].items() if name != name_of(file)}


def places(content: bytes, seed: int) -> list[int]:
    """Every byte of a small file; the header's length, the first and last and 30 others of a large one."""
    if len(content) < 400:
        return list(range(len(content)))
    rng = PCG32(seed)
    return [0, 7, 8, len(content) - 1, *(rng.bounded(len(content)) for _ in range(30))]


@pytest.mark.parametrize("file", FILES)
def test_no_flipped_bit_of_a_pinned_file_is_scored(tmp_path, data, file, monkeypatch):
    """Also where the files still load: a weight a little off, another recipe in the config."""
    original = (SHIPPED / file).read_bytes()
    raw = next(e for e in manifest(tmp_path, data)["entry"] if e["name"] == name_of(file))
    (tmp_path / file).parent.mkdir(exist_ok=True)
    for other in FILES:
        if other != file and checkpoint_of(other) == checkpoint_of(file):
            shutil.copy(SHIPPED / other, tmp_path / other)
    (entry,) = load({"entry": [raw]}).entries
    monkeypatch.setattr(zoo, "_score_text", lambda *_: pytest.fail("it was scored"))
    seeded = np.random.default_rng(0)
    for place in places(original, seed=1):
        (tmp_path / file).write_bytes(flipped(original, place, bit=int(seeded.integers(8))))
        row = score_entry(entry, stream(0, entry.name))
        assert (row["status"], row["error"]["type"]) == ("error", "CheckpointError"), place


def test_an_unpinned_flip_that_still_loads_is_another_checkpoint_in_the_row(checkpoints, data, healthy):
    """Without ``sha256`` in the manifest only a reader of the row can tell: its hash is not the healthy one."""
    path = checkpoints / "bigram/model.safetensors"
    content = path.read_bytes()
    replace(path, flipped(content, len(content) - 2, bit=6))
    (raw,) = (e for e in manifest(checkpoints, data)["entry"] if e["name"] == "bigram")
    del raw["sha256"]
    (row,) = evaluate_manifest({"entry": [raw]}, None)[0]["rows"]
    assert row["status"] == "ok"
    assert row["checkpoint"] != json.loads(healthy[0]["bigram"])["checkpoint"]


def test_the_shipped_manifest_pins_every_row():
    for entry in load(EVALS / "zoo.toml").entries:
        assert entry.sha256 == weights_sha256(entry.dir), entry.name
