"""A row that was never scored says of its gate that nothing was held against it."""

import json

from tests.plugin.toys import entry


def test_a_gate_is_not_evaluated_where_its_row_was_not_run(project):
    project.manifest(entry("a", max=9) + entry("b", max=9) + entry("c") + entry("d", min=1, stide=2))
    result = project.run("evals", "-k", "a-nor-any")
    assert result.ret == 5
    project.run("evals", "-k", "test_entry and [a]")
    report = json.loads((project.path / "eval-report/report.json").read_text())
    gates = {row["name"]: row["gate"] for row in report["rows"]}
    assert gates["a"]["answer"] == "pass"
    assert gates["b"] == {
        "min": None,
        "max": 9,
        "answer": "not-evaluated",
        "message": "no number to hold against the gate: the row is skipped",
    }
    assert gates["c"] is None
    assert gates["d"]["answer"] == "not-evaluated"
