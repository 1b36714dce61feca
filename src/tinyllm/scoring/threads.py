"""One torch thread while scoring: sums differ with the thread count, and rows must not differ with the mode of a run.

On a machine with as many workers as cores one thread each is also the fastest: spinning threads take each other's
cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Set torch's intra-op threads to one, and restore them afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
