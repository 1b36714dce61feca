"""What a run finds does not depend on how it is run."""

import tomllib

import pytest
from tests.plugin.conftest import MODES
from tests.plugin.toys import SUITE

from tinyllm.formats.report import read_items, read_report


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "n0"])
def test_rows_and_items_are_the_same_bytes_in_every_mode(runs, mode):
    assert runs[mode].row_bytes == runs["n0"].row_bytes
    assert runs[mode].item_bytes == runs["n0"].item_bytes


def test_the_rows_that_agree_are_of_every_kind(runs):
    rows = runs["n2"].rows
    found = {(row["status"], row["arch"], row["metric"]) for row in rows.values()}
    assert {
        ("ok", "bigram", "bpb"),
        ("ok", "bigram", "ppl"),
        ("ok", "bigram", "acc"),
        ("ok", "gpt", "bpb"),
        ("ok", "gpt", "acc_norm"),
        ("error", "bigram", None),
        ("error", None, None),
        ("skipped", "rwkv", None),
    } <= found
    assert {row["gate"]["answer"] for row in rows.values() if row["gate"]} == {
        "pass",
        "fail",
        "undecided",
        "not-evaluated",
    }


@pytest.mark.parametrize("mode", MODES)
def test_the_exit_status_and_the_counts_are_the_same_in_every_mode(runs, mode):
    # fail: half-a undecided, uniform-c, typo, four broken
    assert runs[mode].status == 1, runs[mode].output
    assert "7 failed, 7 passed, 1 skipped" in runs[mode].output


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_in_manifest_order_and_the_report_is_whole(runs, mode):
    report = read_report(runs[mode].folder / "report.json")
    names = [row["name"] for row in report["rows"]]
    assert names == [entry["name"] for entry in tomllib.loads(SUITE)["entry"]]
    assert report["complete"] is True
    assert (report["suite"], report["seed"]) == ("toys", 3)


@pytest.mark.parametrize("mode", MODES)
def test_every_row_with_a_number_has_its_items_beside_the_report(runs, mode):
    items = read_items(runs[mode].folder / "items.safetensors")
    counts = {name: row["n"] for name, row in runs[mode].rows.items() if row["status"] == "ok"}
    assert {name: len(scores) for name, (scores, _) in items.items()} == counts


@pytest.mark.parametrize(("mode", "workers"), [("n0", 0), ("n1", 1), ("n2", 2), ("auto", 1), ("no-xdist", 0)])
def test_the_run_says_how_many_workers_it_had(runs, mode, workers):
    assert runs[mode].report["run"]["workers"] == workers


@pytest.mark.parametrize("mode", MODES)
def test_fault_row_68_one_process_writes_the_report_as_rows_come_and_it_is_no_worker(runs, mode):
    (controller,) = [process for process, _ in runs[mode].noted("controller")]
    files = ("items.safetensors", "report.json")
    writes = [written for written in runs[mode].noted("writes") if written[1] in files]
    assert {process for process, _ in writes} == {controller}
    scored = sum(row["status"] == "ok" for row in runs[mode].rows.values())
    assert [name for _, name in writes].count("items.safetensors") >= scored
    assert [name for _, name in writes].count("report.json") >= len(runs[mode].rows)
    assert [name for _, name in writes][-2:] == list(files)


@pytest.mark.parametrize("mode", MODES)
def test_after_the_run_nothing_lies_beside_the_report(runs, mode):
    own = {"spy.log", "junit.xml", "ran.json"}
    assert {path.name for path in runs[mode].folder.iterdir()} - own == {"items.safetensors", "report.json"}
