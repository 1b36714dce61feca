"""`evaluate` and `checkpoint`: evals in plain Python."""

import pytest
from tests.plugin.toys import HALF_BPB, entry

THREE = entry("uniform") + entry("half", "half") + entry("cloze", "half", choices="c.jsonl", min=0.7)


@pytest.fixture
def plain(project):
    """Run a plain eval file alone beside the three entries."""
    project.manifest(THREE)

    def run(text, *args, name="evals/test_plain.py"):
        project.file(name, "import pytest\n" + text)
        return project.run(name, *args)

    return run


def test_evaluate_gives_value_interval_count_items_and_row(plain):
    plain(
        f"""
def test_plain(evaluate):
    uniform, half, cloze = evaluate("uniform"), evaluate("half"), evaluate("cloze")
    assert (uniform.value, uniform.lo, uniform.hi, uniform.n) == (8, 8, 8, 199)
    assert half.value == pytest.approx({HALF_BPB!r}, abs=1e-6)
    assert half.lo < half.value < half.hi < uniform.lo
    assert cloze.per_item.tolist() == [1, 1, 1, 0] * 10
    assert (len(cloze.ids), uniform.ids) == (40, None)
    assert cloze.row["metric"] == "acc"
    assert repr(uniform) == "<uniform: bpb 8.0 [8.0, 8.0], n = 199>"
"""
    ).assert_outcomes(passed=1)


def test_rows_of_plain_evals_are_in_the_report_and_the_others_were_not_selected(plain, project):
    plain("def test_plain(evaluate): evaluate('half')\n").assert_outcomes(passed=1)
    assert [(row["name"], row["status"]) for row in project.reported.report["rows"]] == [
        ("uniform", "skipped"),
        ("half", "ok"),
        ("cloze", "skipped"),
    ]


def test_a_row_asked_for_by_several_tests_is_scored_once_and_is_one_row(project):
    project.manifest(THREE)
    project.file(
        "evals/conftest.py",
        """
import pytest
@pytest.fixture(scope="session", autouse=True)
def spy():
    from tinyllm.eval import zoo
    with pytest.MonkeyPatch.context() as patch:
        scored = zoo.evaluate_entry
        def spied(entry, *args, **keys):
            print("scores", entry.name)
            return scored(entry, *args, **keys)
        patch.setattr(zoo, "evaluate_entry", spied)
        yield
""",
    )
    project.file(
        "evals/test_plain.py", "def test_plain(evaluate): evaluate('half'); evaluate.compare('half', 'uniform')\n"
    )
    result = project.run("evals", "-s", "--tinyllm-undecided=warn")
    result.assert_outcomes(passed=4, warnings=1)
    for name in ("uniform", "half", "cloze"):
        assert result.stdout.str().count(f"scores {name}") == 1
    assert list(project.reported.rows) == ["uniform", "half", "cloze"]


def test_compare_is_the_paired_test(plain):
    # of the 199 NLLs, half has 99 at ln 2 and 100 at ln 510 where uniform has ln 256: the difference is far from noise
    plain(
        """
import math
def test_plain(evaluate):
    found = evaluate.compare("half", "uniform")
    assert found.delta == pytest.approx((99 * math.log(2) + 100 * math.log(510)) / 199 - math.log(256), abs=1e-6)
    assert (found.n, found.better) == (199, "a")
    assert found.p < 0.01
    back = evaluate.compare("uniform", "half")
    assert (back.delta, back.better, back.p) == (-found.delta, "b", found.p)
    assert evaluate.compare("half", "half").better == "neither"
"""
    ).assert_outcomes(passed=1)


def test_compare_refuses_rows_of_another_metric(plain):
    result = plain("def test_plain(evaluate): evaluate.compare('half', 'cloze')\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a paired comparison needs the same metric, got 'bpb' for half and 'acc'*"])


def test_a_name_that_is_no_entry_fails_with_the_nearest(plain):
    result = plain("def test_plain(evaluate): evaluate('unifrom')\ndef test_model(checkpoint): checkpoint('haft')\n")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["E *LookupError: the manifest *evals/zoo.toml has no entry 'unifrom'; did you mean 'uniform'[?]"]
    )
    result.stdout.fnmatch_lines(["E *LookupError: *no entry 'haft'; did you mean 'half'[?]"])


