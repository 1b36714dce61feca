"""--tinyllm-limit and its ini twin: the same part of the items for every row, more of them as it grows."""

import hashlib
import itertools
import json
import struct

import numpy as np
import pytest
from tests.plugin.toys import HALF_BPB, entry

from tinyllm.formats.tokens import write_tokens
from tinyllm.report.store import read_run

SUITE = """
[suite]
seed = 3
""" + (
    entry("half", "half")
    + entry("gpt", "gpt", ctx_len=16, stride=5)
    + entry("half-cloze", "half", choices="c.jsonl")
    + entry("gpt-cloze", "gpt", choices="c.jsonl")
)


def limited(project, *args):
    result = project.run("evals", "--tinyllm-overwrite", *args)
    report, results = read_run(project.path / "eval-report")
    return result, {row["name"]: row for row in report["rows"]}, results


def test_a_limit_keeps_so_many_items_of_each_row_and_the_row_says_so(project):
    project.manifest(SUITE)
    result, rows, _ = limited(project, "--tinyllm-limit=15")
    assert result.ret == 0
    assert {name: row["n"] for name, row in rows.items()} == dict.fromkeys(rows, 15)
    assert rows["half"]["settings"] == {"limit": 15, "limit_of": 199}
    assert rows["gpt"]["settings"] == {"ctx_len": 16, "stride": 5, "limit": 15, "limit_of": 199}
    assert rows["half-cloze"]["settings"] == {"max_len": None, "bos": False, "limit": 15, "limit_of": 40}
    assert project.reported.report["complete"] is True
    assert project.reported.report["run"]["limit"] == "15"


def by_hand(ids, key, most):
    """formats/pcg32.md, "Part of the items", without tinyllm."""
    digests = {one: hashlib.sha256(struct.pack("<Q", key) + b"limit\x00" + one.encode()).digest() for one in ids}
    chosen = sorted(ids, key=digests.__getitem__)[:most]
    return [one for one in ids if one in chosen]


def test_the_subset_is_the_one_that_the_format_states(project):
    project.manifest(SUITE)
    _, _, everything = limited(project)
    ids = everything["half-cloze"].ids
    _, _, results = limited(project, "--tinyllm-limit=15")
    key = int(project.reported.report["run"]["base_key"], 16)
    assert list(results["half-cloze"].ids) == by_hand(ids, key, 15)
    at = [ids.index(one) for one in results["half-cloze"].ids]
    assert at == sorted(at) != list(range(15))  # in file order, and not its head
    np.testing.assert_array_equal(results["half-cloze"].per_item, everything["half-cloze"].per_item[at])


def test_rows_of_one_task_have_the_same_items_and_smaller_subsets_lie_in_larger_ones(project):
    project.manifest(SUITE)
    sets = []
    for limit in ("5", "0.26", "12", "39", "40"):
        _, _, results = limited(project, f"--tinyllm-limit={limit}")
        assert results["half-cloze"].ids == results["gpt-cloze"].ids
        sets.append(set(results["half-cloze"].ids))
    assert [len(one) for one in sets] == [5, 11, 12, 39, 40]  # 0.26 of 40 is 10.4: rounded up
    assert all(small < large for small, large in itertools.pairwise(sets))


def test_another_seed_takes_other_items(project):
    chosen = []
    for seed in (3, 4):
        project.manifest(SUITE.replace("seed = 3", f"seed = {seed}"))
        chosen.append(limited(project, "--tinyllm-limit=15")[2]["half-cloze"].ids)
    assert chosen[0] != chosen[1]


def test_of_a_text_it_is_the_first_tokens_as_the_whole_text_scores_them(project):
    project.manifest(SUITE)
    _, whole_rows, whole = limited(project)
    _, rows, part = limited(project, "--tinyllm-limit=100")
    for name in ("half", "gpt"):
        np.testing.assert_allclose(part[name].per_item, whole[name].per_item[:100], rtol=0, atol=1e-6)
    assert rows["half"]["data"] == whole_rows["half"]["data"]  # the file's own hash
    assert rows["half"]["notes"]["n_bytes"] == 100
    assert rows["half"]["value"] == pytest.approx((50 * np.log2(510) + 50) / 100)  # 50 times y, 50 times x
    assert whole_rows["half"]["value"] == pytest.approx(HALF_BPB)


