"""Reading requests: bodies into SOL types, query parameters against those that a resource knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.json_pointer import Place, escaped
from kubevnfm_kit.nearest import no_such
from kubevnfm_secrets import SECRET_NAMES, hide
from kubevnfm_sol.base import SolPatch
from kubevnfm_sol.wrong_attributes import wrong_attributes
from pydantic import BaseModel, ValidationError

from kubevnfm_lcm_api.http.errors import BodyTooLarge, NotAcceptable, UnsupportedMediaType
from kubevnfm_lcm_api.http.given_secrets import with_secrets
from kubevnfm_lcm_api.http.spelling import check_attributes

JSON = ("application/json",)
PATCH = ("application/merge-patch+json", "application/json")
FORM = "multipart/form-data"
EVENT_STREAM = "text/event-stream"
BODY_LIMIT = 8 * 1024 * 1024
"""The limit of lists too (api.md 5.3)."""

_DEEPEST: Final = 64
"""Levels of objects and arrays in a body; no type of SOL003 is nearly as deep."""
_MOST_VALUES: Final = 50_000
"""Members of all objects and entries of all arrays of a body. The loop makes types, drafts and documents of them, so 200,000
hold up every other caller for seconds; a Heat template or the values of a large chart have some thousands."""
_LARGE_BYTES: Final = 65_536
"""From so much on, a body is read in a thread, so that it does not delay other requests."""

B = TypeVar("B", bound=BaseModel)


def accepts(header: str | None, media_type: str) -> bool:
    """Return whether an Accept header admits the type (RFC 9110 12.5.1; q=0 excludes it)."""
    if not header or not header.strip():
        return True
    main, _, _ = media_type.partition("/")
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        # q=0, q=0.0 and q=0.000 all exclude the type.
        if name in {"*/*", f"{main}/*", media_type} and quality.strip("0.") != "":
            return True
    return False


def check_accept(request: web.Request, *media_types: str) -> None:
    """Raise NotAcceptable if the caller accepts none of the types that the resource can answer with."""
    header = request.headers.get("Accept")
    if not any(accepts(header, media_type) for media_type in media_types):
        raise NotAcceptable(f"Accept: this resource answers with {' or '.join(media_types)}")


def check_query(request: web.Request, known: Mapping[str, bool]) -> None:
    """Raise InvalidInput for a query parameter that the resource does not know, or that is given twice (api.md 1.7).

    ``known``: whether each parameter that it knows may be given more than once.
    """
    for name in request.query:
        if name not in known:
            raise InvalidInput(name, no_such(name, list(known), "query parameter"))
        if len(request.query.getall(name)) > 1 and not known[name]:
            raise InvalidInput(name, "given more than once")


async def read_body(request: web.Request) -> bytes:
    """Return the body, which the request keeps. Raises BodyTooLarge (413)."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise BodyTooLarge(f"the body may have up to {BODY_LIMIT} bytes") from error


async def read_json(
    request: web.Request,
    media_types: Collection[str] = JSON,
    *,
    is_required: bool = True,
    secrets_in: Sequence[str] = (),
) -> Any:
    """Return the body's JSON value, {} for an empty body if none is required.

    ``secrets_in``: the path of the member that may have ``{"$secret": "text"}``, each of which is returned as a Secret.
    Raises: UnsupportedMediaType (415), BodyTooLarge (413), InvalidInput (400: no JSON, too deep, a reserved name),
    Unprocessable (422: a ``$secret`` that is no text).
    """
    raw = await read_body(request)
    # Before the Content-Type, which a request without a body need not have.
    if not raw.strip():
        if is_required:
            raise InvalidInput("", "a JSON body is required")
        return {}
    if request.content_type not in media_types:
        raise UnsupportedMediaType(f"Content-Type: {' or '.join(media_types)} expected, got {request.content_type}")
    if len(raw) > _LARGE_BYTES:
        return await asyncio.to_thread(json_of, raw, secrets_in)
    return json_of(raw, secrets_in)


def json_of(raw: bytes, secrets_in: Sequence[str] = ()) -> Any:
    """Return the JSON value of a body, or of a part of one. ``secrets_in``, and what it raises: as `read_json`."""
    try:
        document = read_foreign(raw)
    except json.JSONDecodeError as error:
        raise InvalidInput("", f"the body is not JSON at line {error.lineno} column {error.colno}") from error
    except UnicodeError as error:
        raise InvalidInput("", "the body is not JSON: UTF-8 expected") from error
    except ValueError as error:
        raise InvalidInput("", f"the body cannot be used: {error}") from error
    if secrets_in:
        document = with_secrets(document, secrets_in)
    check_names(document)
    return document


async def parse_body(request: web.Request, model: type[B], document: Any) -> B:
    """Return the document, which is the request's body in some form, as `parse` does; a large one in a thread."""
    if len(await read_body(request)) > _LARGE_BYTES:
        return await asyncio.to_thread(parse, model, document)
    return parse(model, document)


def check_names(document: Any) -> None:
    """Raise InvalidInput for names that bodies may not have, and for one that is nested too deep or has too many values."""
    if _check_names(document, None, _DEEPEST) > _MOST_VALUES:
        raise InvalidInput("", f"the body has more than {_MOST_VALUES} values")


def parse(model: type[B], document: Any) -> B:
    """Return the document as the type, its secret texts hidden. Raises InvalidInput with the wrong attributes.

    Attributes that the type does not have are refused.
    """
    if not isinstance(document, Mapping):
        raise InvalidInput("", "a JSON object expected")
    # Types of our own APIs refuse unknown attributes themselves, patches of SOL003 at the top alone.
    if issubclass(model, SolPatch) or model.model_config.get("extra") != "forbid":
        check_attributes(model, document)
    try:
        # Not by the names of Python: they are no attributes of the API.
        return model.model_validate(hide(document), by_alias=True, by_name=False)
    except ValidationError as error:
        first, *more = wrong_attributes(error, model)
        raise InvalidInput(*first, *more) from error


def _check_names(node: Any, place: Place | None, levels: int) -> int:
    """Reject names that begin with ``$``: they are reserved for sealed secrets and for the database. Return how many values there are."""
    if not isinstance(node, dict | list):
        return 0
    if levels == 0:
        raise InvalidInput(_shown(place), f"nested deeper than {_DEEPEST} levels")
    values = len(node)
    if isinstance(node, list):
        for index, value in enumerate(node):
            if isinstance(value, dict | list):
                values += _check_names(value, Place(place, f"[{index}]"), levels - 1)
        return values
    for name, value in node.items():
        here = Place(place, f"/{escaped(name)}")
        if name == SECRET_NAMES and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise InvalidInput(_shown(here), "a list of names of attributes expected")
        if name.startswith("$"):
            raise InvalidInput(_shown(here), "a name may not begin with $")
        values += _check_names(value, here, levels - 1)
    return values


def _shown(place: Place | None) -> str:
    return "" if place is None else str(place).lstrip("/")
