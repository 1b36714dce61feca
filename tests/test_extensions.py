"""What is found beside a manifest and among entry points, what is imported of it, and what is refused."""

import os
import sys
from importlib.machinery import PathFinder

import pytest

from tinyllm import extensions
from tinyllm.errors import ExtensionError
from tinyllm.extensions import find, known


@pytest.fixture
def folder(tmp_path):
    """``folder(name=text, …)``: files of that text in models/ of a manifest's folder, which is returned."""

    def write(**files):
        for name, text in files.items():
            (tmp_path / "evals/models").mkdir(parents=True, exist_ok=True)
            (tmp_path / "evals/models" / f"{name}.py").write_text(text)
        return tmp_path / "evals"

    return write


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """``installed(dist, lines, module=text, …)``: a package with those entry points of the group tinyllm.models."""
    monkeypatch.syspath_prepend(tmp_path / "site")

    def install(dist, *lines, **modules):
        info = tmp_path / f"site/{dist}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(
            "\n".join(["[tinyllm.models]", *lines, "[tinyllm.tasks]", "quiz = no:x"])
        )
        for name, text in modules.items():
            (tmp_path / "site" / f"{name}.py").write_text(text)
        extensions._entry_points.cache_clear()

    yield install
    extensions._entry_points.cache_clear()


RAISES = "raise AssertionError('imported')\n"


def test_names_are_those_of_files_that_could_be_modules_and_nothing_is_imported(folder, monkeypatch):
    here = folder(
        rwkv=RAISES, coin=RAISES, _parts=RAISES, __init__=RAISES, **{"a-b": RAISES, "1st": RAISES, "a.b": RAISES}
    )
    (here / "models/notes.txt").write_text("")
    (here / "models/inner").mkdir()
    (here / "models/inner/deep.py").write_text(RAISES)
    assert known("models", here) == {"rwkv", "coin"}
    (here / "tasks").mkdir()
    (here / "tasks/quiz.py").write_text(RAISES)
    assert (known("tasks", here), known("metrics", here)) == ({"quiz"}, set())
    monkeypatch.chdir(here)  # which is not looked in where no manifest is
    assert known("models", here / "models") == known("models", None) == set()


def test_names_of_installed_packages_are_known_with_and_without_a_manifest(folder, installed):
    installed("own", "flat = ownflat", "other = ownflat:Other", ownflat=RAISES)
    assert known("models", None) == {"flat", "other"}
    assert known("models", folder(coin=RAISES)) == {"flat", "other", "coin"}
    assert (known("tasks", None), known("metrics", None)) == ({"quiz"}, set())


def test_only_what_is_asked_for_is_imported(folder):
    here = folder(coin="x = 1\n", other=RAISES)
    found = find("models", "coin", here, builtin=("gpt",))
    assert (found.value.x, found.source) == (1, str(here / "models/coin.py"))
    for name, where in (("rwkv", here), ("coin", None), ("coin", here / "models")):
        assert find("models", name, where, builtin=("gpt",)) is None
    assert find("tasks", "coin", here, builtin=()) is None


def test_what_an_entry_point_names_is_what_is_found(installed):
    installed("own", "flat = ownpoint", "thing = ownpoint:Thing", ownpoint="class Thing: y = 2\n")
    flat, thing = (find("models", name, None, builtin=()) for name in ("flat", "thing"))
    assert (flat.value.Thing, thing.value.y) == (thing.value, 2)
    assert thing.source == "entry point tinyllm.models: thing = ownpoint:Thing"


def test_a_built_in_name_is_refused_without_importing(folder, installed):
    here = folder(gpt=RAISES)
    with pytest.raises(ExtensionError) as error:
        find("models", "gpt", here, builtin=("gpt", "bert"))
    assert str(error.value) == f"{here}/models/gpt.py: 'gpt' is the name of one of the built-in models; rename yours"
    installed("own", "bert = nosuchmodule")
    with pytest.raises(
        ExtensionError, match=r"^entry point tinyllm.models: bert = nosuchmodule: 'bert' is the name of"
    ):
        find("models", "bert", here, builtin=("gpt", "bert"))


