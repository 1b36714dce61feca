"""Checkpoints: deterministic out, strict in, and nothing in a file is ever executed."""

import hashlib
import io
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import load as library_load
from safetensors.numpy import save as library_save

from tinyllm.errors import CheckpointError
from tinyllm.formats import checkpoints
from tinyllm.formats.config import integer, number, one_of, string, strings
from tinyllm.formats.tensors import serialize

CONFIG = {"tl_arch": "toy", "dim": 3}
SPEC = {"weight": ((2, 3), checkpoints.FLOATS), "bias": ((3,), "float32"), "ids": ((4,), "int64")}


def tensors():
    return {
        "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "bias": np.array([0.5, -0.0, 2], np.float32),
        "ids": np.arange(4),
    }


@pytest.fixture
def folder(tmp_path):
    checkpoints.save(tmp_path / "toy", CONFIG, tensors())
    return tmp_path / "toy"


def test_a_saved_checkpoint_loads_to_the_bit(folder):
    assert checkpoints.read_config(folder) == CONFIG
    loaded = checkpoints.load_tensors(folder, SPEC)
    assert list(loaded) == list(SPEC)
    for name, array in tensors().items():
        assert (loaded[name].dtype, loaded[name].tobytes()) == (array.dtype, array.tobytes())


def test_the_library_reads_the_same_tensors(folder):
    library = library_load((folder / "model.safetensors").read_bytes())
    assert library.keys() == SPEC.keys()
    for name, array in tensors().items():
        assert_array_equal(library[name], array)


def test_without_metadata_the_bytes_are_the_librarys_own():
    assert serialize(tensors()) == library_save(tensors())


def test_equal_content_gives_equal_bytes_whatever_its_order():
    backwards = dict(reversed(tensors().items()))
    meta = dict.fromkeys("abcdefgh", "1")
    assert serialize(tensors(), meta) == serialize(backwards, dict(reversed(meta.items())))


def test_loaded_arrays_are_mapped_and_writing_them_never_reaches_the_file(folder):
    before = (folder / "model.safetensors").read_bytes()
    weight = checkpoints.load_tensors(folder, SPEC)["weight"]
    base = weight
    while not isinstance(base, np.memmap):
        base = base.base
    weight[:] = 9
    assert (folder / "model.safetensors").read_bytes() == before


def test_float16_on_disk_loads_as_float32_unless_told_not_to(tmp_path):
    weight = np.array([[1.0, 2**-14, 65504], [0.1, -3, 0]], np.float32)
    checkpoints.save(tmp_path, {"tl_arch": "toy"}, {"weight": weight}, dtype="float16")
    spec = {"weight": SPEC["weight"]}
    assert_array_equal(checkpoints.load_tensors(tmp_path, spec)["weight"], weight.astype(np.float16).astype(np.float32))
    assert checkpoints.load_tensors(tmp_path, spec)["weight"].dtype == np.float32
    assert checkpoints.load_tensors(tmp_path, spec, upcast=False)["weight"].dtype == np.float16


