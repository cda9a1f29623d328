"""``/internal/v1/packages``: the packages' files, for the other services."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput, NotFound

from kubevnfm_lcm_api.http.routes import ANY_TYPE, Answer, Route
from kubevnfm_lcm_api.packages.http.context import services


async def archive(request: web.Request) -> web.StreamResponse:
    stored = await services(request).catalogue.get(request.match_info["id"])
    path = await services(request).files.archive(stored.id)
    return web.FileResponse(path, headers={"Content-Type": "application/zip"})


async def file(request: web.Request) -> web.StreamResponse:
    path = request.match_info["path"]
    stored = await services(request).catalogue.get(request.match_info["id"])
    if ".." in path.split("/"):
        raise InvalidInput("path", "a path inside the package expected")
    folder = services(request).files.folder(stored.id)
    if path not in await services(request).catalogue.file_names(stored.id) or not (folder / path).is_file():
        raise NotFound(f"VNF package {stored.id} has no file {path}")
    return web.FileResponse(folder / path, headers={"Content-Type": "application/octet-stream"})


def routes() -> list[Route]:
    """Return the internal routes of packages."""
    tag, base = "Between the services", "/internal/v1/packages/{id}"
    zipped = {200: Answer("The package without its VM images", media_types=("application/zip",))}
    found = {200: Answer("The file", media_types=(ANY_TYPE,))}
    return [
        Route(tag, "GET", f"{base}/archive", archive, "Read a package", zipped),
        Route(tag, "GET", f"{base}/files/{{path:.+}}", file, "Read a file of a package", found),
    ]
