"""The evaluation's data files, written from the built-in text: ``python -m tinyllm.texts.files evals/data``."""

import json
import sys
from pathlib import Path

import numpy as np

from tinyllm.formats.tokens import write_tokens
from tinyllm.texts import cloze_items, load


def cloze_jsonl() -> str:
    """Return the task's file: one item a line."""
    return "".join(json.dumps(item) + "\n" for item in cloze_items())


def write_data(folder: str | Path) -> None:
    """Write `stories-heldout.bin` (bytes as tokens) and `stories-cloze.jsonl`.

    Parameters
    ----------
    folder
        An existing folder; files there are replaced.
    """
    folder = Path(folder)
    text = np.frombuffer(load("stories", "heldout"), np.uint8)
    write_tokens(folder / "stories-heldout.bin", text, vocab_size=256, n_bytes=len(text) - 1)
    (folder / "stories-cloze.jsonl").write_bytes(cloze_jsonl().encode("ascii"))


if __name__ == "__main__":
    write_data(sys.argv[1])
