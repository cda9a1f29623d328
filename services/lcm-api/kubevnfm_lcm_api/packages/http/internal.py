"""``/internal/v1/packages`` and ``/charts``: the files of packages, and charts of registries, for the other services."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_clients.charts import ChartState, ChartWanted
from kubevnfm_kit.errors import InvalidInput, NotFound, Unprocessable

from kubevnfm_lcm_api.http.bodies import parse, read_json
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


async def ensure_chart(request: web.Request) -> web.Response:
    wanted = parse(ChartWanted, await read_json(request))
    if wanted.digest.rpartition(":")[2] != request.match_info["id"]:
        raise Unprocessable("digest", "that of the path expected")
    return web.json_response((await services(request).charts.ensure(wanted)).model_dump(exclude_none=True))


async def chart(request: web.Request) -> web.Response:
    state = await services(request).charts.state(request.match_info["id"])
    return web.json_response(state.model_dump(exclude_none=True))


async def chart_archive(request: web.Request) -> web.StreamResponse:
    path = await services(request).charts.archive(request.match_info["id"])
    return web.FileResponse(path, headers={"Content-Type": "application/gzip"})


def routes() -> list[Route]:
    """Return the internal routes of packages."""
    tag, base = "Between the services", "/internal/v1/packages/{id}"
    zipped = {200: Answer("The package without its VM images", media_types=("application/zip",))}
    found = {200: Answer("The file", media_types=(ANY_TYPE,))}
    charts, state = "/internal/v1/charts/{id}", {200: Answer("How far its fetch is", ChartState)}
    packed = {200: Answer("The chart", media_types=("application/gzip",))}
    return [
        Route(tag, "GET", f"{base}/archive", archive, "Read a package", zipped),
        Route(tag, "GET", f"{base}/files/{{path:.+}}", file, "Read a file of a package", found),
        Route(tag, "PUT", charts, ensure_chart, "Have a chart fetched from its registry", state, body=ChartWanted),
        Route(tag, "GET", charts, chart, "Ask how far the fetch of a chart is", state),
        Route(tag, "GET", f"{charts}/archive", chart_archive, "Read a chart", packed),
    ]
