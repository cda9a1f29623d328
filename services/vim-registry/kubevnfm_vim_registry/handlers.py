"""The handlers of vim-registry: commands of operations, and events about credentials."""

from __future__ import annotations

from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Dead, Delivery, MessageBus, Verdict
from kubevnfm_events import Envelope, Event
from kubevnfm_events.credentials import CredentialsDeleted, CredentialsReceived, CredentialsRotated
from kubevnfm_events.vim import (
    CapiProvidersRecorded,
    DeregisterVim,
    RecordCapiProviders,
    RegisterReceived,
    RegisterVim,
    ReleaseVim,
    VimDeregistered,
    VimRegistrationFailed,
    VimReleased,
)
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_vim_registry.clusters import LOST_RACES, ClusterVims
from kubevnfm_vim_registry.records import SOURCE
from kubevnfm_vim_registry.registry import registered

log = structlog.get_logger()

_LONGEST_PAUSE_S: Final = 30.0


class VimHandlers:
    """Handles the commands and events that vim-registry consumes."""

    def __init__(self, clusters: ClusterVims, bus: MessageBus, clock: Clock, *, credentials_tries_s: float) -> None:
        self._clusters, self._bus, self._clock = clusters, bus, clock
        self._credentials_tries_s = credentials_tries_s

    async def register_vim(self, command: RegisterVim, _: StepContext) -> Outcome:
        """Register the cluster that an operation built."""
        try:
            return Done(registered(await self._clusters.register(command)))
        except LOST_RACES:
            return NotYet(again_in_s=0.2)

    async def register_received(self, command: RegisterReceived, _: StepContext) -> Outcome:
        """Register the workload cluster whose credentials were received, for the operation that waits for it."""
        try:
            return Done(registered(await self._clusters.register_received(command)))
        except LOST_RACES:
            return NotYet(again_in_s=0.2)

    async def deregister_vim(self, command: DeregisterVim, _: StepContext) -> Outcome:
        """Remove the VIMs of an instance."""
        return Done(VimDeregistered(vim_ids=tuple(await self._clusters.deregister(command))))

    async def record_capi_providers(self, command: RecordCapiProviders, _: StepContext) -> Outcome:
        """Show in a VIM which providers of Cluster API a VNF has installed in its cluster."""
        try:
            await self._clusters.record_capi_providers(command)
        except LOST_RACES:
            return NotYet(again_in_s=0.2)
        return Done(CapiProvidersRecorded(vim_id=command.vim_id))

    async def release_vim(self, command: ReleaseVim, _: StepContext) -> Outcome:
        """Have the VIM of a workload cluster wait for the cluster that takes its place."""
        try:
            return Done(VimReleased(vim_ids=tuple(await self._clusters.release(command))))
        except LOST_RACES:
            return NotYet(again_in_s=0.2)

    async def handle_credentials(self, delivery: Delivery) -> Verdict:
        """Update or remove the VIM of a cluster that called back (capi.md, chapter 11)."""
        event = delivery.envelope.data
        assert isinstance(event, CredentialsReceived | CredentialsRotated | CredentialsDeleted)
        is_deletion = isinstance(event, CredentialsDeleted)
        try:
            if isinstance(event, CredentialsDeleted):
                await self._clusters.forget(event)
            else:
                await self._clusters.update(event)
        # Not a command but an event: without an inbox, delivery is repeated by the bus until Ack.
        except LOST_RACES:
            return Again(0.2)
        except VnfmError as error:
            # A load balancer may need minutes until it reaches the API server.
            pause_s = self._pause_s(delivery, error)
            if pause_s is not None:
                return Again(pause_s)
            unless_said(error).warning(
                "credentials_event_failed", credentials_id=event.credentials_id, reason=str(error)
            )
            # VimInUse (CR-084): the VIM stays, and the event reports why.
            reason = f"VIM kept: {error}" if is_deletion else f"{error.title}: {error}"
            await self._publish(delivery, VimRegistrationFailed(credentials_id=event.credentials_id, reason=reason))
        # The edge: the same stored record breaks the handler at every delivery, so this one is the last.
        except Exception as error:
            log.exception("credentials_event_broke", credentials_id=event.credentials_id)
            reason = "Internal error: unexpected error, see the log of vim-registry"
            await self._publish(delivery, VimRegistrationFailed(credentials_id=event.credentials_id, reason=reason))
            return Dead(type(error).__name__)
        return Ack()

    def _pause_s(self, delivery: Delivery, error: VnfmError) -> float | None:
        """Return the time until the event is handled again; None if that would not help, or has been tried long enough."""
        age_s = (self._clock.now() - delivery.envelope.time).total_seconds()
        if not error.retryable or age_s >= self._credentials_tries_s:
            return None
        return min(max(age_s / 2, 1.0), _LONGEST_PAUSE_S)

    async def _publish(self, delivery: Delivery, event: Event) -> None:
        news: Envelope[Event] = delivery.envelope.follow_up(event, source=SOURCE)
        await self._bus.publish(news)
