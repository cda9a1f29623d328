"""Measures objects: asks the measurers, and assigns the values to objects and periods."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Final

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.measurement_sources import SourceStates
from kubevnfm_lcm_api.performance.domain.measured_objects import Measured, Objects, measured
from kubevnfm_lcm_api.performance.domain.metrics import OF_POINTS, Metric, Wanted
from kubevnfm_lcm_api.performance.domain.ports import MeasurementRefused, Measurer, MeasurerUnavailable
from kubevnfm_lcm_api.performance.domain.queries import Span, Target, of_whole, questions
from kubevnfm_lcm_api.performance.resources import read_instances
from kubevnfm_lcm_api.performance.sources import Sources

LONGEST_S: Final = 45.0
"""The time of a measurement: a claim of it (`due.WORK_S`) ends later, so that one that takes too long is repeated with pauses. Several
measurers have equal shares, so that the last one is asked too."""
_EXACT: Final = 2.0**53
"""Larger numbers have no fraction, and do not all fit into whole numbers of a store."""


@dataclass
class Values:
    """The results of a measurement."""

    by_time: dict[int, dict[tuple[str, Target], float]] = field(default_factory=dict)
    """By number of the time, then by metric and object."""
    without: list[str] = field(default_factory=list)
    """Why values are missing: one sentence each."""
    exist: bool = True
    """Whether any of the instances exists."""


@dataclass(frozen=True)
class Measuring:
    """Measures."""

    store: DocumentStore
    sources: Sources
    states: SourceStates
    scrape_s: float

    async def values(self, objects: Objects, internal: JsonMapping, times: Sequence[datetime], step_s: int) -> Values:
        """Return the values at these times, each over the ``step_s`` before it, which is their distance as well.

        ``internal``: names the measurers. Raises MeasurerUnavailable, StoreUnavailable.
        """
        infos = await read_instances(self.store, objects.instance_ids)
        values = Values(exist=bool(infos))
        what = measured(objects.object_type, [(each, infos.get(each)) for each in objects.instance_ids])
        values.without += what.without
        failure: VnfmError | None = None
        measurers = self.sources.measurers(internal)
        for address, measurer in measurers:
            try:
                await self._ask_in_time(
                    measurer, objects, what, times, step_s, values, longest_s=LONGEST_S / len(measurers)
                )
            except (MeasurerUnavailable, MeasurementRefused) as error:
                failure = error
                self.sources.failed(address, error)
                if isinstance(error, MeasurerUnavailable):
                    await self.states.failed(address, str(error))
                else:
                    await self.states.answered(address)
            else:
                self.sources.answered(address)
                await self.states.answered(address)
                return values
        if isinstance(failure, MeasurerUnavailable):
            raise failure
        if failure is not None:
            values.without.append(str(failure))
        return values

    async def _ask_in_time(
        self,
        measurer: Measurer,
        objects: Objects,
        what: Measured,
        times: Sequence[datetime],
        step_s: int,
        values: Values,
        *,
        longest_s: float,
    ) -> None:
        try:
            async with asyncio.timeout(longest_s):
                await self._ask(measurer, objects, what, times, step_s, values)
        except TimeoutError as error:
            raise MeasurerUnavailable(f"Prometheus: its answers took longer than {longest_s:g} s") from error

    async def _ask(
        self,
        measurer: Measurer,
        objects: Objects,
        what: Measured,
        times: Sequence[datetime],
        step_s: int,
        values: Values,
    ) -> None:
        span = Span(step_s, max(1, ceil(self.scrape_s)))
        begin = times[0].timestamp()
        values.by_time.clear()
        for metric, names in _by_metric(objects.wanted).items():
            # Together: a group names each instance.
            asked = names[0] if len(names) == 1 else Wanted(metric.name, metric)
            found: dict[int, dict[Target, list[float]]] = {}
            for question in questions(asked, what, span, objects.sub_ids):
                for series in await measurer.query_range(question.text, start=times[0], end=times[-1], step_s=step_s):
                    target = question.target(series.labels)
                    if target is None:
                        continue
                    for at, value in series.values:
                        of_target = found.setdefault(round((at - begin) / step_s), {}).setdefault(target, [])
                        if not of_target or question.is_sum:
                            of_target.append(value)
            for number, by_target in found.items():
                for wanted in names:
                    values.by_time.setdefault(number, {}).update(joined(wanted, objects, by_target))


def _by_metric(wanted: Sequence[Wanted]) -> Mapping[Metric, Sequence[Wanted]]:
    found: dict[Metric, list[Wanted]] = {}
    for each in wanted:
        found.setdefault(each.metric, []).append(each)
    return found


def joined(
    wanted: Wanted, objects: Objects, by_target: Mapping[Target, Sequence[float]]
) -> Mapping[tuple[str, Target], float]:
    """Return the values of a metric by name and object, from those of the parts."""
    by_target = {target: values for target, values in by_target.items() if wanted.instance_id in {None, target[0]}}
    if wanted.metric.quantity in OF_POINTS:
        return {(wanted.name, target): _count(sum(values)) for target, values in by_target.items()}
    if not objects.is_whole:
        return {(wanted.name, target): values[0] for target, values in by_target.items()}
    by_instance: dict[str, list[float]] = {}
    for (instance_id, _), values in by_target.items():
        by_instance.setdefault(instance_id, []).append(values[0])
    return {
        (wanted.name, (instance_id, None)): of_whole(values, is_peak=wanted.metric.is_peak)
        for instance_id, values in by_instance.items()
    }


def _count(value: float) -> float:
    """Return a number of bytes or packets: it has no fraction, unlike the rate that it is made from."""
    return round(value) if abs(value) <= _EXACT else value
