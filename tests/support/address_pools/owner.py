"""The service that owns address pools: it stores what is asked for, and brings the router to it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

import structlog
from aiohttp import web
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.internal import internal_app
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op, Query, Sort

from address_pools.record import COLLECTION, Pool, PoolPatch, PoolRequest, check_free

log = structlog.get_logger()


class Router:
    """The outside, in memory."""

    def __init__(self) -> None:
        self.networks: dict[str, Sequence[IPv4Network]] = {}
        self.is_away = False

    async def put(self, pool_id: str, networks: Sequence[IPv4Network]) -> None:
        """Have the pool with these networks; safe to repeat. Raises OutsideUnavailable."""
        self._answer()
        self.networks[pool_id] = networks

    async def remove(self, pool_id: str) -> None:
        """Have no such pool; safe to repeat. Raises OutsideUnavailable."""
        self._answer()
        self.networks.pop(pool_id, None)

    def _answer(self) -> None:
        if self.is_away:
            raise OutsideUnavailable("the router does not answer")


class AddressPools:
    """The pools; each write names the revision that it expects."""

    def __init__(self, store: DocumentStore, router: Router, clock: Clock) -> None:
        self._store, self._router, self._clock = store, router, clock

    async def create(self, wanted: PoolRequest) -> Pool:
        check_free(wanted.networks, await self.all())
        now = rfc3339(self._clock.now())
        pool = Pool(id=new_id(), **dict(wanted), state="PENDING", created_at=now, updated_at=now)
        return Pool.from_stored(await self._store.insert(COLLECTION, pool.id, _document(pool)))

    async def all(self) -> Sequence[Pool]:
        found = await self._store.find(COLLECTION, Query(sort=Sort("createdAt")))
        return [Pool.from_stored(stored) for stored in found]

    async def get(self, pool_id: str) -> Pool:
        stored = await self._store.get(COLLECTION, pool_id)
        if stored is None:
            raise NotFound(f"address pool {pool_id} does not exist")
        return Pool.from_stored(stored)

    async def change(self, pool_id: str, patch: PoolPatch, *, if_revision: int) -> Pool:
        pool = await self.get(pool_id)
        check_free(patch.networks, [other for other in await self.all() if other.id != pool_id])
        changed = pool.model_copy(update={"networks": patch.networks, "state": "PENDING"})
        return await self._write(changed, if_revision=if_revision)

    async def delete(self, pool_id: str, *, if_revision: int) -> None:
        pool = await self.get(pool_id)
        await self._write(pool.model_copy(update={"state": "DELETING"}), if_revision=if_revision)

    async def reconcile(self) -> None:
        """Bring the router to what the pools say; the next round repeats what fails."""
        unfinished = Compare("state", Op.IN, ["PENDING", "DELETING"])
        for stored in await self._store.find(COLLECTION, Query(unfinished)):
            pool = Pool.from_stored(stored)
            try:
                if pool.state == "DELETING":
                    await self._router.remove(pool.id)
                    await self._store.delete(COLLECTION, pool.id, if_revision=pool.revision)
                else:
                    await self._router.put(pool.id, pool.networks)
                    await self._write(pool.model_copy(update={"state": "READY"}), if_revision=pool.revision)
            # Changed since it was read, or the router does not answer: the next round finds it as it is.
            except (Conflict, RevisionConflict, OutsideUnavailable) as error:
                log.info("pool_not_reconciled", pool_id=pool.id, reason=str(error))

    async def _write(self, pool: Pool, *, if_revision: int) -> Pool:
        changed = pool.model_copy(update={"updated_at": rfc3339(self._clock.now())})
        try:
            stored = await self._store.replace(COLLECTION, pool.id, _document(changed), if_revision=if_revision)
        except RevisionConflict as error:
            raise Conflict("the address pool was changed by another request at the same time: try again") from error
        return Pool.from_stored(stored)


def internal_api(pools: AddressPools, *, token: str) -> web.Application:
    """Return the API that the gateway asks."""
    routes, many = web.RouteTableDef(), "/internal/v1/address-pools"

    @routes.post(many)
    async def create(request: web.Request) -> web.Response:
        return _answer(await pools.create(PoolRequest.model_validate(read_foreign(await request.read()))))

    @routes.get(many)
    async def find(_: web.Request) -> web.Response:
        return web.json_response({"pools": [pool.model_dump(mode="json", by_alias=True) for pool in await pools.all()]})

    @routes.get(f"{many}/{{id}}")
    async def show(request: web.Request) -> web.Response:
        return _answer(await pools.get(request.match_info["id"]))

    @routes.patch(f"{many}/{{id}}")
    async def change(request: web.Request) -> web.Response:
        patch = PoolPatch.model_validate(read_foreign(await request.read()))
        return _answer(await pools.change(request.match_info["id"], patch, if_revision=int(request.query["revision"])))

    @routes.delete(f"{many}/{{id}}")
    async def delete(request: web.Request) -> web.Response:
        await pools.delete(request.match_info["id"], if_revision=int(request.query["revision"]))
        return web.Response(status=204)

    return internal_app(routes, token=token)


def _document(pool: Pool) -> JsonObject:
    return pool.model_dump(mode="json", by_alias=True, exclude={"revision"})


def _answer(pool: Pool) -> web.Response:
    return web.json_response(pool.model_dump(mode="json", by_alias=True))
