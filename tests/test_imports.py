"""The import rule: a module imports only from the rooms above it, and the heavy libraries load only where they must.

The rule is read from the sources (so an import inside a function counts too); what it promises, a package that starts
without torch, is then tried in fresh interpreters.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

# From the ground up: each shelf imports from the shelves before it and from itself.
SHELVES: tuple[tuple[str, ...], ...] = (
    ("errors", "rng", "extensions"),
    ("formats",),
    ("stats",),
    ("result", "metrics"),
    ("texts",),
    ("report",),
    ("sandbox",),
    ("tasks",),
    ("models", "decoding"),
    ("training",),
    ("scoring",),
    ("generation",),
    ("eval",),
    ("plugin", "cli"),
    ("__main__",),
)
HEIGHT = {room: height for height, shelf in enumerate(SHELVES) for room in shelf}

# Libraries that cost seconds, or that an installation may lack, and the modules that may load them when imported.
HEAVY: dict[str, tuple[str, ...]] = {
    "torch": ("models", "training", "scoring", "generation", "eval.lm", "eval.zoo"),
    "safetensors.torch": ("models", "training", "scoring", "generation", "eval.lm", "eval.zoo"),
    "scipy": (),
    "transformers": (),  # an extra: an installation may lack it
}


@dataclass(frozen=True)
class Import:
    """One imported name, and whether importing the module already runs it."""

    target: str
    line: int
    at_import: bool


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def targets(node: ast.AST, package: str) -> list[str]:
    """The dotted names that one node imports; `package` is what a relative import counts from."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = (
            importlib.util.resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module
        )
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if function in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
            return [node.args[0].value]
    return []


def imports(node: ast.AST, package: str, *, at_import: bool = True) -> Iterator[Import]:
    """Every import under `node`, in order; bodies of functions and of `if TYPE_CHECKING` do not run at import."""
    for target in targets(node, package):
        yield Import(target, getattr(node, "lineno", 0), at_import)
    for field, value in ast.iter_fields(node):
        later = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and field == "body"
        unrun = isinstance(node, ast.If) and field == "body" and is_type_checking(node.test)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from imports(child, package, at_import=at_import and not later and not unrun)


def violations(root: Path) -> list[str]:
    """What is wrong with the imports of `root/src/tinyllm`, one sentence each; empty when nothing is."""
    found = []
    for path in sorted((root / "src/tinyllm").rglob("*.py")):
        parts = path.relative_to(root / "src").with_suffix("").parts
        package = ".".join(parts[:-1])
        module = ".".join(parts[1:] if parts[-1] != "__init__" else parts[1:-1])
        room = module.split(".")[0]
        if room and room not in HEIGHT:
            found.append(f"{room!r} is no room of tinyllm: give it a place in SHELVES ({path.relative_to(root)})")
            continue
        for imported in imports(ast.parse(path.read_text(encoding="utf-8")), package):
            place = f"({path.relative_to(root)}:{imported.line})"
            found.extend(f"{fault} {place}" for fault in faults(module, room, imported))
    return list(dict.fromkeys(found))


def faults(module: str, room: str, imported: Import) -> Iterator[str]:
    """The sentences against one import, without its place. `module` and `room` are '' for tinyllm/__init__.py."""
    if within(imported.target, "tinyllm"):
        other = imported.target.removeprefix("tinyllm").removeprefix(".").split(".")[0]
        if room and other in HEIGHT and HEIGHT[other] > HEIGHT[room]:
            yield f"{room} must not import {other}"
        if not room and other in HEIGHT and other not in {"errors", "result"}:
            yield f"tinyllm/__init__ must not import {other}: everything imports it"
    for library, places in HEAVY.items():
        if imported.at_import and within(imported.target, library) and not any(within(module, p) for p in places):
            yield f"{module or 'tinyllm/__init__'} must not import {library} at module level: move it into the function"


def plant(root: Path, module: str, source: str) -> list[str]:
    """The violations of a tree whose one module is `module` (a path under src/tinyllm) with this source."""
    path = root / "src/tinyllm" / module
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    return violations(root)


def test_every_module_imports_only_from_the_rooms_above_it():
    assert len(list((REPOSITORY / "src/tinyllm").rglob("*.py"))) > 10
    assert violations(REPOSITORY) == []


