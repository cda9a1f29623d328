"""Counts the samples of pods by period: a mean and a peak need no more, however long a period is. Pure.

The stored form is a list with an entry for each pod: ``instance``, ``part``, ``at`` (the time of its last sample), and ``sums``: by
``period`` the number, the sum and the highest value of each quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_lcm_api.performance.domain.metrics import Metric, Quantity
from kubevnfm_lcm_api.performance.domain.queries import Target

OF_PODS: Final[tuple[Quantity, ...]] = ("cpu", "memory")
"""The quantities that samples of pods have."""


@dataclass(frozen=True)
class Sample:
    """The usage of a pod at one time, in percent."""

    instance_id: str
    part: str
    at: datetime
    usage: Mapping[Quantity, float]

    @property
    def key(self) -> Target:
        """The VNF instance and its part."""
        return self.instance_id, self.part


def counted(
    tallies: Sequence[JsonMapping], samples: Sequence[Sample], period_of: Callable[[datetime], int | None]
) -> list[JsonMapping]:
    """Return the tallies with further samples: each time of a pod once, and none without a period.

    Pods without a new sample, and without sums, are forgotten.
    """
    known = {_key(each): each for each in tallies}
    for sample in samples:
        entry = known.get(sample.key, {"instance": sample.instance_id, "part": sample.part, "sums": []})
        at, period = rfc3339(sample.at), period_of(sample.at)
        if period is None or entry.get("at", "") >= at:
            continue
        known[sample.key] = {**entry, "at": at, "sums": _added(entry["sums"], period, sample.usage)}
    present = {each.key for each in samples}
    return [each for key, each in known.items() if each["sums"] or (key in present and "at" in each)]


def _added(sums: Sequence[JsonMapping], period: int, usage: Mapping[Quantity, float]) -> list[JsonMapping]:
    before: Mapping[str, Any] = next((each for each in sums if each["period"] == period), {"period": period})
    now: JsonObject = {**before}
    for quantity, value in usage.items():
        count, total, peak = before.get(quantity, (0, 0.0, value))
        now[quantity] = [count + 1, total + value, max(peak, value)]
    return [*(each for each in sums if each["period"] != period), now]


def after(tallies: Sequence[JsonMapping], period: int) -> list[JsonMapping]:
    """Return the tallies without the sums up to a period."""
    return [{**each, "sums": [one for one in each["sums"] if one["period"] > period]} for each in tallies]


def values_of(
    tallies: Sequence[JsonMapping], period: int, metric: Metric, parts: Collection[str] = ()
) -> Mapping[Target, Sequence[float]]:
    """Return the value of each pod in a period, as a list with one entry; ``parts``: of these alone, if there are any."""
    return dict(_values(tallies, period, metric, parts))


def _values(
    tallies: Sequence[JsonMapping], period: int, metric: Metric, parts: Collection[str]
) -> Iterator[tuple[Target, Sequence[float]]]:
    for each in tallies:
        for sums in each["sums"]:
            if sums["period"] == period and metric.quantity in sums and (not parts or each["part"] in parts):
                count, total, peak = sums[metric.quantity]
                yield _key(each), [peak if metric.is_peak else total / count]


def newest(tallies: Sequence[JsonMapping]) -> datetime | None:
    """Return the time of the last sample."""
    times = [each["at"] for each in tallies]
    return datetime.fromisoformat(max(times)) if times else None


def _key(entry: JsonMapping) -> Target:
    return entry["instance"], entry["part"]
