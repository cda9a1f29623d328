"""``/internal/v1/packages``: the packages' files, for the other services."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput, NotFound

from kubevnfm_lcm_api.http.internal import for_services
from kubevnfm_lcm_api.packages.http.context import services


async def archive(request: web.Request) -> web.StreamResponse:
    """GET packages/{id}/archive: a zip of the package without its VM images."""
    stored = await services(request).catalogue.get(request.match_info["id"])
    path = await services(request).files.archive(stored.id)
    return web.FileResponse(path, headers={"Content-Type": "application/zip"})


async def file(request: web.Request) -> web.StreamResponse:
    """GET packages/{id}/files/{path}: one file."""
    path = request.match_info["path"]
    stored = await services(request).catalogue.get(request.match_info["id"])
    if ".." in path.split("/"):
        raise InvalidInput("path", "a path inside the package expected")
    folder = services(request).files.folder(stored.id)
    if path not in await services(request).catalogue.file_names(stored.id) or not (folder / path).is_file():
        raise NotFound(f"VNF package {stored.id} has no file {path}")
    return web.FileResponse(folder / path, headers={"Content-Type": "application/octet-stream"})


def routes() -> list[web.RouteDef]:
    """Return the internal routes of packages."""
    base = "/internal/v1/packages/{id}"
    return [
        web.get(f"{base}/archive", for_services(archive)),
        web.get(f"{base}/files/{{path:.+}}", for_services(file)),
    ]