def test_fault_row_54_a_name_that_two_have_is_refused_and_neither_is_imported(folder, installed):
    installed("own", "flat = owntwice", "coin = owntwice", owntwice=RAISES)
    installed("theirs", "flat = theirs")
    with pytest.raises(ExtensionError, match=r": 'flat' must be one of the models, got it again from entry point "):
        find("models", "flat", None, builtin=())
    here = folder(coin=RAISES)
    with pytest.raises(ExtensionError) as error:
        find("models", "coin", here, builtin=())
    again = "got it again from entry point tinyllm.models: coin = owntwice"
    assert str(error.value) == f"{here}/models/coin.py: 'coin' must be one of the models, {again}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero (line 2)"),
        ("def f():\n    return {}['k']\n\nf()\n", "KeyError: 'k' (line 2)"),  # the deepest line of this file
        ("\nfrom .broken import x\n", "ZeroDivisionError: division by zero (line 2)"),
        ("import os\nos.environ['no such variable']\n", "KeyError: 'no such variable' (line 2)"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (line 2)"),
        ("from .absent import x\n", "ModuleNotFoundError: "),
    ],
)
def test_what_goes_wrong_in_a_file_is_said_with_its_line(folder, text, fault):
    here = folder(coin=text, broken="x = 1\n\n1 / 0\n")
    for _ in range(2):  # and again when it is asked for again
        with pytest.raises(ExtensionError) as error:
            find("models", "coin", here, builtin=())
        assert str(error.value).startswith(f"{here}/models/coin.py: must be importable, got {fault}")


def test_an_entry_point_that_cannot_be_loaded_says_which(installed):
    installed("own", "flat = nosuchmodule_here")
    with pytest.raises(
        ExtensionError, match=r"^entry point tinyllm.models: flat = nosuchmodule_here: must be importab"
    ):
        find("models", "flat", None, builtin=())


def test_a_keyboard_interrupt_is_nobodys_import_error(folder):
    with pytest.raises(KeyboardInterrupt):
        find("models", "coin", folder(coin="raise KeyboardInterrupt\n"), builtin=())


def test_a_file_is_imported_once_however_its_folder_is_written(folder, monkeypatch):
    here = folder(coin="from .parts import thing\n", parts="thing = object()\n")
    first = find("models", "coin", here, builtin=()).value
    (here.parent / "link").symlink_to(here)
    monkeypatch.chdir(here.parent)
    for again in (here, here.parent / "link", here.relative_to(here.parent)):
        assert find("models", "coin", again, builtin=()).value is first
    assert find("models", "parts", here, builtin=()).value.thing is first.thing


def test_a_file_that_is_new_since_python_looked_into_its_folder_is_found(folder):
    here = folder(other="")
    assert PathFinder.find_spec("coin", [str(here / "models")]) is None  # Python remembers what it saw
    before = (here / "models").stat()
    folder(coin="x = 1\n")
    os.utime(here / "models", ns=(before.st_atime_ns, before.st_mtime_ns))  # as within one tick of a coarse clock
    assert find("models", "coin", here, builtin=()).value.x == 1


def test_files_of_one_name_in_two_folders_do_not_meet_and_take_no_modules_name(folder, tmp_path):
    here = folder(json="from .parts import x\n", parts="x = 1\n")
    there = tmp_path / "other/evals"
    (there / "models").mkdir(parents=True)
    (there / "models/json.py").write_text("from .parts import x\n")
    (there / "models/parts.py").write_text("x = 2\n")
    assert [find("models", "json", where, builtin=()).value.x for where in (here, there, here)] == [1, 2, 1]
    assert sys.modules["json"].__name__ == "json"
    assert "parts" not in sys.modules
    assert str(here) not in sys.path
    assert str(here / "models") not in sys.path


def test_a_folder_whose_name_is_no_text_is_as_good(folder, tmp_path):
    named = tmp_path / os.fsdecode(b"caf\xe9")
    (folder(coin="x = 1\n")).rename(named)
    assert find("models", "coin", named, builtin=()).value.x == 1
