"""Reads outputs when the watches of the inventory see a change of their objects, as long as this process leads.

Changes wait by their instance until it is read, so many changes of one object are one reading; each region has its own work, and one
that does not answer delays no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said
from kubevnfm_kit.request_ids import for_all

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.inventory.record import Identity
from kubevnfm_infra_k8s.domain.outputs.owner import Outputs
from kubevnfm_infra_k8s.domain.outputs.record import InstanceOutputs
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters

log = structlog.get_logger()

_BATCH: Final = 64
"""Instances of a region that are read one after another, some side by side, with one look at its registration."""
_LONGEST_S: Final = 60.0
"""From one look for outputs that are new to the next where each write is seen."""
_PAUSES: Final = BackOff(first_s=1.0, longest_s=10.0)

Scope = tuple[str, str, str]
"""VIM, API group and kind."""


@dataclass
class OutputWatch:
    """The outputs whose objects watches see."""

    outputs: Outputs
    vims: VimDirectory
    clusters: Clusters
    look_s: float = 1.0
    """From one look for outputs that are new to the next, unless writes are seen."""
    _known: dict[str, InstanceOutputs] = field(default_factory=dict)
    _users: dict[Scope, dict[Identity, set[str]]] = field(default_factory=dict)
    """The instances by the objects of their outputs."""
    _pending: dict[str, dict[str, None]] = field(default_factory=dict)
    """The instances to be read, by VIM."""
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def notice(self, vim_id: str, identity: Identity) -> None:
        """Have the outputs of an object read that has changed or is gone."""
        group, kind, _, _ = identity
        self._enqueue(vim_id, self._users.get((vim_id, group, kind), {}).get(identity, ()))

    def notice_list(self, vim_id: str, group: str, kind: str) -> None:
        """Have the outputs of all objects of a kind read: changes before its list were not seen."""
        for users in self._users.get((vim_id, group, kind), {}).values():
            self._enqueue(vim_id, users)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read outputs while the block lasts. Raises StoreUnavailable."""
        for record in await self.outputs.records.all():
            self._learn(record)
        following = asyncio.create_task(self._follow_news(), name="outputs-news")
        try:
            yield
        finally:
            tasks = [following, *self._tasks.values()]
            for each in (self._tasks, self._known, self._users, self._pending):
                each.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow_news(self) -> None:
        is_read = True
        while True:
            if is_read:
                await self.outputs.records.await_news(look_s=self.look_s, longest_s=_LONGEST_S)
            else:
                await asyncio.sleep(self.look_s)
            is_read = False
            try:
                for record in await self.outputs.records.news():
                    self._learn(record)
                    # Its objects may have changed before they were known here.
                    self._enqueue(record.vim_id, [record.vnf_instance_id])
                    await self.outputs.records.clear_news(record)
                is_read = True
            except VnfmError as error:
                unless_said(error).warning("outputs_not_read", reason=str(error))

    def _learn(self, record: InstanceOutputs) -> None:
        self._unlearn(record.vnf_instance_id)
        if not record.vim_id:
            return
        self._known[record.vnf_instance_id] = record
        for each in record.outputs:
            users = self._users.setdefault((record.vim_id, each.key.group, each.key.kind), {})
            users.setdefault(each.key.identity, set()).add(record.vnf_instance_id)

    def _unlearn(self, vnf_instance_id: str) -> None:
        record = self._known.pop(vnf_instance_id, None)
        if record is None:
            return
        for each in record.outputs:
            scope = (record.vim_id, each.key.group, each.key.kind)
            users = self._users.get(scope, {})
            users.get(each.key.identity, set()).discard(vnf_instance_id)
            if not users.get(each.key.identity):
                users.pop(each.key.identity, None)
            if not users:
                self._users.pop(scope, None)

    def _enqueue(self, vim_id: str, instances: Iterable[str]) -> None:
        waiting = self._pending.setdefault(vim_id, {})
        waiting.update(dict.fromkeys(instances))
        if waiting and vim_id not in self._tasks:
            self._tasks[vim_id] = for_all(self._work(vim_id), name=f"outputs {vim_id}")

    async def _work(self, vim_id: str) -> None:
        failures = 0
        while waiting := self._pending.pop(vim_id, None):
            batch = [each for each, _ in zip(waiting, range(_BATCH), strict=False)]
            left = dict.fromkeys(list(waiting)[_BATCH:])
            try:
                vim = await self.vims.connection(VimConnection(vim_id=vim_id))
                async with self.clusters.cluster(vim) as cluster:
                    failed = [each for each in await each_of(batch, lambda one: self._read(cluster, one)) if each]
            except VnfmError as error:
                unless_said(error).info("outputs_region_unavailable", vim_id=vim_id, reason=str(error))
                failed = batch
            except Exception:  # a fault of ours must not end the readings of the region, and must be seen
                log.exception("outputs_region_unavailable", vim_id=vim_id)
                failed = batch
            self._pending[vim_id] = {**left, **dict.fromkeys(failed), **self._pending.get(vim_id, {})}
            failures = failures + 1 if failed else 0
            if failures:
                await asyncio.sleep(_PAUSES.after(failures))
        del self._tasks[vim_id]

    async def _read(self, cluster: Cluster, vnf_instance_id: str) -> str:
        """Read the outputs of an instance; return its id if that has to be done again, otherwise ""."""
        try:
            if await self.outputs.refresh(cluster, vnf_instance_id) is None:
                self._unlearn(vnf_instance_id)
        except VnfmError as error:
            unless_said(error).info("outputs_not_read", vnf_instance_id=vnf_instance_id, reason=str(error))
            return vnf_instance_id
        except Exception:  # a fault of ours with one instance must not stop the others, and must be seen
            log.exception("outputs_not_read", vnf_instance_id=vnf_instance_id)
        return ""
