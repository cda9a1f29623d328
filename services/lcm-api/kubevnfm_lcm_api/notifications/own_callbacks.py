"""Callbacks of resources that are no subscriptions: PM jobs and thresholds.

Their notifications need a queue, a turn and a record of deliveries as those of subscriptions do, so each has a document in the same
collection, with its own id. The resource has the address; the document follows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op, Query, Sort, by

from kubevnfm_lcm_api.notifications.checked_callbacks import CheckedCallbacks
from kubevnfm_lcm_api.notifications.delivery import NOTIFICATIONS
from kubevnfm_lcm_api.notifications.domain.callback import Authentication
from kubevnfm_lcm_api.notifications.domain.performance import key_of
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION, SEALED_ADDRESS

_API: Final = "vnfpm"
ADDRESS: Final = ("callbackUri", SEALED_ADDRESS, "authentication")
"""The attributes of a callback, in the resource and here."""
_NUMBER: Final = "internal/addressNumber"
_PAGE: Final = 500


class OwnCallbacks:
    """The callbacks of resources."""

    def __init__(self, store: DocumentStore, clock: Clock, checked: CheckedCallbacks) -> None:
        self._store, self._clock, self._checked = store, clock, checked

    async def checked(self, uri: str, authentication: Authentication | None) -> JsonObject:
        """Return the attributes that a resource stores for its callback. Raises CallbackRefused, InvalidInput."""
        return await self._checked.checked(_API, uri, authentication)

    async def changed(
        self,
        present: JsonMapping,
        *,
        uri: str | None,
        authentication: Authentication | None,
        keeps_authentication: bool,
    ) -> JsonObject:
        """Return the attributes of a callback after a change; None: the present address. Raises CallbackRefused, InvalidInput.

        ``keeps_authentication``: the present one stays, otherwise ``authentication`` takes its place.
        """
        return await self._checked.changed(
            _API, present, uri=uri, authentication=authentication, keeps_authentication=keeps_authentication
        )

    async def follow(self, owner_id: str, owner: JsonMapping, number: int) -> None:
        """Have notifications go where the resource says; ``number``: that of the address, which rises with each change."""
        address = {name: owner[name] for name in ADDRESS if name in owner}
        stored = await self._store.get(COLLECTION, owner_id)
        if stored is None:
            body = {
                "id": owner_id,
                "apiVersion": _API,
                "createdAt": rfc3339(self._clock.now()),
                "keys": {"types": [key_of(owner_id)]},
                "internal": {"addressNumber": number},
            }
            try:
                await self._store.insert(COLLECTION, owner_id, {**body, **address})
            except AlreadyExists:
                await self.follow(owner_id, owner, number)
            return
        if stored.body["internal"]["addressNumber"] >= number:
            return
        unset = [name for name in ADDRESS if name not in address]
        try:
            await self._store.update(
                COLLECTION,
                owner_id,
                {**address, _NUMBER: number},
                unset=unset,
                where=Compare(_NUMBER, Op.LT, [number]),
            )
        except RevisionConflict:
            return  # another process was faster, or the resource was deleted meanwhile

    async def remove(self, owner_id: str) -> None:
        """Send nothing more for this resource."""
        await self._store.delete(COLLECTION, owner_id)
        await self._store.delete_many(NOTIFICATIONS, by(pendingFor=owner_id))

    async def remove_orphans(self, exists: Callable[[str], Awaitable[bool]]) -> None:
        """Remove callbacks without their resource: a crash in between may have left some."""
        after: tuple[str, str] | None = None
        while True:
            query = Query(by(apiVersion=_API), sort=Sort("createdAt"), after=after, limit=_PAGE, exclude=ADDRESS)
            page = await self._store.find(COLLECTION, query)
            for each in page:
                if not await exists(each.id):
                    await self.remove(each.id)
            if len(page) < _PAGE:
                return
            after = (page[-1].body["createdAt"], page[-1].id)
