"""README.md and docs/*.md say what happens: their fenced blocks are run, and what they show is compared.

- A python block: the blocks of one file share a namespace, in order. A text block that follows under the comment
  `<!-- output -->` is what the block above printed.
- A console block: the lines after `$ ` are run by one bash in the repository's root, with this Python's scripts first
  on PATH; the lines after a command are its stdout and stderr. A command that shows no output must succeed.
- `<!-- not run: reason -->` above a block leaves it out, and says why.

Shown and real output are equal to the character, but: a number matches to the precision shown, `...` within a line
matches any text, and a line `...` any lines (durations, paths, hashes). `-n auto` is one worker: the tests of this
folder are what keeps the other cores busy, and a row that two workers need is scored in both.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENTS = [*sorted(REPOSITORY.glob("docs/**/*.md")), REPOSITORY / "README.md"]
SHOWN_ONLY = {"", "diff", "ini", "json", "jsonl", "makefile", "text", "toml", "tsv", "yaml"}  # data, never commands

NUMBER = r"(?<![\w.,])[-+−]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?!\w|[.,][0-9])"
FENCE = re.compile(r"^(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)\s*$")
COMMENT = re.compile(r"^\s*<!--\s*(?P<text>.*?)\s*-->\s*$")
END_OF_COMMAND = "\x1e end of command"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines, the number of the first, and the comment that stands above the fence."""

    language: str
    lines: list[str]
    line: int
    comment: str


def require(condition: bool, message: str) -> None:
    """An assert whose message is all that the reader of a document gets to see."""
    if not condition:
        raise AssertionError(message)


def parse(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text, in order."""
    blocks = []
    above = ""
    lines = iter(enumerate(text.split("\n"), start=1))
    for number, line in lines:
        if fence := FENCE.match(line):
            body: list[str] = []
            for _, inner in lines:
                if inner.strip() == fence["ticks"]:
                    break
                body.append(inner.removeprefix(fence["indent"]))
            else:
                raise AssertionError(f"line {number}: this fence is never closed")
            comment = COMMENT.match(above)
            blocks.append(Block(fence["language"], body, number + 1, comment["text"] if comment else ""))
            above = ""
        elif line.strip():
            above = line
    return blocks


def same_number(shown: str, real: str) -> bool:
    """Whether `real`, rounded to as many places as `shown` has, can read as `shown`."""
    want, got = (Decimal(text.replace(",", "").replace("−", "-")) for text in (shown, real))
    return abs(want - got) <= Decimal(5).scaleb(int(want.as_tuple().exponent) - 1)


def same_line(shown: str, real: str) -> bool:
    pattern, end, numbers = "", 0, []
    for piece in re.finditer(rf"{NUMBER}|\.\.\.", shown.rstrip()):
        pattern += re.escape(shown[end : piece.start()])
        pattern += ".*?" if piece[0] == "..." else f"({NUMBER})"
        numbers += [] if piece[0] == "..." else [piece[0]]
        end = piece.end()
    match = re.fullmatch(pattern + re.escape(shown[end:].rstrip()), real.rstrip())
    return match is not None and all(map(same_number, numbers, match.groups()))


def same_output(shown: list[str], real: list[str]) -> bool:
    """Whether the lines agree; a shown line `...` stands for any number of lines (the usual walk of a glob)."""
    i = j = 0
    star, resume = -1, 0
    while j < len(real):
        if i < len(shown) and shown[i].strip() == "...":
            star, resume = i, j
            i += 1
        elif i < len(shown) and same_line(shown[i], real[j]):
            i, j = i + 1, j + 1
        elif star >= 0:
            resume += 1
            i, j = star + 1, resume
        else:
            return False
    return all(line.strip() == "..." for line in shown[i:])


def compare(shown: list[str], real: str, place: str) -> None:
    expected = "\n".join(shown).rstrip().split("\n")
    if not same_output(expected, real.rstrip().split("\n")):
        indented = [text.rstrip().replace("\n", "\n    ") for text in ("\n".join(expected), real)]
        raise AssertionError(f"{place}: the document shows\n    {indented[0]}\nbut what came is\n    {indented[1]}")


def run_python(block: Block, namespace: dict[str, object], path: Path) -> str:
    """Execute the block; return what it printed. Tracebacks carry the document's own line numbers."""
    source = "\n" * (block.line - 1) + "\n".join(block.lines)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(source, str(path), "exec"), namespace)  # noqa: S102 - our own documents
    return printed.getvalue()


