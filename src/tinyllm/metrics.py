"""The table of metrics: for each its unit, its direction, and its value and interval from per-item scores.

One definition of each number. Adding a metric is adding a row to `METRICS`, or a file ``metrics/<name>.py`` with
``METRIC`` beside a manifest (`find_metric`). Example: ten NLLs of ln 256 nats, each of one byte, are a bpb of 8 with
the interval [8, 8].
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tinyllm import extensions
from tinyllm.errors import nearest
from tinyllm.stats.intervals import mean_ci, wilson_interval
from tinyllm.stats.nll import NLLAccumulator

Estimate = tuple[float, float, float]
"""value, lo, hi."""

ItemScore = Callable[[NDArray[np.float64], NDArray[np.int64], int], float]
"""``score(sums, n_bytes, answer)``: see `Metric`."""


@dataclass(frozen=True)
class Metric:
    """One row of the table.

    Attributes
    ----------
    name
        As reports and manifests write it.
    unit
        The unit of value, lo and hi.
    better
        Which direction is an improvement of the metric.
    better_item
        Which direction is an improvement of a per-item score (NLLs: lower, whatever is made of them).
    interval
        The method of the 95% interval: ``student-t``, ``wilson``, …
    estimate
        ``estimate(per_item, n_bytes) -> (value, lo, hi)``; n_bytes is None where scores are not of text.
    score
        None for a metric of texts, whose per-item scores are the NLLs of its tokens. Of a multiple-choice task:
        ``score(sums, n_bytes, answer)``, the per-item score of one item from ln p of each of its k choices (float64
        [k], nats, −inf for a probability of 0), the UTF-8 bytes of each (int64 [k]), and the index of the right one.

    Raises
    ------
    ValueError
        For a field that is not what it must be: a metric may be the user's own.
    """

    name: str
    unit: str
    better: Literal["lower", "higher"]
    better_item: Literal["lower", "higher"]
    interval: str
    estimate: Callable[[NDArray[np.float64], int | None], Estimate]
    score: ItemScore | None = None

    def __post_init__(self) -> None:
        for field in ("name", "unit", "interval"):
            if not isinstance(getattr(self, field), str) or not getattr(self, field):
                raise ValueError(f"{field} of a metric must be a non-empty string, got {getattr(self, field)!r}")
        for field in ("better", "better_item"):
            if getattr(self, field) not in ("lower", "higher"):
                raise ValueError(f"{field} of a metric must be 'lower' or 'higher', got {getattr(self, field)!r}")
        for field in ("estimate", "score"):
            if not callable(getattr(self, field)) and (field, self.score) != ("score", None):
                raise ValueError(f"{field} of a metric must be a function, got {getattr(self, field)!r}")

    def of_item(self, sums: NDArray[np.float64], choices: Sequence[str], answer: int) -> float:
        """The score of one multiple-choice item, from ln p of each of its choices.

        Raises
        ------
        ValueError
            When the metric's `score` gives no finite number.
        """
        assert self.score is not None
        found = self.score(sums, np.array([len(choice.encode("utf-8")) for choice in choices]), answer)
        score = float(found)
        if not math.isfinite(score):
            raise ValueError(f"metric {self.name!r} must give a finite score, got {found!r} for ln p {sums.tolist()}")
        return score


def nll(per_item: NDArray[np.float64], n_bytes: int | None = None) -> Estimate:
    """Mean NLL in nats a token, with Student's t interval over the tokens.

    Raises
    ------
    ValueError
        For no token at all, and for an infinite NLL, naming the token.
    """
    del n_bytes  # a mean over tokens does not depend on their bytes
    if np.isinf(per_item).any():
        token = int(np.argmax(np.isinf(per_item))) + 1  # token 0 is not scored
        msg = f"every NLL must be finite, got {per_item[token - 1]!s} for token {token}: it was given probability 0"
        raise ValueError(msg)
    return mean(per_item)


def mean(per_item: NDArray[np.float64], n_bytes: int | None = None) -> Estimate:
    """Mean of the scores, whatever they are, with Student's t interval; equal scores have a zero-width one.

    Raises
    ------
    ValueError
        For no score, and for one that is not finite.
    """
    del n_bytes
    totals = NLLAccumulator()
    totals.add(per_item)
    value = totals.mean()
    lo, hi = mean_ci(per_item)
    return value, lo, hi


def ppl(per_item: NDArray[np.float64], n_bytes: int | None = None) -> Estimate:
    """Perplexity, ``exp`` of the mean NLL; the interval's ends are exp of its ends, and so not symmetric.

    Raises
    ------
    ValueError
        As `nll`, and when the perplexity is too large for a float.
    """
    value, lo, hi = nll(per_item, n_bytes)
    if value > math.log(np.finfo(np.float64).max):
        msg = f"perplexity overflows: the mean NLL is {value!r} nats a token over {len(per_item)} tokens"
        raise ValueError(msg)
    with np.errstate(over="ignore"):  # an end may be infinite, as for a single token
        return math.exp(value), float(np.exp(lo)), float(np.exp(hi))


def bpb(per_item: NDArray[np.float64], n_bytes: int | None) -> Estimate:
    """Bits per byte, ``Σ nll / (n_bytes · ln 2)``: the only one of the three that compares different tokenizers.

    Raises
    ------
    ValueError
        As `nll`, and when the scored tokens' bytes are not known.
    """
    if not isinstance(n_bytes, int) or isinstance(n_bytes, bool) or n_bytes <= 0:
        msg = f"bits per byte need the number of bytes of the scored tokens, got n_bytes={n_bytes!r}"
        raise ValueError(msg)
    # mean · (n / bytes) / ln 2, the ends by the same arithmetic: equal NLLs give a zero-width interval, and 8 is 8
    scale = len(per_item) / n_bytes
    value, lo, hi = (end * scale / math.log(2) for end in nll(per_item))
    return value, lo, hi


def accuracy(per_item: NDArray[np.float64], n_bytes: int | None = None) -> Estimate:
    """The share of items that score 1, with the Wilson score interval.

    Raises
    ------
    ValueError
        For no item, and for a score that is neither 0 nor 1.
    """
    del n_bytes
    if len(per_item) == 0:
        msg = "accuracy over no items is undefined; the task has none"
        raise ValueError(msg)
    wrong = (per_item != 0) & (per_item != 1)
    if wrong.any():
        where = int(np.argmax(wrong))
        msg = f"accuracy needs scores of 0 or 1, got {float(per_item[where])!r} for item {where}"
        raise ValueError(msg)
    successes = int(per_item.sum())
    lo, hi = wilson_interval(successes, len(per_item))
    return successes / len(per_item), lo, hi


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("nll", "nats/token", "lower", "lower", "student-t", nll),
            Metric("ppl", "perplexity", "lower", "lower", "student-t", ppl),
            Metric("bpb", "bits/byte", "lower", "lower", "student-t", bpb),
            Metric("acc", "proportion", "higher", "higher", "wilson", accuracy),
            Metric("acc_norm", "proportion", "higher", "higher", "wilson", accuracy),
        )
    }
)

TEXT_METRICS = ("bpb", "nll", "ppl")
CHOICE_METRICS = ("acc", "acc_norm")


def find_metric(name: str, *, folder: Path | None = None) -> Metric:
    """The metric of that name: of the table, or the user's own (`tinyllm.extensions`).

    Parameters
    ----------
    name
        As a manifest writes it.
    folder
        The manifest's, whose ``metrics/`` may hold files; None where there is no manifest.

    Raises
    ------
    ValueError
        When there is none; the message has the nearest.
    ExtensionError
        When the user's own has the name of another, cannot be imported, or is no metric of that name.
    """
    own = extensions.find("metrics", name, folder, builtin=METRICS)
    if own is None:
        if name not in METRICS:
            msg = f"unknown metric {name!r}; {nearest(name, {*METRICS, *extensions.known('metrics', folder)})}"
            raise ValueError(msg)
        return METRICS[name]
    return extensions.held(own, "METRIC", Metric, name)


def estimate(metric: Metric, per_item: NDArray[np.float64], n_bytes: int | None) -> Estimate:
    """The metric's value and interval as plain floats, checked: a metric may be the user's own.

    Raises
    ------
    ValueError
        As the metric raises, and for what is no value inside its interval.
    """
    found = metric.estimate(per_item, n_bytes)
    try:
        value, lo, hi = (float(end) for end in found)
    except (TypeError, ValueError) as error:
        msg = f"metric {metric.name!r} must give three numbers, value, lo and hi, got {found!r}"
        raise ValueError(msg) from error
    if not (math.isfinite(value) and lo <= value <= hi):  # NaN compares false
        msg = f"metric {metric.name!r} must give a finite value with lo <= value <= hi, got {(value, lo, hi)!r}"
        raise ValueError(msg)
    return value, lo, hi


def own_facts(metric: Metric) -> dict[str, Any]:
    """What a row of the user's own metric says in its notes, so that stored rows compare without the metric's file.

    Its code goes in by the SHA-256 of the files that its functions stand in: an edited metric is another measurement.
    """
    if METRICS.get(metric.name) is metric:
        return {}
    of = "text" if metric.score is None else "choices"
    directions = {"of": of, "better": metric.better, "better_item": metric.better_item}
    return {"metric": {**directions, "interval": metric.interval, "code_sha256": _code_sha256(metric)}}


def _code_sha256(metric: Metric) -> str | None:
    """Of the files that define the metric's functions, or None where one has no file."""
    digest = hashlib.sha256()
    for function in (metric.estimate, metric.score):
        name = getattr(function, "__module__", None) or ""
        if function is None or name.startswith("tinyllm."):  # the package's own version is in the report's run
            continue
        module = sys.modules.get(name)
        try:
            digest.update(Path(module.__file__ or "").read_bytes())  # type: ignore[union-attr]
        except (AttributeError, OSError):
            return None
    return digest.hexdigest()


def own_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """The facts in which the user's own metric of one name differs between two rows; none for a built-in one."""
    if a["metric"] in METRICS:
        return []
    x, y = ((row["notes"].get("metric") if isinstance(row["notes"].get("metric"), dict) else {}) for row in (a, b))
    return sorted(key for key in x.keys() | y.keys() if x.get(key) != y.get(key))


def better_item(row: Mapping[str, Any]) -> str | None:
    """Which direction is an improvement of the per-item scores behind a stored row; None where nobody says."""
    if row["metric"] in METRICS:
        return METRICS[row["metric"]].better_item
    own = row["notes"].get("metric")
    said = own.get("better_item") if isinstance(own, dict) else None
    return said if said in ("lower", "higher") else None


def is_of_text(row: Mapping[str, Any]) -> bool:
    """Whether the per-item scores behind a row are NLLs of a text's tokens."""
    own = row["notes"].get("metric")
    return row["metric"] in TEXT_METRICS or (isinstance(own, dict) and own.get("of") == "text")
