"""``/kubevnfm/v1/packages/{id}/forms/{operation}`` and ``/kubevnfm/v1/forms/{kind}``: serves the forms."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput, NotFound
from kubevnfm_sol.lcm import InstantiationState

from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core.claim_errors import wrong_state
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.forms.facts import check_new_package, check_package, check_task, read_facts
from kubevnfm_lcm_api.views.forms.kinds import KINDS, VIM, form_of
from kubevnfm_lcm_api.views.forms.operations import FORMS
from kubevnfm_lcm_api.views.forms.schemas import titled
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.tree.facts import Away, Gone
from kubevnfm_lcm_api.views.tree.reading import known_of

_INSTANCE: Final = "instance"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_WITHOUT_INSTANCE: Final = frozenset({"create", "instantiate"})
_ANY_STATE: Final = frozenset({"create", "modify"})


class FormKind(Shown):
    """A form that needs no package."""

    kind: str
    title: str
    method: str
    """That of the request that it is for."""
    path: str
    """That of the request; names in braces stand for what is changed."""
    href: str


class FormKinds(Shown):
    """The forms that need no package."""

    items: list[FormKind]


async def show(request: web.Request) -> web.Response:
    """GET packages/{id}/forms/{operation}[?instance=]: the JSON Schema of the request's body."""
    operation, package_id = request.match_info["operation"], request.match_info["id"]
    make = FORMS.get(operation)
    if make is None:
        raise NotFound(f"there is no form {operation}; there are {', '.join(FORMS)}")
    on, record = services(request).requests, await _instance(request, operation)
    if record is not None:
        # A change of package is described by the one that the VNF gets.
        if operation != "change_vnfpkg":
            check_package(record, package_id)
        if operation == "instantiate" and record.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            raise wrong_state(record, InstantiationState.NOT_INSTANTIATED)
        if operation not in _WITHOUT_INSTANCE | _ANY_STATE:
            check_task(on, record, operation)
    is_first = operation == "instantiate"
    # The others have no VIM to choose, so they do not need vim-registry.
    known = await known_of("vim-registry", views(request).vims.list({})) if is_first else ()
    vims = None if isinstance(known, Away | Gone) else known
    facts = await read_facts(on, vims, package_id, record, has_parameters=is_first)
    if operation == "change_vnfpkg":
        check_new_package(on, facts)

    def form() -> str:
        away = {"x-away": [{"part": "vims", "text": line(known.reason)}]} if isinstance(known, Away | Gone) else {}
        found = {"$schema": _DIALECT, "title": titled(operation), **away, **make(facts)}
        return json.dumps(found)

    # In a thread: a schema of values may have a megabyte.
    return web.Response(text=await asyncio.to_thread(form), content_type="application/json")


async def list_kinds(request: web.Request) -> web.Response:
    """GET forms: what is made without a package, each with its request."""
    root = f"{api_root(request)}{PREFIX}/forms"
    found = [
        FormKind(kind=name, title=kind.title, method=kind.method, path=kind.path, href=f"{root}/{name}")
        for name, kind in KINDS.items()
    ]
    return web.json_response({"items": [each.model_dump() for each in found]})


async def show_kind(request: web.Request) -> web.Response:
    """GET forms/{kind}: the JSON Schema of the request's body."""
    name = request.match_info["kind"]
    kind = KINDS.get(name)
    if kind is None:
        raise NotFound(f"there is no form {name}; there are {', '.join(KINDS)}")
    form = {"$schema": _DIALECT, **await form_of(kind, request), "title": kind.title}
    return web.Response(text=json.dumps(form), content_type="application/json")


async def _instance(request: web.Request, operation: str) -> InstanceRecord | None:
    instance_id = request.query.get(_INSTANCE)
    if instance_id is None:
        if operation not in _WITHOUT_INSTANCE:
            raise InvalidInput(_INSTANCE, "the id of a VNF instance expected for this operation")
        return None
    return InstanceRecord.from_document((await services(request).instances.get(instance_id)).body)


def routes() -> list[Route]:
    """Return the routes of forms."""
    one = f"{PREFIX}/packages/{{id}}/forms/{{operation}}"
    answers = {200: Answer("A JSON Schema 2020-12", is_any_object=True)}
    query = (Parameter(_INSTANCE, "The VNF instance that the request is for"),)
    refusals = {
        404: "No such package, form or instance, or the VNF does not support the operation",
        409: "The instance is not in a state for it, or the package is not ONBOARDED",
        422: "The VNF cannot be changed to the package",
    }
    summary = "Describe the body of a request by a JSON Schema"
    kinds, kind = f"{PREFIX}/forms", f"{PREFIX}/forms/{{kind}}"
    listed = {200: Answer("What is made without a package, each with its request", FormKinds)}
    of_vim = (Parameter(VIM, "The VIM that the request changes, for vim-change"),)
    away = {404: "No such form or VIM", 503: "The service that judges the request does not answer"}
    return [
        Route("Views", "GET", one, show, summary, answers, query=query, refusals=refusals),
        Route("Views", "GET", kinds, list_kinds, "List the forms that need no package", listed),
        Route("Views", "GET", kind, show_kind, summary, answers, query=of_vim, refusals=away),
    ]
