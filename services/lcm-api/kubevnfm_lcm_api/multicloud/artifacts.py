"""``/multicloud/v1/artifacts``: what a request can set in an onboarded package (multicloud.md MC-022)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final, Protocol

from aiohttp import web
from kubevnfm_clients.multicloud.variables import PackageVariable
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.http.conditions import is_known
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, add_routes
from kubevnfm_lcm_api.multicloud.services import PREFIX

_ORDER: Final = "order_artifact"
_QUERY: Final = (Parameter(_ORDER, "The order artifact to take, if the package has several"),)
_FORM: Final = "1"
"""Changes when the same package gives another answer: it is a part of the entity tag."""


class Variables(Protocol):
    """The variables of onboarded packages."""

    async def reference(self, package_id: str) -> PackageRef:
        """Return an onboarded package. Raises NotFound, Conflict."""
        ...

    async def variables(self, package: PackageRef, order_artifact: str | None) -> bytes:
        """Return the variables, by name, as JSON; none if the package has no order. Raises Unprocessable for a package at fault."""
        ...


_VARIABLES: Final = web.AppKey("multicloud-variables", Variables)


async def show_variables(request: web.Request) -> web.Response:
    """GET artifacts/{csar_id}/variables: 200 with ETag, or 304."""
    variables, asked = request.app[_VARIABLES], request.query.get(_ORDER)
    package = await variables.reference(request.match_info["csar_id"])
    # A package never changes.
    text = "\0".join((_FORM, package.package_id, package.checksum, asked or ""))
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    if is_known(request, tag):
        return web.Response(status=304, headers={"ETag": tag})
    try:
        listed = await variables.variables(package, asked)
    except InvalidInput as error:
        # The places are those of a request that would use the package.
        first, *more = (("csar_id", reason) for _, reason in error.places)
        raise Unprocessable(*first, *more) from error
    return web.Response(body=listed, content_type="application/json", headers={"ETag": tag})


def add_to(app: web.Application, variables: Variables) -> None:
    """Add the resources to an application."""
    app[_VARIABLES] = variables
    add_routes(app, routes())


def routes() -> Iterator[Route]:
    """Yield the routes of artifacts."""
    yield Route(
        "Artifacts",
        "GET",
        f"{PREFIX}/artifacts/{{csar_id}}/variables",
        show_variables,
        "List what can be set in a package",
        {200: Answer("The variables, by name", PackageVariable, is_list=True, has_etag=True)},
        query=_QUERY,
        refusals={409: "The package is not onboarded", 422: "Its order, its schema or an artifact is at fault"},
    )
