"""``/pools/v1``: the API of address pools at the gateway."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_lcm_api.http.bodies import PATCH, parse, read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.documents import DOCUMENTS, Document
from kubevnfm_lcm_api.http.routes import Answer, Route, add_routes

from address_pools.client import HttpAddressPools
from address_pools.record import Pool, PoolPatch, PoolRequest

DOCUMENT: Final = Document("address pools", "Networks on a router", ("Pools", "This document"), prefix="/pools/v1")
POOLS: Final = web.AppKey("pools", HttpAddressPools)


async def create(request: web.Request) -> web.Response:
    """POST address-pools: 202 with the pool, which is PENDING."""
    pool = await request.app[POOLS].create(parse(PoolRequest, await read_json(request)))
    location = f"{api_root(request)}{DOCUMENT.prefix}/address-pools/{pool.id}"
    return web.json_response(_shown(pool), status=202, headers={"Location": location})


async def list_all(request: web.Request) -> web.Response:
    """GET address-pools: all of them."""
    return web.json_response([_shown(pool) for pool in await request.app[POOLS].all()])


async def show(request: web.Request) -> web.Response:
    """GET address-pools/{id}: 200 with ETag, or 304."""
    pool = await request.app[POOLS].get(request.match_info["id"])
    return answer(request, _shown(pool), entity_tag("pools", pool), pool.updated_at)


async def change(request: web.Request) -> web.Response:
    """PATCH address-pools/{id}: 202, or 412 if it is not as the caller has seen it."""
    patch = parse(PoolPatch, await read_json(request, PATCH))
    pool = await _unchanged(request)
    changed = await request.app[POOLS].change(pool.id, patch, if_revision=pool.revision)
    return web.json_response(_shown(changed), status=202)


async def delete(request: web.Request) -> web.Response:
    """DELETE address-pools/{id}: 202, or 412 if it is not as the caller has seen it."""
    pool = await _unchanged(request)
    await request.app[POOLS].delete(pool.id, if_revision=pool.revision)
    return web.Response(status=202)


async def _unchanged(request: web.Request) -> Pool:
    pool = await request.app[POOLS].get(request.match_info["id"])
    check_unchanged(request, entity_tag("pools", pool), pool.updated_at)
    return pool


def _shown(pool: Pool) -> JsonObject:
    return pool.model_dump(mode="json", by_alias=True, exclude={"revision"})


def add_to(app: web.Application, pools: HttpAddressPools) -> None:
    """Add address pools to an application."""
    app[POOLS] = pools
    app[DOCUMENTS].append(DOCUMENT)
    tag, many, one = "Pools", f"{DOCUMENT.prefix}/address-pools", f"{DOCUMENT.prefix}/address-pools/{{id}}"
    made = {202: Answer("Accepted; PENDING", Pool, has_location=True)}
    every, shown = {200: Answer("All pools", Pool, is_list=True)}, {200: Answer("The pool", Pool, has_etag=True)}
    changed, deleted = {202: Answer("Accepted; PENDING", Pool)}, {202: Answer("Accepted; DELETING")}
    taken, race = {422: "Another pool has a part of a network"}, {409: "Changed by another request at the same time"}
    add_routes(
        app,
        [
            Route(tag, "POST", many, create, "Create a pool", made, PoolRequest, refusals=taken),
            Route(tag, "GET", many, list_all, "List pools", every),
            Route(tag, "GET", one, show, "Show a pool", shown),
            Route(
                tag,
                "PATCH",
                one,
                change,
                "Change a pool",
                changed,
                PoolPatch,
                PATCH,
                conditions=True,
                refusals={**taken, **race},
            ),
            Route(tag, "DELETE", one, delete, "Delete a pool", deleted, conditions=True, refusals=race),
        ],
    )
