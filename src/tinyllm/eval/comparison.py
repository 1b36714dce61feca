"""Is one row better than another? A paired question, asked only of the same metric on the same items.

Torch-free: it works on rows and results, fresh or read back from a report. Example: two rows on 400 items that disagree
on 20 of them, 15 against 5, are told apart by the sign flips of those 20, whatever the other 380 add to both.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyllm.metrics import better_item, own_differences
from tinyllm.report.rows import Row
from tinyllm.result import Result
from tinyllm.stats.permutation import paired_permutation_test


@dataclass(frozen=True)
class Comparison:
    """The paired comparison of row a with row b.

    Attributes
    ----------
    delta
        Mean of a's per-item scores minus b's, in the items' unit (nats a token for text, a proportion for choices).
    p
        Two-sided p-value of "no difference", by the paired permutation test.
    n
        Items.
    better
        ``"a"`` or ``"b"``, whichever has the better mean, or ``"neither"`` when they are equal.
    """

    delta: float
    p: float
    n: int
    better: str


def check_same_items(a: Result, b: Result) -> None:
    """Refuse two results that were not scored on the same items.

    Raises
    ------
    ValueError
        For other lengths, or other ids where both carry them.
    """
    if len(a.per_item) != len(b.per_item):
        msg = f"a paired comparison needs the same items, got {len(a.per_item)} and {len(b.per_item)} of them"
        raise ValueError(msg)
    for result in (a, b):
        if result.ids is not None and len(result.ids) != len(result.per_item):
            msg = f"a result must have one id an item, got {len(result.ids)} ids and {len(result.per_item)} items"
            raise ValueError(msg)
    if a.ids is not None and b.ids is not None:
        for i, (x, y) in enumerate(zip(a.ids, b.ids, strict=True)):
            if x != y:
                msg = f"a paired comparison needs the same items in the same order, got {x!r} and {y!r} at index {i}"
                raise ValueError(msg)


def compare_rows(a: Row, a_result: Result, b: Row, b_result: Result, *, n_perm: int = 10_000) -> Comparison:
    """Compare two rows that have numbers.

    Parameters
    ----------
    a, b
        The rows.
    a_result, b_result
        Their per-item scores.
    n_perm
        Sign flips, drawn from ``PCG32(0)``.

    Raises
    ------
    ValueError
        When the rows have another metric, other data, or other items; the message says which.
    """
    metrics, data = ([row["metric"] for row in (a, b)], [row["data"] and row["data"]["sha256"] for row in (a, b)])
    for key, same, of_a, of_b in (
        ("metric", metrics[0] == metrics[1], *metrics),
        ("data", data[0] == data[1], _data(a), _data(b)),
    ):
        if not same:
            got = f"got {of_a!r} for {a['name']} and {of_b!r} for {b['name']}"
            msg = f"a paired comparison needs the same {key}, {got}"
            raise ValueError(msg)
    if changed := own_differences(a, b):
        msg = f"a paired comparison needs the same metric, got two {a['metric']!r} that differ in {', '.join(changed)}"
        raise ValueError(msg)
    if better_item(a) is None:
        msg = f"which way metric {a['metric']!r} of {a['name']} is better must be known, and the row does not say"
        raise ValueError(msg)
    check_same_items(a_result, b_result)
    delta = float((a_result.per_item - b_result.per_item).mean())
    p = paired_permutation_test(a_result.per_item, b_result.per_item, n_perm=n_perm)
    a_better = (delta < 0) == (better_item(a) == "lower")
    return Comparison(delta, p, len(a_result.per_item), "neither" if delta == 0 else "a" if a_better else "b")


def _data(row: Row) -> str | None:
    return f"{row['data']['name']} ({row['data']['sha256'][:12]}…)" if row["data"] else None
