"""The hooks that the plugin calls: a conftest.py or another plugin implements them."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_tinyllm_update_report(config: pytest.Config, report: dict[str, Any]) -> None:
    """Add facts to a finished run's report, before it is written.

    Called once a run, in the process that writes the report (under xdist the controller), when every row is there and
    has been held against the baseline. The report is plain JSON, as ``formats/eval-results.schema.json`` has it. Keys
    may be added to ``report["run"]`` and to a row's ``notes``, in place; nothing else may change: a hook explains
    numbers and does not make them. What breaks that rule or the schema, or raises, fails the run, whose report is then
    written without what this hook's implementations added.

    Parameters
    ----------
    config
        pytest's.
    report
        To be changed in place; what is returned is ignored.
    """
