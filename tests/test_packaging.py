"""What a user installs: the wheel, and the wheel that an installer builds from the sdist."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = ("src", "formats", "evals", "tests", "benchmarks", "docs", "mutation")

LOAD_EVERY_SCHEMA = """
import sys
from pathlib import Path
import tinyllm
from tinyllm.formats.schema import load_schema, schema_path
root = Path(sys.argv[1])
assert Path(tinyllm.__file__).is_relative_to(root), tinyllm.__file__
names = sorted(p.name.removesuffix(".schema.json") for p in (root / "tinyllm/schemas").glob("*.schema.json"))
for name in names:
    assert schema_path(name).is_relative_to(root), schema_path(name)
    assert load_schema(name)["$schema"], name
print(*names)
"""


def build(kind: str, source: Path, out: Path) -> Path:
    """Build the 'wheel' or 'sdist' of the project in `source` as an installer does, in a process of its own."""
    code = f"import sys, hatchling.build as b; print(b.build_{kind}(sys.argv[1]))"
    run = subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=source, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return out / run.stdout.split()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The unpacked sdist, built from a copy of what git would give: nothing that is generated or ignored."""
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("sdist")
    for path in REPOSITORY.iterdir():
        if path.is_file():
            shutil.copy(path, clone)
    for folder in SOURCES:
        if (REPOSITORY / folder).is_dir():
            shutil.copytree(REPOSITORY / folder, clone / folder, ignore=shutil.ignore_patterns("__pycache__"))
    archive = build("sdist", clone, out)
    with tarfile.open(archive) as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 brought it
        tar.extractall(out, **safe)  # noqa: S202 - built a moment ago
    return out / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module", params=["from the repository", "from the sdist"])
def wheel(request, tmp_path_factory):
    """The unpacked wheel."""
    out = tmp_path_factory.mktemp("wheel")
    source = REPOSITORY if request.param == "from the repository" else request.getfixturevalue("sdist")
    archive = build("wheel", source, out)
    with zipfile.ZipFile(archive) as unpacked:
        unpacked.extractall(out / "unpacked")  # noqa: S202 - built a moment ago
    return out / "unpacked"


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_module_and_every_format(wheel):
    packed = files(wheel / "tinyllm")
    formats = {f"schemas/{name}": data for name, data in files(REPOSITORY / "formats").items()}
    assert len(formats) > 1
    assert packed == files(REPOSITORY / "src/tinyllm") | formats


def test_the_wheel_says_that_it_is_typed_and_holds_its_licence(wheel):
    assert (wheel / "tinyllm/py.typed").exists()
    assert [path.read_bytes() for path in wheel.glob("*.dist-info/licenses/LICENSE")] == [
        (REPOSITORY / "LICENSE").read_bytes()
    ]


def test_the_entry_points_are_the_command_and_the_plugin(wheel):
    parser = ConfigParser()
    parser.read(next(wheel.glob("*.dist-info/entry_points.txt")))
    assert {name: dict(parser[name]) for name in parser.sections()} == {
        "console_scripts": {"tinyllm": "tinyllm.cli:main"},
        "pytest11": {"tinyllm": "tinyllm.plugin"},
    }


def test_the_schemas_load_from_an_installed_wheel(wheel, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", LOAD_EVERY_SCHEMA, str(wheel)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    expected = sorted(path.name.removesuffix(".schema.json") for path in REPOSITORY.glob("formats/*.schema.json"))
    assert run.stdout.split() == expected != []


def test_the_sdist_holds_what_make_and_the_tests_need(sdist):
    for name in (
        "Makefile",
        "constraints.txt",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "tests/allowed_skips.txt",
        "formats",
    ):
        assert (sdist / name).exists(), name