def test_assert_gate_holds_a_plain_eval_to_the_entrys_gate(plain):
    result = plain("def test_plain(evaluate): evaluate('cloze').assert_gate()\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["gate undecided: cloze: acc 0.75*"])


def test_what_cannot_be_scored_fails_or_skips_a_plain_eval(plain, project):
    project.manifest(entry("broken", "broken") + entry("weird", "weird") + entry("typo", stide=1))
    project.file(
        "evals/test_plain.py",
        """
import pytest
@pytest.mark.parametrize("name", ["broken", "weird", "typo"])
def test_evaluate(name, evaluate): evaluate(name)
@pytest.mark.parametrize("name", ["broken", "weird", "typo"])
def test_checkpoint(name, checkpoint): checkpoint(name)
""",
    )
    result = project.run("evals/test_plain.py", "-rs")
    result.assert_outcomes(failed=4, skipped=2)
    result.stdout.fnmatch_lines(["broken: CheckpointError: *evals/broken: must hold model.safetensors *"])
    result.stdout.fnmatch_lines(["typo: FormatError: *unknown key 'stide'; did you mean 'stride'[?]"])
    result.stdout.fnmatch_lines(["SKIPPED*weird: skipped: UnknownFamilyError: unknown family 'rwkv'*"])
    result.stdout.fnmatch_lines(["SKIPPED*weird: unknown family 'rwkv'*"])
    result.stdout.no_fnmatch_line("*.py:*: in *")  # no traceback of ours


def test_checkpoint_is_the_loaded_model(plain):
    plain(
        """
def test_plain(checkpoint):
    model = checkpoint("uniform")
    assert model.nll([1, 2, 3]).tolist() == pytest.approx([5.545177444479562] * 2)
    assert checkpoint("half") is checkpoint("cloze")
"""
    ).assert_outcomes(passed=1)


def test_an_entry_of_ones_own_is_one_more_row(plain, project):
    plain(
        """
from dataclasses import replace
def test_plain(zoo_entry, evaluate):
    if zoo_entry.name == "half":
        own = evaluate(replace(zoo_entry, name="half-ppl", metric="ppl"))
        assert own.value == pytest.approx(2 ** (evaluate(zoo_entry).value))
"""
    ).assert_outcomes(passed=3)
    assert list(project.reported.rows) == ["uniform", "half", "cloze", "half-ppl"]


def test_fault_row_54_an_entry_of_ones_own_needs_a_name_of_its_own(plain):
    result = plain(
        """
from dataclasses import replace
def test_plain(zoo_entry, evaluate):
    evaluate(replace(zoo_entry, task="other"))
""",
        "-k",
        "half",
    )
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(
        ["E *ValueError: an entry's name must be its own, got 'half', which is another entry; *"]
    )


def test_a_fixture_of_the_users_own_may_evaluate(plain, project):
    plain("@pytest.fixture\ndef half(evaluate): return evaluate('half')\ndef test_plain(half): assert half.n == 199\n")
    assert project.reported.rows["half"]["status"] == "ok"


def test_an_eval_outside_the_manifests_folder_is_reported_too(plain, project):
    plain("def test_plain(evaluate): evaluate('half')\n", name="other/test_plain.py").assert_outcomes(passed=1)
    assert project.reported.rows["half"]["status"] == "ok"


def test_without_a_manifest_the_fixtures_say_where_it_was_looked_for(plain, project):
    (project.path / "evals/zoo.toml").unlink()
    result = plain("def test_plain(evaluate): pass\ndef test_model(checkpoint): pass\n", name="other/test_plain.py")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*no manifest: *evals/zoo.toml does not exist; name one with --tinyllm-manifest"])


def test_a_test_by_entry_may_do_without_the_checkpoint_fixture(plain, project):
    plain("def test_plain(zoo_entry, evaluate): assert evaluate(zoo_entry).n in (199, 40)\n").assert_outcomes(passed=3)
    assert project.reported.report["complete"] is True


def test_a_checkpoint_that_is_not_the_pinned_one_is_not_handed_out(project):
    project.manifest(entry("a", sha256="0" * 64))
    project.file("evals/test_plain.py", "def test_a(checkpoint):\n    checkpoint('a')\n")
    result = project.run("evals/test_plain.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a: CheckpointError: *uniform: must hash to the manifest's sha256 0000*"])
