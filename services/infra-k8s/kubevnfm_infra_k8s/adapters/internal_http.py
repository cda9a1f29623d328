"""Parts that the internal HTTP APIs of links, volumes and the inventory have in common: queries, bodies, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from aiohttp import web
from kubevnfm_kit.foreign_json import read_foreign
from pydantic import BaseModel

B = TypeVar("B", bound=BaseModel)


async def body(request: web.Request, model: type[B]) -> B:
    """Return the body as the type."""
    return model.model_validate(read_foreign(await request.read()))


def wait_s(request: web.Request) -> float:
    """Return how long the caller waits for the end of the work; 0 if it does not say."""
    return float(request.query.get("wait_s", 0.0))


def filters(request: web.Request) -> Mapping[str, str]:
    """Return the filters of a list."""
    return {name: value for name, value in request.query.items() if name not in {"limit", "after"}}


def limits(request: web.Request) -> tuple[int, str | None]:
    """Return the size of the wanted page, and the id behind which it begins."""
    return int(request.query["limit"]), request.query.get("after")


def answer(shown: BaseModel, *, status: int = 200) -> web.Response:
    """Return the answer with one resource."""
    return web.json_response(shown.model_dump(mode="json"), status=status)


def page(name: str, items: Sequence[BaseModel], next_after: str | None) -> web.Response:
    """Return the answer with a page; ``name``: that of the member with the items."""
    return web.json_response({name: [each.model_dump(mode="json") for each in items], "next_after": next_after})
