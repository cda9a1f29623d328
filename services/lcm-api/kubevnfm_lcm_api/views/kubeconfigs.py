"""``/kubevnfm/v1/kubeconfigs``: reads a kubeconfig as the registration of a VIM. Nothing is stored, logged or asked."""

from __future__ import annotations

import asyncio

from aiohttp import web
from kubevnfm_clients.kubeconfig import context_access
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import revealed
from kubevnfm_sol.vim import short_vim_type

from kubevnfm_lcm_api.http.bodies import read_json
from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.http.spelling import check_attributes
from kubevnfm_lcm_api.views.instance_rows import PREFIX


class Kubeconfig(Shown):
    """A kubeconfig."""

    kubeconfig: str
    """Its text, with the certificates and the token in it."""
    context: str | None = None
    """The context that is used; without it: the current one."""


class VimOfKubeconfig(Shown):
    """The VIM that a context of a kubeconfig describes, as in a registration."""

    name: str
    """That of the context."""
    type: str
    auth_url: str
    auth_cred: dict[str, str]


class ReadKubeconfig(Shown):
    """The body of ``POST /v1.0/vims``."""

    vim: VimOfKubeconfig


async def read(request: web.Request) -> web.Response:
    """POST kubeconfigs: what is sent is answered in another form, to the caller that has sent it."""
    body = await read_json(request)
    if not isinstance(body, dict):
        raise InvalidInput("", "a JSON object expected")
    check_attributes(Kubeconfig, body)
    text = body.get("kubeconfig")
    if not isinstance(text, str):
        raise InvalidInput("kubeconfig", "a text expected")
    name = body.get("context")
    if name is not None and not isinstance(name, str):
        raise InvalidInput("context", "a text expected")
    # In a thread: the text may have a megabyte.
    found = await asyncio.to_thread(context_access, text, context=name)
    info, access = found.connection.interface_info, revealed(found.connection.access_info, context(request).ring)
    shown = ReadKubeconfig(
        vim=VimOfKubeconfig(
            name=found.context,
            type=short_vim_type(found.connection.vim_type),
            auth_url=str(info["endpoint"]),
            auth_cred={"ssl_ca_cert": str(info["ssl_ca_cert"]), **access},
        )
    )
    return web.json_response(shown.model_dump(), headers={"Cache-Control": "no-store"})


def routes() -> list[Route]:
    """Return the route, which needs the role of a registration."""
    refusals = {422: "Not a kubeconfig whose access data are in it"}
    answers = {200: Answer("The body of the registration of its cluster", ReadKubeconfig)}
    summary = "Read a kubeconfig as the registration of a VIM"
    return [Route("Views", "POST", f"{PREFIX}/kubeconfigs", read, summary, answers, Kubeconfig, refusals=refusals)]