def commands(block: Block, place: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the output shown under it."""
    found: list[tuple[str, list[str]]] = []
    continued = False
    for line in block.lines:
        if continued:
            found[-1] = (found[-1][0] + "\n" + line, [])
            continued = line.endswith("\\")
        elif line.startswith("$ "):
            found.append((line[2:], []))
            continued = line.endswith("\\")
        elif found:
            found[-1][1].append(line)
        else:
            raise AssertionError(f"{place}: a console block must begin with '$ ' and a command, got {line!r}")
    return found


def run_console(block: Block, root: Path, place: str) -> None:
    """Run the block's commands in one bash in `root`; compare each one's output with what is shown under it."""
    shown = commands(block, place)
    mark = f"status=$?; printf '\\n{END_OF_COMMAND} %d\\n' $status; (exit $status)"
    script = "".join(f"{command}\n{mark}\n" for command, _ in shown)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    environment |= {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    environment |= {"PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )
    everything = run.stdout.decode("utf-8", "replace")
    parts = re.split(rf"\n{END_OF_COMMAND} (\d+)\n", everything)
    require(len(parts) == 2 * len(shown) + 1, f"{place}: the shell ended early:\n{everything}")
    for (command, expected), output, status in zip(shown, parts[::2], parts[1::2], strict=False):
        if "".join(expected).strip():
            compare(expected, output, f"{place}: $ {command}")
        else:
            require(status == "0", f"{place}: $ {command}\nexited with {status}:\n{output}")


def run_document(path: Path, root: Path) -> int:
    """Run every block of the document at `path`; return how many ran. What is wrong raises with the line."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    ran = 0
    for block in parse(path.read_text(encoding="utf-8")):
        place = f"{path.name}:{block.line}"
        above, printed = printed, None
        if block.comment == "output":
            require(
                above is not None and block.language == "text", f"{place}: 'output' needs a python block, then text"
            )
            compare(block.lines, above or "", place)
        elif block.comment.startswith("not run"):
            require(bool(re.fullmatch("not run: .+", block.comment)), f"{place}: say why: <!-- not run: reason -->")
        elif block.comment:
            raise AssertionError(f"{place}: the comment must be 'output' or 'not run: reason', got {block.comment!r}")
        elif block.language == "python":
            printed = run_python(block, namespace, path)
            ran += 1
        elif block.language == "console":
            run_console(block, root, place)
            ran += 1
        else:
            require(
                block.language in SHOWN_ONLY, f"{place}: call {block.language!r} console or python, so that it runs"
            )
    return ran


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_what_the_document_shows_is_what_happens(path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    ran = run_document(path, REPOSITORY)
    assert ran or path.name != "README.md"


def run_text(tmp_path: Path, text: str) -> int:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return run_document(path, tmp_path)


SHARED = """\
```python
x = 2
```
Text.
```python
print(x / 3, "of", "y")
```

<!-- output -->
```text
0.667 of y
```
"""


def test_blocks_share_a_namespace_and_their_output_is_compared(tmp_path):
    assert run_text(tmp_path, SHARED) == 2


SHELL = """\
  ```console
  $ word=one; touch here
  $ echo $word \\
    two; ls
  one two
  ...
  page.md
  $ echo no; false
  no
  $ echo $?
  1
  ```
"""


def test_console_commands_share_a_shell_in_the_root(tmp_path):
    assert run_text(tmp_path, SHELL) == 1
    assert (tmp_path / "here").exists()


def test_this_interpreter_is_the_one_on_the_path(tmp_path):
    page = f"```console\n$ python -c 'import sys; print(sys.prefix)'\n{sys.prefix}\n```\n"
    assert run_text(tmp_path, page) == 1


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            "```python\nprint(1.5)\n```\n<!-- output -->\n```text\n1.4\n```\n",
            r"page\.md:6: the document shows\n    1\.4\nbut what came is\n    1\.5",
        ),
        (
            "```console\n$ echo a; echo b\na\n```\n",
            r"page\.md:2: \$ echo a; echo b: the document shows\n    a\nbut .*\n    a\n    b",
        ),
        ("```console\n$ echo fine\n$ nosuchcommand\n```\n", r"page\.md:2: \$ nosuchcommand\nexited with 127"),
        ("```console\n$ exit 0\n$ echo never\n```\n", "the shell ended early"),
        ("```console\necho a\n```\n", r"must begin with '\$ ' and a command, got 'echo a'"),
        ("```bash\necho a\n```\n", "call 'bash' console or python"),
        ("<!-- not run: -->\n```python\n1/0\n```\n", "say why: <!-- not run: reason -->"),
        ("<!-- ouptut -->\n```text\n1\n```\n", "got 'ouptut'"),
        (
            "```python\n```\n```text\n```\n<!-- output -->\n```text\n1\n```\n",
            r"page\.md:7: 'output' needs a python block",
        ),
        ("```python\nx = 1\n", "line 1: this fence is never closed"),
    ],
)
def test_a_page_that_is_wrong_fails_and_says_where(tmp_path, page, message):
    with pytest.raises(AssertionError, match=message):
        run_text(tmp_path, page)


def test_a_block_that_raises_shows_the_line_of_the_document(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        run_text(tmp_path, "text\n\n```python\nx = 0\n1 / x\n```\n")
    assert caught.traceback[-1].lineno + 1 == 5


def test_a_block_marked_not_run_is_left_alone(tmp_path):
    assert run_text(tmp_path, "<!-- not run: it takes an hour -->\n\n```console\n$ touch here\n```\n") == 0
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("bpb 3.412", "bpb 3.41249"),
        ("n 20,479", "n 20479"),
        ("1e-4", "1.4e-4"),
        ("−2.5 – −1.5", "-2.5 – -1.46"),
        ("12 passed in ...", "12 passed in 3.21s"),
        ("a\n...\nz", "a\nb\nz\nz"),
        ("...\nz", "z"),
        ("tinyllm 0.1.0", "tinyllm 0.1.0"),
    ],
)
def test_equal_to_the_precision_shown(shown, real):
    assert same_output(shown.split("\n"), real.split("\n"))


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("bpb 3.412", "bpb 3.4126"),
        ("bpb 3.412", "bpb 3.4"),
        ("n 20,479", "n 20480"),
        ("bpb 3.412", "ppl 3.412"),
        ("tinyllm 0.1.0", "tinyllm 0.1.1"),
        ("gpt2", "gpt3"),
        ("12 passed in ...", "11 passed in 3.21s"),
        ("a\n...\nz", "a\nb\nz\ny"),
        ("a", "a\nb"),
        ("a\nb", "a"),
        ("a b", "a  b"),
    ],
)
def test_unequal_output_is_seen(shown, real):
    assert not same_output(shown.split("\n"), real.split("\n"))
