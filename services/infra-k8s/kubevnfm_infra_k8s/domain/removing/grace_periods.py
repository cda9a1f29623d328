"""Applies the requested grace period to the pods of an instance; the deletion of their owners cannot carry it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.concurrency import is_set
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, PODS, ObjectKey, field_at, name_of, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster

log = structlog.get_logger()

_FIRST_LOOK_S: Final = 1.0


@dataclass
class GracePeriods:
    """The grace periods of pods that end, in the namespaces of objects that are deleted."""

    cluster: Cluster
    vnf_instance_id: str
    namespaces: Collection[str]
    grace_period_s: int | None
    """None: each pod has its own."""
    _unseen: set[str] = field(default_factory=set)
    """The namespaces whose pods were not looked at yet."""
    _are_seen: asyncio.Event = field(default_factory=asyncio.Event)
    _goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def shortened(self) -> AsyncIterator[None]:
        """Shorten those of pods that end now, or a second long: what owned them is often gone then, and needs no watch."""
        if self.grace_period_s is not None:
            self._unseen.update(self.namespaces)
        tasks = [
            asyncio.create_task(self._shorten_in(each, self.grace_period_s or 0), name=f"shorten-grace-periods {each}")
            for each in self._unseen
        ]
        try:
            if tasks:
                await is_set(self._are_seen, within_s=_FIRST_LOOK_S)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def go_on(self) -> None:
        """Shorten those of pods that end from now on, too."""
        self._goes_on.set()

    async def _shorten_in(self, namespace: str, grace_period_s: int) -> None:
        shortened: set[str] = set()
        selector = f"{INSTANCE_LABEL}={self.vnf_instance_id}"
        try:
            async with aclosing(self.cluster.follow(PODS, namespace=namespace, labels=selector)) as following:
                async for seen in following:
                    for pod in seen.found.values():
                        own_s = field_at(pod, "metadata", "deletionGracePeriodSeconds")
                        if own_s is None or own_s <= grace_period_s or uid_of(pod) in shortened:
                            continue
                        shortened.add(uid_of(pod))
                        key = ObjectKey("v1", "Pod", namespace, name_of(pod))
                        await self.cluster.delete(PODS, key, uid=uid_of(pod), grace_period_s=grace_period_s)
                    self._have_seen(namespace)
                    await self._goes_on.wait()
        except VnfmError as error:  # the wait for the deletion continues, and raises if the cluster is unreachable
            log.warning("grace_period_not_shortened", namespace=namespace, reason=str(error))
            self._have_seen(namespace)

    def _have_seen(self, namespace: str) -> None:
        self._unseen.discard(namespace)
        if not self._unseen:
            self._are_seen.set()