def test_scalars_and_empty_tensors_round_trip(tmp_path):
    arrays = {"scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32)}
    checkpoints.save(tmp_path, {"tl_arch": "toy"}, arrays)
    loaded = checkpoints.load_tensors(tmp_path, {"scalar": ((), "float32"), "empty": ((0, 3), "float32")})
    assert (loaded["scalar"].shape, float(loaded["scalar"]), loaded["empty"].shape) == ((), 2.5, (0, 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("weight"), "missing tensor 'weight'"),
        (lambda t: t.update(weigth=t.pop("weight")), "missing tensor 'weight'; did you mean 'weigth'"),
        (lambda t: t.update(biass=t["bias"]), "unknown tensor 'biass'; did you mean 'bias'"),
        (lambda t: t.update(weight=t["weight"].T), r"tensor 'weight': must have shape \(2, 3\), got \(3, 2\)"),
        (lambda t: t.update(ids=t["ids"].astype("i4")), "tensor 'ids': must have dtype int64, got int32"),
        (
            lambda t: t.update(weight=t["weight"].astype("f8")),
            "tensor 'weight': must have dtype float32 or float16, got float64",
        ),
        (lambda t: t["weight"].__setitem__((1, 2), np.nan), r"tensor 'weight': must be finite, got nan at \[1, 2\]"),
        (lambda t: t["bias"].__setitem__(0, -np.inf), r"tensor 'bias': must be finite, got -inf at \[0\]"),
    ],
)
def test_a_tensor_that_is_not_as_the_family_has_it_is_named(folder, change, message):
    changed = tensors()
    change(changed)
    (folder / "model.safetensors").write_bytes(serialize(changed))
    with pytest.raises(CheckpointError, match=rf"model\.safetensors: .*{message}"):
        checkpoints.load_tensors(folder, SPEC)


def test_a_dtype_that_numpy_lacks_is_named(folder):
    data = (folder / "model.safetensors").read_bytes()
    narrow = data.replace(b'"weight":{"dtype":"F32","shape":[2,3]', b'"weight":{"dtype":"BF16","shape":[4,3]')
    size = int.from_bytes(data[:8], "little") + len(narrow) - len(data)
    (folder / "model.safetensors").write_bytes(size.to_bytes(8, "little") + narrow[8:])
    spec = {**SPEC, "weight": ((4, 3), "float32")}
    with pytest.raises(CheckpointError, match="tensor 'weight': must have dtype float32, got BF16"):
        checkpoints.load_tensors(folder, spec)


class Marker:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    return buffer.getvalue()


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(("wrap", "what"), [(bytes, "a pickle"), (zipped, r"a zip \(torch.save writes one\)")])
def test_fault_row_65_a_pickle_in_disguise_is_named_and_never_run(folder, tmp_path, wrap, what, protocol):
    marker = tmp_path / "executed"
    payload = pickle.dumps({"weight": Marker(marker)}, protocol=protocol)
    (folder / "model.safetensors").write_bytes(wrap(payload))
    with pytest.raises(CheckpointError, match=f"this is {what}, not safetensors; nothing is unpickled"):
        checkpoints.load_tensors(folder, SPEC)
    assert not marker.exists()
    pickle.loads(payload)  # noqa: S301  (ours: it shows that the marker works)
    assert marker.exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("exists", [True, False], ids=["to-a-file", "dangling"])
def test_fault_row_65_a_link_out_of_the_folder_is_refused(folder, tmp_path, name, exists):
    outside = tmp_path / "outside"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    if not exists:
        outside.unlink()
    read = checkpoints.read_config if name == "config.json" else lambda path: checkpoints.load_tensors(path, SPEC)
    for reader in (read, checkpoints.weights_sha256):
        if reader is checkpoints.weights_sha256 and name == "config.json" and not exists:
            continue  # nothing there to hash
        with pytest.raises(CheckpointError, match=f"{name}: must lie in its folder, got a link to .*outside"):
            reader(folder)


def test_a_link_inside_the_folder_and_a_linked_folder_are_fine(folder, tmp_path):
    (folder / "model.safetensors").rename(folder / "weights.bin")
    (folder / "model.safetensors").symlink_to("weights.bin")
    (tmp_path / "alias").symlink_to(folder)
    assert checkpoints.load_tensors(tmp_path / "alias", SPEC).keys() == SPEC.keys()


def damaged(data: bytes):
    """A file cut at many places, and with one bit flipped in each byte of its header."""
    yield from (data[:cut] for cut in (0, 7, 8, 40, len(data) - 1))
    for place in range(8 + int.from_bytes(data[:8], "little")):
        flipped = bytearray(data)
        flipped[place] ^= 4
        yield bytes(flipped)


