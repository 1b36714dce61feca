"""The recipes of the zoo's checkpoints, one file each, found by file name: `training/gpt.py` is the recipe ``gpt``.

A recipe's file has ``FAMILY`` (whose checkpoint it makes), ``TEXTS`` (the built-in texts it reads), ``RECIPE`` (each
choice but texts and seed, as JSON), ``SAVE`` (keywords of the family's saver) and ``train(texts, *, seed, **RECIPE)``
which returns the model. One that takes steps has their number in its RECIPE, and takes ``on_step(step, loss)``; one
that mixes its texts has their shares in ``MIX``.
"""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tinyllm import texts
from tinyllm.errors import UsageError, nearest
from tinyllm.models import find_family


def recipes() -> Iterator[tuple[str, ModuleType]]:
    """Every recipe's name and module."""
    for info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{info.name}")
        if hasattr(module, "FAMILY"):
            yield info.name, module


def train_checkpoint(
    name: str, out: Path, *, seed: int = 0, on_step: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Run a recipe on its texts and write the checkpoint; equal inputs on one machine give equal bytes.

    Parameters
    ----------
    name
        The recipe.
    out
        The checkpoint's folder (the n-gram's file).
    seed
        Of everything that is drawn.
    on_step
        Called with (done, total) by recipes that take steps.

    Returns
    -------
    What the checkpoint records of its training: recipe, seed, and each text's sha256.

    Raises
    ------
    UsageError
        When there is no such recipe.
    """
    known = dict(recipes())
    if name not in known:
        msg = f"no recipe {name!r}; {nearest(name, known)}"
        raise UsageError(msg)
    recipe = known[name]
    read = {f"{text}/{split}": texts.load(text, split) for text, split in recipe.TEXTS}
    choices = {**recipe.RECIPE, **getattr(recipe, "MIX", {})}
    steps = choices.get("steps")
    progress = {"on_step": lambda step, _: on_step(step + 1, steps)} if steps and on_step is not None else {}
    model = recipe.train(list(read.values()), seed=seed, **choices, **progress)
    record: dict[str, Any] = {
        "recipe": {"name": name, **choices},
        "seed": seed,
        "texts": {label: hashlib.sha256(data).hexdigest() for label, data in read.items()},
    }
    save = getattr(find_family(recipe.FAMILY), f"save_{recipe.FAMILY}")
    save(out, model, training=record, **recipe.SAVE)
    return record
