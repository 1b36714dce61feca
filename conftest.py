"""What tests/ and evals/ share. `pytest_plugins` is legal only here, in the root."""

from __future__ import annotations

pytest_plugins = ["pytester"]