def test_a_damaged_file_is_refused(folder):
    for broken in damaged((folder / "model.safetensors").read_bytes()):
        (folder / "model.safetensors").write_bytes(broken)
        with pytest.raises(CheckpointError):
            checkpoints.load_tensors(folder, SPEC)


def test_a_header_length_that_looks_like_a_pickle_still_loads(tmp_path):
    for extra in range(700):
        data = serialize({"a": np.zeros(1, np.float32)}, {"pad": "x" * extra})
        if data.startswith(b"\x80\x02"):
            break
    assert struct.unpack("<Q", data[:8]) == (640,)
    (tmp_path / "a.safetensors").write_bytes(data)
    assert checkpoints.load_tensors(tmp_path / "a.safetensors", {"a": ((1,), "float32")})["a"].tolist() == [0]


def test_a_one_file_checkpoint_carries_its_config(tmp_path):
    config = {"tl_arch": "ngram", "order": 3, "discounts": [0.5, 1], "name": "x"}
    path = tmp_path / "ngram" / "model.safetensors"
    checkpoints.save_file(path, config, {"counts": np.arange(3)})
    assert checkpoints.read_config(path) == checkpoints.read_config(path.parent) == config
    assert checkpoints.read_header(path).metadata["order"] == "3"
    assert_array_equal(checkpoints.load_tensors(path.parent, {"counts": ((3,), "int64")})["counts"], [0, 1, 2])


def test_a_one_file_checkpoint_without_tl_arch_or_with_broken_values_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(serialize({"a": np.zeros(1)}, {"format": "pt"}))
    with pytest.raises(CheckpointError, match=r"must name its tl_arch in the metadata, got keys \['format'\]"):
        checkpoints.read_config(path)
    path.write_bytes(serialize({"a": np.zeros(1)}, {"tl_arch": "ngram", "order": "three"}))
    with pytest.raises(CheckpointError, match="metadata order, column 1: must be JSON"):
        checkpoints.read_config(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[1]", r"config.json: must be a JSON object, got \[1\]"),
        (b'{"tl_arch": "toy",}', "config.json: line 1, column [0-9]+: must be JSON"),
        (b'{"dim": NaN}', "config.json: dim: must be a finite number, got nan"),
        (b'{"dim": 1, "dim": 2}', "the key 'dim' stands there twice"),
        (b"\xff\xfe", "config.json: must be UTF-8, got byte 0xff"),
        (b"", "config.json: line 1, column 1: must be JSON"),
    ],
)
def test_a_broken_config_is_named(folder, text, message):
    (folder / "config.json").write_bytes(text)
    with pytest.raises(CheckpointError, match=message):
        checkpoints.read_config(folder)


def test_a_config_with_a_byte_order_mark_and_crlf_reads(folder):
    (folder / "config.json").write_bytes(b'\xef\xbb\xbf{\r\n"tl_arch": "toy"\r\n}')
    assert checkpoints.read_config(folder) == {"tl_arch": "toy"}


def test_a_folder_that_holds_no_checkpoint_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"must hold config\.json"):
        checkpoints.read_config(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}.safetensors").write_bytes(serialize({}, {"tl_arch": "ngram"}))
    with pytest.raises(CheckpointError, match=r"exactly one \.safetensors file"):
        checkpoints.read_config(tmp_path)
    with pytest.raises(CheckpointError, match=r"must hold model.safetensors .*, got \['a.safetensors', 'b.safetensor"):
        checkpoints.weights_path(tmp_path)
    with pytest.raises(CheckpointError, match="gone: must be a checkpoint folder or file, got nothing there"):
        checkpoints.read_config(tmp_path / "gone")


