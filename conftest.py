"""What tests/ and evals/ share. `pytest_plugins` is legal only here, in the root."""

from __future__ import annotations

import os

pytest_plugins = ["pytester"]

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: one thread a process is fastest on few cores
