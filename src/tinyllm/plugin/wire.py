"""A row and its per-item scores as ONE JSON string: what survives the trip from a worker to the controller.

Any numpy scalar, dataclass or lone surrogate on a report kills an xdist run; a string of ASCII cannot.
"""

from __future__ import annotations

import base64
import json

import numpy as np

from tinyllm.report.rows import Row, result_of
from tinyllm.result import Result


def pack(row: Row, result: Result | None) -> str:
    """The string; scores as base64 of little-endian float64, so that every bit arrives."""
    scores = None if result is None else base64.b64encode(result.per_item.astype("<f8").tobytes()).decode("ascii")
    ids = None if result is None or result.ids is None else list(result.ids)
    return json.dumps({"row": row, "scores": scores, "ids": ids}, allow_nan=False)


def unpack(text: str) -> tuple[Row, Result | None]:
    """The row and the result; an end that the row has as null is infinite again."""
    message = json.loads(text)
    row: Row = message["row"]
    if message["scores"] is None:
        return row, None
    per_item = np.frombuffer(base64.b64decode(message["scores"]), dtype="<f8").astype(np.float64)
    return row, result_of(row, per_item, message["ids"])