KEYS = {
    "dim": integer(1),
    "rate": number(0, 1, required=False),
    "act": one_of("gelu", "relu", required=False),
    "bos": one_of(True, False, required=False),
    "name": string(required=False),
    "words": strings(required=False),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dmi": 3}, "config: unknown key 'dmi'; did you mean 'dim'"),
        ({"dim": None}, "config.dim: must be an integer of at least 1, got None"),
        ({"dim": 0}, "config.dim: must be an integer of at least 1, got 0"),
        ({"dim": True}, "config.dim: must be an integer of at least 1, got True"),
        ({"dim": 3.0}, "config.dim: must be an integer of at least 1, got 3.0"),
        ({"rate": 1.5}, "config.rate: must be a number in 0 … 1, got 1.5"),
        ({"rate": True}, "config.rate: must be a number in 0 … 1, got True"),
        ({"act": "gleu"}, "config.act: must be one of 'gelu', 'relu', got 'gleu'"),
        ({"bos": 1}, "config.bos: must be one of True, False, got 1"),
        ({"name": ""}, "config.name: must be a non-empty string, got ''"),
        ({"words": ["a", 1]}, r"config.words: must be a list of strings, got \['a', 1\]"),
    ],
)
def test_a_config_key_that_breaks_its_familys_rule_is_named(change, message):
    good = {**CONFIG, "rate": 1, "act": "gelu", "bos": True, "name": "x", "words": ["a"]}
    checkpoints.check_config(good, KEYS, "toy")
    with pytest.raises(CheckpointError, match=f"toy: {message}"):
        checkpoints.check_config({**good, **change}, KEYS, "toy")


def test_a_missing_config_key_is_named():
    with pytest.raises(CheckpointError, match="config: missing key 'dim', which must be an integer of at least 1"):
        checkpoints.check_config({"tl_arch": "toy"}, KEYS, "toy")


def test_tl_arch_is_the_first_key_on_disk(tmp_path):
    checkpoints.save(tmp_path, {"dim": 3, "tl_arch": "toy"}, {})
    assert (tmp_path / "config.json").read_text(encoding="utf-8") == '{\n  "tl_arch": "toy",\n  "dim": 3\n}\n'


@pytest.mark.parametrize(
    ("config", "array", "options", "message"),
    [
        ({"dim": 3}, np.zeros(1), {}, "must name its family in 'tl_arch', got None"),
        (CONFIG, np.array([1, np.nan]), {}, r"tensor 'a': must be finite, got nan at \[1\]"),
        (CONFIG, np.array([1e5]), {"dtype": "float16"}, r"tensor 'a': must be finite, got inf at \[0\]"),
        (CONFIG, np.zeros(1), {"dtype": "bfloat16"}, r"dtype must be one of \('float32', 'float16'\), got 'bfloat16'"),
        (CONFIG, np.array(["a"]), {}, "tensor 'a' must have one of the dtypes .*, got <U1"),
        ({**CONFIG, "rate": float("nan")}, np.zeros(1), {}, "Out of range float values are not JSON compliant"),
    ],
)
def test_nothing_is_saved_that_would_not_load(tmp_path, config, array, options, message):
    with pytest.raises(ValueError, match=message):
        checkpoints.save(tmp_path / "toy", config, {"a": array}, **options)
    assert not (tmp_path / "toy").exists()


def test_a_checkpoint_is_named_by_the_hash_of_its_config_and_weights(folder):
    files = (folder / "config.json").read_bytes() + (folder / "model.safetensors").read_bytes()
    assert checkpoints.weights_sha256(folder) == hashlib.sha256(files).hexdigest()
    weights = folder / "model.safetensors"
    assert checkpoints.weights_sha256(weights) == hashlib.sha256(weights.read_bytes()).hexdigest()
    for name in ("vocab.json", "merges.txt", "README.md"):
        (folder / name).write_text(name)
    assert checkpoints.weights_sha256(folder) == hashlib.sha256(files + b"merges.txt" + b"vocab.json").hexdigest()


def test_reading_checkpoints_loads_no_torch():
    code = "import sys, tinyllm.formats.checkpoints as c; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
