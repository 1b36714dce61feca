"""What CI's check of the skipped tests sees, from reports that pytest itself wrote with two workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.plugin.once import once

SCRIPT = Path(__file__).with_name("check_skips.py")

TESTS = """
import pytest
class TestClass:
    class TestInner:
        @pytest.mark.parametrize("x", ["a[b]", "c.d"])
        def test_body(self, x): pytest.skip("no, not " + x)
@pytest.mark.xfail(reason="known")
def test_expected(): raise ValueError
@pytest.fixture
def absent(): pytest.importorskip("nosuchmodule")
def test_fixture(absent): pass
def test_fine(): pass
"""
MODULE = "import pytest\npytest.importorskip('nosuchmodule', reason=\"it's (absent), here\")\n"

SKIPS = [
    ("tests/sub/test_a.py::TestClass::TestInner::test_body[a[b]]", "no, not a[b]"),
    ("tests/sub/test_a.py::TestClass::TestInner::test_body[c.d]", "no, not c.d"),
    ("tests/sub/test_a.py::test_fixture", "could not import 'nosuchmodule': No module named 'nosuchmodule'"),
    ("tests/test_b.py", "it's (absent), here"),
]


def run(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def make_report(root: Path) -> None:
    (root / "tests/sub").mkdir(parents=True)
    (root / "tests/sub/test_a.py").write_text(TESTS, encoding="utf-8")
    (root / "tests/test_b.py").write_text(MODULE, encoding="utf-8")
    ran = run(["-m", "pytest", "tests", "-n2", "--junitxml=report.xml", "-o", "junit_family=xunit1"], root)
    assert "1 passed, 4 skipped, 1 xfailed" in ran.stdout, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return once(tmp_path_factory, "skips", make_report) / "report.xml"


@pytest.fixture
def check(report, tmp_path):
    """Run a copy of the script beside an allowed_skips.txt with these lines; give its exit status and its lines."""

    def checked(*allowed: str, reports: tuple[Path, ...] = (report,)) -> tuple[int, list[str]]:
        shutil.copy(SCRIPT, tmp_path)
        (tmp_path / "allowed_skips.txt").write_text("# why\n\n" + "\n".join(allowed), encoding="utf-8")
        ran = run(["check_skips.py", *map(str, reports)], tmp_path)
        return ran.returncode, (ran.stdout + ran.stderr).splitlines()

    return checked


def test_every_skip_is_named_with_its_id_and_reason(check):
    status, lines = check()
    assert status == 1
    assert sorted(lines[:-1]) == [f"skipped, and not in allowed_skips.txt: {test}\t{reason}" for test, reason in SKIPS]
    assert lines[-1] == "skips: 4, of which not allowed: 4"


def test_allowed_skips_pass(check):
    status, lines = check(*(f"{test}\t{reason}" for test, reason in SKIPS))
    assert (status, lines) == (0, ["skips: 4, of which not allowed: 0"])


def test_a_star_stands_for_anything_and_brackets_for_themselves(check):
    status, _ = check(
        "tests/sub/*::test_body[*]\tno, not *", "*test_fixture\tcould not import 'nosuchmodule': *", "*\tit's*"
    )
    assert status == 0


def test_an_allowed_test_that_gives_another_reason_is_not_allowed(check):
    status, lines = check(
        "*\tit's*", "*\tno, not a[b]", "tests/sub/test_a.py::test_fixture\tno GPU", "*::test_body*\t*c.d"
    )
    assert status == 1
    assert [line for line in lines if line.startswith("skipped")] == [
        "skipped, and not in allowed_skips.txt: tests/sub/test_a.py::test_fixture\t"
        "could not import 'nosuchmodule': No module named 'nosuchmodule'"
    ]
    assert (
        "note: allowed_skips.txt allows a skip that did not happen: tests/sub/test_a.py::test_fixture\tno GPU" in lines
    )


def test_a_report_without_tests_is_an_error(check, tmp_path):
    empty = tmp_path / "empty.xml"
    empty.write_text("<testsuites><testsuite/></testsuites>", encoding="utf-8")
    status, lines = check(reports=(empty,))
    assert (status, lines) == (1, [f"{empty}: must report at least one test, got none"])


def test_a_line_without_a_reason_is_an_error(check):
    status, lines = check("tests/test_b.py")
    assert status == 1
    assert "line 3: must be a test's id, a tab and a reason, got 'tests/test_b.py'" in lines[0]
