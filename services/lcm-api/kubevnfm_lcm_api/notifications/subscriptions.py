"""Subscriptions: created after the test of their callback, shown with the state of their deliveries, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.access import SITE_MARK
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Exists, Op, Query, Sort, Stored, by

from kubevnfm_lcm_api.notifications.checked_callbacks import CheckedCallbacks
from kubevnfm_lcm_api.notifications.delivery import NOTIFICATIONS
from kubevnfm_lcm_api.notifications.domain.callback import CallbackRefused, Subscriber
from kubevnfm_lcm_api.notifications.domain.changes import ANY_CHANGE, OF_ONAP
from kubevnfm_lcm_api.notifications.domain.subscription import (
    COLLECTION,
    ONAP_INSTANCE,
    SEALED_ADDRESS,
    ApiName,
    SubscriptionRequest,
    callback_of,
    stored_address,
)
from kubevnfm_lcm_api.site_entries import insert_once, site_entry

_MOST_OF_ONAP: Final = 1000
_COUNTED: Final = 10_000
"""Pending notifications are counted up to here."""


@dataclass(frozen=True)
class DeliveryState:
    """The state of a subscription's deliveries."""

    subscription: JsonMapping
    pending: int
    oldest_pending_at: str | None


class Subscriptions:
    """Creates, finds and deletes subscriptions."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        subscriber: Subscriber,
        ring: KeyRing,
        clock: Clock,
        callbacks: CheckedCallbacks,
    ) -> None:
        self._store, self._subscriber, self._ring, self._clock = store, subscriber, ring, clock
        self._callbacks = callbacks

    async def seal_addresses(self) -> None:
        """Seal the addresses with a query that version 0.1.0 has stored in clear. At the start, before any filter is answered."""
        in_clear = AllOf([Compare("callbackUri", Op.CONT, ["?", "#"]), Exists(SEALED_ADDRESS, exists=False)])
        for stored in await self._store.find(COLLECTION, Query(in_clear)):
            sealed = stored_address(stored.body["callbackUri"], self._ring)
            if SEALED_ADDRESS not in sealed:
                continue
            # Another process that starts now does the same: the first one has the address.
            with suppress(RevisionConflict):
                await self._store.update(COLLECTION, stored.id, sealed, where=Exists(SEALED_ADDRESS, exists=False))

    async def widen_types(self) -> None:
        """Have subscriptions that name no types, of a version with one type alone, get them all. At the start."""
        one = AllOf([by(apiVersion="multicloud"), Compare("keys/types", Op.EQ, [OF_ONAP])])
        for stored in await self._store.find(
            COLLECTION, Query(AllOf([one, Exists("shownFilter/types", exists=False)]))
        ):
            with suppress(RevisionConflict):
                await self._store.update(COLLECTION, stored.id, {"keys/types": [ANY_CHANGE]}, where=Exists("createdAt"))

    async def create(
        self, request: SubscriptionRequest, api: ApiName, *, by_caller: str, subscription_id: str | None = None
    ) -> JsonMapping:
        """Test the callback where SOL wants it, store the subscription; return the document.

        ``by_caller``: the name of the caller; ``subscription_id``: None for a random one.
        Raises CallbackRefused, InvalidInput, AlreadyExists, Conflict.
        """
        body = {
            **request.document(self._ring),
            **await self._callbacks.checked(api, request.callback_uri, request.authentication),
            "id": subscription_id or new_id(),
            "apiVersion": api,
            "createdAt": rfc3339(self._clock.now()),
            "createdBy": by_caller,
            "keys": request.keys(),
        }
        # A site file replaces a subscription by one with another content, before it deletes the former one.
        content = {name: body.get(name) for name in ("callbackUri", "filter", "verbosity")}
        entry = site_entry(body.get("metadata"), SITE_MARK, "name", content=content)
        if entry is not None:
            body["internal"] = {"siteEntry": entry}
        await insert_once(
            self._store,
            COLLECTION,
            entry,
            lambda: self._store.insert(COLLECTION, body["id"], body),
            present=lambda _: entry,
        )
        return body

    async def get(self, subscription_id: str, api: ApiName) -> Stored:
        """Return the subscription. Raises NotFound, also for a subscription of another API or API version."""
        stored = await self._store.get(COLLECTION, subscription_id)
        if stored is None or stored.body["apiVersion"] != api:
            raise NotFound(f"subscription {subscription_id} does not exist")
        return stored

    async def page(self, api: ApiName, *, limit: int, after: tuple[str, str] | None = None) -> Sequence[Stored]:
        """Return subscriptions of an API, by the time of their creation; ``after``: that and the id of the last one before."""
        query = Query(by(apiVersion=api), sort=Sort("createdAt"), after=after, limit=limit)
        return await self._store.find(COLLECTION, query)

    async def of_onap(self, instance_id: str) -> Sequence[Stored]:
        """Return the subscriptions of clients of ONAP to an instance."""
        wanted = AllOf([Compare(ONAP_INSTANCE, Op.EQ, [instance_id]), Exists(ONAP_INSTANCE)])
        return await self._store.find(COLLECTION, Query(wanted, limit=_MOST_OF_ONAP))

    async def change(self, stored: Stored, request: SubscriptionRequest) -> JsonMapping:
        """Replace what a subscription says; return the document. Raises CallbackRefused, NotFound."""
        body = {**request.document(self._ring), **stored_address(request.callback_uri, self._ring)}
        if (obstacle := await self._subscriber.obstacle(callback_of(body))) is not None:
            raise CallbackRefused(obstacle)
        unset = [SEALED_ADDRESS] if SEALED_ADDRESS not in body and SEALED_ADDRESS in stored.body else []
        try:
            # Without the revision: each delivery writes its state.
            changed = await self._store.update(COLLECTION, stored.id, body, unset=unset, where=Exists("createdAt"))
        except RevisionConflict as error:
            raise NotFound(f"subscription {stored.id} does not exist") from error
        return changed.body

    async def delivery_state(self, subscription_id: str) -> DeliveryState:
        """Return the state of its deliveries; the API of its creation does not matter. Raises NotFound."""
        stored = await self._store.get(COLLECTION, subscription_id)
        if stored is None:
            raise NotFound(f"subscription {subscription_id} does not exist")
        return await self.delivery_state_of(stored, most=_COUNTED)

    async def delivery_state_of(self, stored: Stored, *, most: int) -> DeliveryState:
        """Return the state of a subscription's deliveries; at most so many pending ones are counted."""
        pending = by(pendingFor=stored.id)
        first = await self._store.find(NOTIFICATIONS, Query(pending, sort=Sort("order"), limit=1, exclude=("body",)))
        return DeliveryState(
            stored.body,
            await self._store.count(NOTIFICATIONS, pending, limit=most) if first else 0,
            first[0].body["queuedAt"] if first else None,
        )

    async def delete(self, subscription_id: str, api: ApiName) -> None:
        """Delete it and its pending notifications. Raises NotFound."""
        await self.get(subscription_id, api)
        # The subscription first, so that new events no longer match it. A notification that is queued after both calls
        # is deleted by its own command.
        await self._store.delete(COLLECTION, subscription_id)
        await self._store.delete_many(NOTIFICATIONS, by(pendingFor=subscription_id))
