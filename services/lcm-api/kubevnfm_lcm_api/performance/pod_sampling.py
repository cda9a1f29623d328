"""Samples the usage of the pods of CNFs, as their clusters measure it (``metrics.k8s.io``), where there is no Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_clients.multicloud.errors import ResourceMetricsUnavailable
from kubevnfm_clients.pod_usages import MOST_PODS, PodsInUse, PodUsage, PodUsages
from kubevnfm_events import VimConnection
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import OutsideUnavailable, Unprocessable, VnfmError
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.measurement_sources import OF_CLUSTER, SourceStates
from kubevnfm_lcm_api.performance.domain.measured_objects import Objects, Vnfc, measured
from kubevnfm_lcm_api.performance.domain.metrics import Quantity, Wanted
from kubevnfm_lcm_api.performance.domain.tallies import OF_PODS, Sample

log = structlog.get_logger()

_LONGEST_S: Final = 30.0
"""The time of all questions of one round: a claim (`kubevnfm_lcm_api.due.WORK_S`) ends later."""
_AT_A_TIME: Final = 8
_OLDEST: Final = timedelta(minutes=5)
_AHEAD: Final = timedelta(minutes=1)
"""A sample with a time beyond these is none of the present: the clock of the cluster is another one."""
_LONGEST_REASON: Final = 1000
_PLACE: Final = "metadata/monitoring"
_NO_PROMETHEUS: Final = "expected, because no Prometheus is configured (setting prometheus_url)"


@dataclass
class Sampled:
    """The results of one round."""

    samples: list[Sample] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    """Why parts are not measured: one sentence each."""
    errors: list[str] = field(default_factory=list)
    """Why there are no samples, or not all: one sentence each."""
    exist: bool = True
    """Whether any of the instances exists."""

    @property
    def error(self) -> str:
        """The text for operators; empty: all went well."""
        return bounded("; ".join(self.errors), _LONGEST_REASON)


def note_outage(resource_id: str, before: str, error: str) -> None:
    """Write into the log that samples are missing, for another reason than before, or that there are all again."""
    if error and error != before:
        log.warning("pods_not_sampled", id=resource_id, reason=error)
    elif before and not error:
        log.info("pods_sampled_again", id=resource_id)


@dataclass(frozen=True)
class _Question:
    """The VNFCs of one instance in one namespace."""

    instance_id: str
    vim: VimConnection | None
    namespace: str
    vnfcs: Mapping[str, Vnfc]
    """By the names of their pods."""


@dataclass(frozen=True)
class PodSampling:
    """Takes samples."""

    store: DocumentStore
    usages: PodUsages
    clock: Clock
    every_s: float
    """The pause between two samples."""
    measured_after: timedelta
    """How long after the end of a period it is measured: its last samples are known then."""
    states: SourceStates

    async def check(self, objects: Objects, places: Mapping[str, str], collection_s: int | None) -> None:
        """Check at its creation whether a job or threshold can be measured so. Raises Unprocessable.

        ``places``: where the request has the metrics, by name; ``collection_s``: the period of a job. A cluster that does not answer
        now may answer later.
        """
        records = await self._records(objects.instance_ids)
        questions = self._questions(objects, records, Sampled())
        for instance_id in objects.instance_ids:
            record = records.get(instance_id)
            if record is None or record.release is None or not any(one.instance_id == instance_id for one in questions):
                reason = (
                    f"otherwise CNFs are measured by metrics.k8s.io, and VNF instance {instance_id} has no pods now"
                )
                raise Unprocessable(_PLACE, f"{_NO_PROMETHEUS}; {reason}")
        for wanted in objects.wanted:
            if wanted.metric.quantity not in OF_PODS:
                reason = f"{wanted.metric.name} needs a Prometheus (setting prometheus_url, or {_PLACE}): metrics.k8s.io has CPU and memory only"
                raise Unprocessable(places.get(wanted.name, "criteria/performanceMetricGroup"), reason)
        if collection_s is not None and collection_s < self.every_s:
            reason = f"at least {self.every_s:g} s expected without a Prometheus (setting pm_sample_s)"
            raise Unprocessable("criteria/collectionPeriod", reason)
        if sum(len(each.vnfcs) for each in questions) > MOST_PODS:
            raise Unprocessable(_PLACE, f"{_NO_PROMETHEUS}; without one at most {MOST_PODS} pods are measured")
        # One for each VIM is enough.
        first = {(each.vim.vim_id or each.instance_id) if each.vim else "": each for each in reversed(questions)}
        for found in await self._ask_all(list(first.values())):
            if isinstance(found, VnfmError) and not _may_pass(found):
                raise Unprocessable(_PLACE, f"{_NO_PROMETHEUS}; {found}") from found

    async def sample(self, objects: Objects) -> Sampled:
        """Return the newest sample of each pod. Raises StoreUnavailable."""
        records = await self._records(objects.instance_ids)
        sampled = Sampled(exist=bool(records))
        questions = self._questions(objects, records, sampled)
        for question, found in zip(questions, await self._ask_all(questions), strict=True):
            await self._note(question, found)
            if isinstance(found, VnfmError):
                sampled.errors.append(f"VNF instance {question.instance_id}: {found}")
            else:
                self._read(question, found, objects.wanted, sampled)
        return sampled

    async def _records(self, instance_ids: Sequence[str]) -> Mapping[str, InstanceRecord]:
        found = await self.store.get_many(INSTANCES, instance_ids)
        return {each.id: InstanceRecord.from_document(each.body) for each in found}

    def _questions(
        self, objects: Objects, records: Mapping[str, InstanceRecord], sampled: Sampled
    ) -> Sequence[_Question]:
        infos = [
            (each, records[each].vnf.instantiated_vnf_info if each in records else None)
            for each in objects.instance_ids
        ]
        what = measured(objects.object_type, infos)
        sampled.without += what.without
        chosen = [each for each in what.vnfcs if not objects.sub_ids or each.id in objects.sub_ids]
        if len(chosen) > MOST_PODS:
            sampled.errors.append(f"only {MOST_PODS} of {len(chosen)} pods are measured without a Prometheus")
        found: dict[tuple[str, str], dict[str, Vnfc]] = {}
        for each in chosen[:MOST_PODS]:
            if each.pod is not None:
                found.setdefault((each.instance_id, each.pod.namespace), {})[each.pod.name] = each
        return [
            _Question(instance_id, _vim_of(records[instance_id]), namespace, vnfcs)
            for (instance_id, namespace), vnfcs in found.items()
        ]

    async def _ask_all(self, questions: Sequence[_Question]) -> Sequence[Sequence[PodUsage] | VnfmError]:
        gate, until = asyncio.Semaphore(_AT_A_TIME), asyncio.get_running_loop().time() + _LONGEST_S
        return await asyncio.gather(*(self._ask(each, gate, until) for each in questions))

    async def _ask(self, question: _Question, gate: asyncio.Semaphore, until: float) -> Sequence[PodUsage] | VnfmError:
        if question.vim is None:
            return OutsideUnavailable("its VIM is not in vimConnectionInfo any more")
        wanted = PodsInUse(
            vim=question.vim,
            vnf_instance_id=question.instance_id,
            namespace=question.namespace,
            pods=tuple(question.vnfcs),
        )
        try:
            async with asyncio.timeout_at(until), gate:
                return await self.usages.read(wanted)
        except VnfmError as error:
            return error
        except TimeoutError:
            return OutsideUnavailable(f"its cluster did not answer in {_LONGEST_S:g} s")

    async def _note(self, question: _Question, found: Sequence[PodUsage] | VnfmError) -> None:
        """Store whether the cluster measures its pods; a VIM that does not answer has an alarm of its own. Raises StoreUnavailable."""
        if isinstance(found, ResourceMetricsUnavailable):
            await self.states.failed(_address_of(question), str(found))
        elif not isinstance(found, VnfmError):
            await self.states.answered(_address_of(question))

    def _read(self, question: _Question, found: Sequence[PodUsage], wanted: Iterable[Wanted], sampled: Sampled) -> None:
        now, needs_memory = self.clock.now(), any(each.metric.quantity == "memory" for each in wanted)
        reasons = {}
        for each in found:
            vnfc = question.vnfcs.get(each.pod)
            if vnfc is None:
                continue
            if not now - _OLDEST <= each.at <= now + _AHEAD:
                reasons["time"] = f"the sample of pod {each.pod} has the time {each.at.isoformat()}"
                continue
            if needs_memory and each.memory is not None and not each.memory_limit:
                reasons["memory"] = f"neither pod {each.pod} has a limit of memory, nor is that of its node known"
            if usage := _percents(each):
                sampled.samples.append(Sample(question.instance_id, vnfc.id, each.at, usage))
        sampled.errors += [f"VNF instance {question.instance_id}: {reason}" for reason in reasons.values()]


def _percents(usage: PodUsage) -> Mapping[Quantity, float]:
    """Return the usage in percent of its limits; that of CPU without a limit in percent of one CPU."""
    found: dict[Quantity, float] = {}
    if usage.cpu is not None:
        found["cpu"] = 100 * usage.cpu / (usage.cpu_limit or 1.0)
    if usage.memory is not None and usage.memory_limit:
        found["memory"] = 100 * usage.memory / usage.memory_limit
    return found


def _address_of(question: _Question) -> str:
    vim_id = question.vim.vim_id if question.vim is not None else None
    return f"{OF_CLUSTER}{vim_id or question.instance_id}"


def _may_pass(error: VnfmError) -> bool:
    return isinstance(error, OutsideUnavailable) and not isinstance(error, ResourceMetricsUnavailable)


def _vim_of(record: InstanceRecord) -> VimConnection | None:
    held = record.release
    connection = record.vnf.vim_connection_info.get(held.vim_key) if held is not None else None
    return None if connection is None else VimConnection(**vars(connection))
