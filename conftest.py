"""What tests/ and evals/ share. `pytest_plugins` is legal only here, in the root."""

from __future__ import annotations

import os

from hypothesis import settings

pytest_plugins = ["pytester"]

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: one thread a process is fastest on few cores

settings.register_profile("default", deadline=None)  # a slow machine is not a wrong number
settings.register_profile("mutation", deadline=None, derandomize=True, database=None)
settings.load_profile("default")
