"""``/internal/v1``: what the other services ask of lcm-api (packages, the users of a VIM, instances)."""

from __future__ import annotations

import hmac

from aiohttp import web
from kubevnfm_access.errors import Unauthenticated
from kubevnfm_access.middleware import Handler
from kubevnfm_kit.errors import InvalidInput, NotFound

from kubevnfm_lcm_api.gateway.context import gateway


def for_services(handler: Handler) -> Handler:
    """Return the handler behind the internal token."""

    async def handle(request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), gateway(request).internal_token.encode()):
            raise Unauthenticated("the internal token is required")
        return await handler(request)

    return handle


async def archive(request: web.Request) -> web.StreamResponse:
    """GET packages/{id}/archive: a zip of the package without its VM images."""
    stored = await gateway(request).packages.get(request.match_info["id"])
    return web.FileResponse(
        await gateway(request).files.archive(stored.id), headers={"Content-Type": "application/zip"}
    )


async def file(request: web.Request) -> web.StreamResponse:
    """GET packages/{id}/files/{path}: one file."""
    path = request.match_info["path"]
    stored = await gateway(request).packages.get(request.match_info["id"])
    if ".." in path.split("/"):
        raise InvalidInput("path", "a path inside the package expected")
    folder = gateway(request).files.folder(stored.id)
    if path not in await gateway(request).packages.file_names(stored.id) or not (folder / path).is_file():
        raise NotFound(f"VNF package {stored.id} has no file {path}")
    return web.FileResponse(folder / path)


async def vim_users(request: web.Request) -> web.Response:
    """GET vims/{id}/users: the instances that live on a VIM."""
    return web.json_response({"users": await gateway(request).instances.users(request.match_info["id"])})


async def instance(request: web.Request) -> web.Response:
    """GET instances/{id}: 200 when there is such a VNF instance, else 404."""
    return web.json_response({"id": (await gateway(request).instances.get(request.match_info["id"])).id})


def routes() -> list[web.RouteDef]:
    """Return the internal routes."""
    return [
        web.get("/internal/v1/packages/{id}/archive", for_services(archive)),
        web.get("/internal/v1/packages/{id}/files/{path:.+}", for_services(file)),
        web.get("/internal/v1/vims/{id}/users", for_services(vim_users)),
        web.get("/internal/v1/instances/{id}", for_services(instance)),
    ]
