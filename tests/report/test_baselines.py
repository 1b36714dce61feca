"""Numbered folders: written once, read whole or refused."""

import subprocess

import numpy as np
import pytest

from tinyllm.errors import FormatError, UsageError
from tinyllm.report.assemble import report_document
from tinyllm.report.baselines import read_baseline, save_baseline
from tinyllm.report.rows import blank_row, missing_row
from tinyllm.result import Result

OK = {"metric": "acc", "value": 0.5, "lo": 0.25, "hi": 0.75, "n": 4, "status": "ok", "error": None}


def a_run(right=(0, 2), extra=None):
    rows = {"a": blank_row("a") | OK} | (extra or {})
    report = report_document(suite="s", seed=1, names=tuple(rows), rows=rows, run={"base_key": "0" * 16})
    return report, {
        "a": Result(0.5, 0.25, 0.75, 4, np.array([float(i in right) for i in range(4)]), ("q", "r", "s", "t"))
    }


def right_in(run):
    return np.flatnonzero(run.results["a"].per_item).tolist()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "evals" / "baselines"


def test_runs_are_numbered_and_the_newest_is_the_one_meant(root):
    folders = [save_baseline(root, "main", *a_run(right)) for right in ((0, 1), (0, 2), (0, 3))]
    assert [folder.relative_to(root).as_posix() for folder in folders] == ["main/0001", "main/0002", "main/0003"]
    newest = read_baseline(root, "main")
    assert (newest.label, right_in(newest), newest.results["a"].ids[0]) == ("main/0003", [0, 3], "q")
    assert newest.rows["a"] == a_run()[0]["rows"][0]
    second = read_baseline(root, "main/0002")
    assert (second.label, right_in(second)) == ("main/0002", [0, 2])


def test_a_saved_run_is_never_touched_again(root):
    first = save_baseline(root, "main", *a_run())
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in first.iterdir()}
    save_baseline(root, "main", *a_run((1, 2)))
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in first.iterdir()} == before
    assert before.keys() == {"report.json", "items.safetensors", "SHA256SUMS"}
    assert all(path.stat().st_mode & 0o222 == 0 for path in first.iterdir())
    assert [path.name for path in (root / "main").iterdir() if path.name.startswith(".")] == []


def test_a_number_that_another_run_takes_meanwhile_is_passed_over(root, monkeypatch):
    from tinyllm.report import baselines

    save_baseline(root, "main", *a_run((0, 1)))
    numbers_in, calls = baselines.numbers_in, []

    def late(folder):
        calls.append(folder)
        return [] if len(calls) == 1 else numbers_in(folder)

    monkeypatch.setattr(baselines, "numbers_in", late)
    assert save_baseline(root, "main", *a_run((1, 2))).name == "0002"
    assert right_in(read_baseline(root, "main/0001")) == [0, 1]


def test_numbers_go_on_after_9999_and_beside_stray_files(root):
    save_baseline(root, "main", *a_run()).rename(root / "main" / "9999")
    (root / "main" / "README").write_text("why")
    assert save_baseline(root, "main", *a_run((2, 3))).name == "10000"
    assert read_baseline(root, "main").label == "main/10000"


def test_the_sums_are_those_that_sha256sum_reads(root):
    folder = save_baseline(root, "main", *a_run())
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "items.safetensors: OK\nreport.json: OK\n")


@pytest.mark.parametrize("name", ["report.json", "items.safetensors", "SHA256SUMS"])
@pytest.mark.parametrize("harm", ["deleted", "truncated", "emptied", "one bit of every byte in turn"])
def test_a_harmed_file_is_refused_and_named_and_no_older_number_stands_in(root, name, harm):
    save_baseline(root, "main", *a_run())
    path = save_baseline(root, "main", *a_run()) / name
    path.chmod(0o644)
    whole = path.read_bytes()
    if harm == "deleted":
        path.unlink()
        with pytest.raises(FormatError, match=rf"main/0002/{name}: must be a readable file, got 'No such file"):
            read_baseline(root, "main")
        return
    step = max(1, len(whole) // 100)
    flipped = (whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(0, len(whole), step))
    for data in {"truncated": [whole[:-1]], "emptied": [b""]}.get(harm, flipped):
        path.write_bytes(data)
        if harm == "truncated" and name == "SHA256SUMS":
            continue  # a last newline: the sums are as they were
        with pytest.raises(FormatError, match=r"main/0002/.*(SHA|sums|ASCII)"):
            read_baseline(root, "main")


def test_what_is_not_there_is_a_usage_error_that_says_what_is(root):
    with pytest.raises(UsageError, match=r"there is no baseline 'main'; save one with --tinyllm-save-baseline main"):
        read_baseline(root, "main")
    save_baseline(root, "main", *a_run())
    with pytest.raises(UsageError, match=r"there is no baseline 'mian'; did you mean 'main'\?"):
        read_baseline(root, "mian")
    with pytest.raises(UsageError, match=r"baseline 'main' has no number 0007; it has 0001"):
        read_baseline(root, "main/0007")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a b", "main/1", "main/", "/etc", "й", "x" * 65, "a/0001/b", "a\n"]
)
def test_a_name_that_is_none_is_refused(root, name):
    for call in (lambda: read_baseline(root, name), lambda: save_baseline(root, name, *a_run())):
        with pytest.raises(UsageError, match=r"a baseline's name must be NAME or NAME/0001"):
            call()


def test_a_number_is_given_and_not_chosen(root):
    with pytest.raises(UsageError, match=r"without a number, which is given to it, got 'main/0001'"):
        save_baseline(root, "main/0001", *a_run())
    assert not root.exists()


def test_a_run_that_is_not_complete_is_no_baseline(root):
    report, results = a_run(extra={"b": missing_row("b", selected=False), "c": missing_row("c", selected=True)})
    with pytest.raises(FormatError, match=r"main: a baseline must be a complete run, but not run was b, c"):
        save_baseline(root, "main", report, results)
    assert not root.exists()


def test_a_folder_that_cannot_be_written_is_one_sentence_and_leaves_nothing(root):
    root.mkdir(parents=True)
    (root / "main").write_text("a file in the way")
    with pytest.raises(FormatError, match=r"must be writable"):
        save_baseline(root, "main", *a_run())
    assert [path.name for path in root.iterdir()] == ["main"]
