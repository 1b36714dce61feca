"""Fail when a test was skipped that CI does not allow to be: python tests/check_skips.py REPORT.xml …

The reports are pytest's own (`--junitxml=REPORT.xml -o junit_family=xunit1`: only xunit1 has the file's name). The
controller writes them, whatever the number of workers. What is allowed is in allowed_skips.txt, beside this file.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

ALLOWED = Path(__file__).with_name("allowed_skips.txt")


def read_allowed(path: Path) -> list[tuple[str, str]]:
    """The (test id, reason) patterns of the file; blank lines and lines that begin with # are left out."""
    allowed = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            test, tab, reason = line.partition("\t")
            if not (test and tab and reason.strip()):
                raise SystemExit(f"{path}: line {number}: must be a test's id, a tab and a reason, got {line!r}")
            allowed.append((test, reason))
    return allowed


def matches(pattern: str, text: str) -> bool:
    """Whether the text is the pattern, where * stands for anything ([ and ] are themselves: ids hold them)."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def test_id(case: ElementTree.Element) -> str:
    """The id as pytest prints it: the file, the classes, the name with its parameters."""
    file, name = case.get("file", ""), case.get("name", "")
    module = file.removesuffix(".py").replace("/", ".")
    if not case.get("classname"):  # the module itself was skipped; its name is the dotted path
        return file or name.replace(".", "/") + ".py"
    classes = case.get("classname", "").removeprefix(module).strip(".")
    return "::".join([file, *classes.split("."), name] if classes else [file, name])


def skipped(report: Path) -> Iterator[tuple[str, str]]:
    """The (test id, reason) of each skipped test in the report; an expected failure is no skip."""
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 - pytest wrote it a moment ago
    if not cases:
        raise SystemExit(f"{report}: must report at least one test, got none")
    for case in cases:
        for skip in case.iter("skipped"):
            if skip.get("type") != "pytest.xfail":
                yield test_id(case), reason_of(skip)


def reason_of(skip: ElementTree.Element) -> str:
    """The reason as the test gave it; for a skipped module pytest keeps it in a tuple's text."""
    message: str = skip.get("message", "")
    if message == "collection skipped":
        _, _, message = ast.literal_eval(skip.text or "")  # "(path, line, 'Skipped: reason')"
    return message.removeprefix("Skipped: ")


def main(reports: list[str]) -> int:
    """Print the skips that are not allowed and the allowances that nothing used; return the exit status."""
    allowed = read_allowed(ALLOWED)
    skips = [skip for report in reports for skip in skipped(Path(report))]
    wrong = [s for s in skips if not any(matches(test, s[0]) and matches(reason, s[1]) for test, reason in allowed)]
    for test, reason in wrong:
        print(f"skipped, and not in {ALLOWED.name}: {test}\t{reason}")
    for test, reason in allowed:
        if not any(matches(test, s[0]) and matches(reason, s[1]) for s in skips):
            print(f"note: {ALLOWED.name} allows a skip that did not happen: {test}\t{reason}")
    print(f"skips: {len(skips)}, of which not allowed: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