@pytest.mark.parametrize(
    ("module", "source", "sentence"),
    [
        ("models/x.py", "import tinyllm.eval", "models must not import eval (src/tinyllm/models/x.py:1)"),
        ("models/x.py", "\nfrom tinyllm.eval.lm import y", "models must not import eval (src/tinyllm/models/x.py:2)"),
        ("models/x.py", "from tinyllm import eval", "models must not import eval (src/tinyllm/models/x.py:1)"),
        ("models/x.py", "from ..eval import lm, zoo", "models must not import eval (src/tinyllm/models/x.py:1)"),
        ("models/__init__.py", "from .. import eval", "models must not import eval (src/tinyllm/models/__init__.py:1)"),
        ("stats/x.py", "def f():\n    from tinyllm import cli", "stats must not import cli (src/tinyllm/stats/x.py:2)"),
        ("rng.py", "if TYPE_CHECKING:\n    import tinyllm.stats", "rng must not import stats (src/tinyllm/rng.py:2)"),
        (
            "cli.py",
            "from importlib import import_module\nimport_module('torch')",
            "cli must not import torch at module level: move it into the function (src/tinyllm/cli.py:2)",
        ),
        (
            "eval/baseline.py",
            "try:\n    import torch.nn as nn\nexcept ImportError:\n    pass",
            "eval.baseline must not import torch at module level: move it into the function"
            " (src/tinyllm/eval/baseline.py:2)",
        ),
        (
            "formats/x.py",
            "from safetensors.torch import load_file",
            "formats.x must not import safetensors.torch at module level: move it into the function"
            " (src/tinyllm/formats/x.py:1)",
        ),
        (
            "models/x.py",
            "from scipy.stats import norm",
            "models.x must not import scipy at module level: move it into the function (src/tinyllm/models/x.py:1)",
        ),
        (
            "stats/x.py",
            "def f(x=__import__('scipy')): ...",
            "stats.x must not import scipy at module level: move it into the function (src/tinyllm/stats/x.py:1)",
        ),
        ("utils.py", "", "'utils' is no room of tinyllm: give it a place in SHELVES (src/tinyllm/utils.py)"),
        (
            "__init__.py",
            "import tinyllm.eval",
            "tinyllm/__init__ must not import eval: everything imports it (src/tinyllm/__init__.py:1)",
        ),
    ],
)
def test_a_planted_import_is_named_with_its_line(tmp_path, module, source, sentence):
    assert plant(tmp_path, module, source) == [sentence]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("eval/lm.py", "import torch\nfrom tinyllm.models import gpt\nfrom tinyllm.result import Result"),
        ("models/gpt.py", "import torch\nfrom safetensors.torch import load_file\nfrom tinyllm import decoding"),
        (
            "plugin.py",
            "from tinyllm import __version__\ndef f():\n    import torch, scipy.stats\n    from tinyllm import eval",
        ),
        ("formats/x.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nimport torchlike"),
        ("stats/x.py", "from . import y\nfrom .z import w\nf = lambda: __import__('scipy')"),
        ("__init__.py", "from tinyllm.result import Result"),
    ],
)
def test_a_legal_import_is_let_through(tmp_path, module, source):
    assert plant(tmp_path, module, source) == []


def light_modules() -> list[str]:
    """Every module that importing must not load torch, dotted."""
    names = []
    for path in sorted((REPOSITORY / "src/tinyllm").rglob("*.py")):
        parts = path.relative_to(REPOSITORY / "src").with_suffix("").parts
        name = ".".join(parts if parts[-1] != "__init__" else parts[:-1])
        if not any(within(name.removeprefix("tinyllm."), place) for place in HEAVY["torch"]):
            names.append(name)
    return names


def loaded_after(code: str, cwd: Path) -> set[str]:
    """Run `code` in a fresh interpreter; return the names of the modules it ended up with."""
    program = f"import sys\n{code}\nprint(*sys.modules, sep='\\n')"
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return set(run.stdout.split())


def test_the_package_the_plugin_and_the_command_import_without_torch_or_scipy(tmp_path):
    loaded = loaded_after("import tinyllm, tinyllm.plugin, tinyllm.cli", tmp_path)
    assert {"tinyllm", "tinyllm.plugin", "tinyllm.cli"} <= loaded
    assert not {"torch", "scipy", "transformers"} & loaded


def test_every_module_outside_the_torch_rooms_imports_without_torch_or_scipy(tmp_path):
    names = light_modules()
    assert {"tinyllm.plugin", "tinyllm.errors", "tinyllm.result"} <= set(names)
    loaded = loaded_after(f"import {', '.join(names)}", tmp_path)
    assert not {"torch", "scipy", "transformers"} & loaded


def test_a_users_pytest_run_has_the_plugin_and_no_torch(tmp_path):
    (tmp_path / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    loaded = loaded_after("import pytest\nassert pytest.main(['-q', '-p', 'no:cacheprovider']) == 0", tmp_path)
    assert "tinyllm.plugin" in loaded
    assert not {"torch", "scipy", "transformers"} & loaded