def test_bits_per_byte_of_a_part_need_tokens_of_one_byte(project):
    write_tokens(project.path / "evals/words.bin", np.arange(20, dtype=np.uint8), vocab_size=200, n_bytes=55)
    entries = entry("bits", "half", data="words.bin") + entry("nats", "half", data="words.bin", metric="nll")
    project.manifest(entries)
    result, rows, _ = limited(project, "--tinyllm-limit=10")
    assert result.ret == 1
    assert 'need tokens of one byte each; take metric = "nll"' in rows["bits"]["error"]["message"]
    assert (rows["nats"]["n"], rows["nats"]["notes"]["n_bytes"]) == (10, None)
    _, rows, _ = limited(project, "--tinyllm-limit=19")  # all there are: no part
    assert rows["bits"]["notes"]["n_bytes"] == 55


@pytest.mark.parametrize("limit", ["1000", "1.0", ".99999"])
def test_a_limit_that_leaves_nothing_out_changes_no_row(project, limit):
    project.manifest(SUITE)
    limited(project)
    rows, items = project.reported.row_bytes, project.reported.item_bytes
    limited(project, f"--tinyllm-limit={limit}")
    assert (project.reported.row_bytes, project.reported.item_bytes) == (rows, items)


@pytest.mark.parametrize(
    ("ini", "args", "n"),
    [
        ("tinyllm_limit = 7", (), 7),
        ("tinyllm_limit = 7", ("--tinyllm-limit=9",), 9),
        ("tinyllm_limit = 7", ("-otinyllm_limit=",), 40),
        ("tinyllm_limit = .5", ("-n1",), 20),
    ],
)
def test_the_option_goes_before_its_ini_twin_and_reaches_workers(project, ini, args, n):
    project.ini(ini)
    project.manifest(entry("a", "half", choices="c.jsonl"))
    assert limited(project, *args)[1]["a"]["n"] == n


@pytest.mark.parametrize("limit", ["0", "-1", "0.0", "1.5", "10%", "ten", "1e3", " 5", "nan"])
def test_what_is_no_limit_is_a_usage_error(project, limit):
    result = project.run("evals", f"--tinyllm-limit={limit}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: tinyllm_limit: a limit must be a number of items *, got {limit!r}"])
    assert not (project.path / "eval-report").exists()


def test_a_limited_run_does_not_replace_the_report_of_all_items(project):
    project.manifest(SUITE)
    project.run("evals")
    whole = (project.path / "eval-report/report.json").read_bytes()
    result = project.run("evals", "--tinyllm-limit=5")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["report: eval-report/report.partial.json", "this run is not of all items, and *report.json is: it was left*"]
    )
    assert (project.path / "eval-report/report.json").read_bytes() == whole
    partial = json.loads((project.path / "eval-report/report.partial.json").read_bytes())
    assert {row["n"] for row in partial["rows"]} == {5}


def test_a_limited_run_replaces_a_limited_report_and_a_whole_run_either(project):
    project.manifest(SUITE)
    for args, limit in ((["--tinyllm-limit=5"], "5"), (["--tinyllm-limit=0.5"], "1/2"), ([], None)):
        project.run("evals", *args)
        assert project.reported.report["run"]["limit"] == limit
        assert not (project.path / "eval-report/report.partial.json").exists()


def test_fault_row_57_a_baseline_of_other_items_is_refused_and_one_of_the_same_holds(project):
    project.manifest(entry("text", "half") + entry("cloze", "half", choices="c.jsonl"))
    assert project.run("evals", "--tinyllm-limit=20", "--tinyllm-save-baseline=quick").ret == 0
    assert project.run("evals", "--tinyllm-limit=20", "--tinyllm-baseline=quick").ret == 0
    for args, there_here in ((["--tinyllm-limit=21"], "20 there and 21 here"), ([], "20 there and absent here")):
        result = project.run("evals", "--tinyllm-baseline=quick", *args)
        assert result.ret == 1
        for name in ("text", "cloze"):
            result.stdout.fnmatch_lines(
                [f"FAILED {name}: not the measurement that baseline quick/0001 has: *limit {there_here}*"]
            )
