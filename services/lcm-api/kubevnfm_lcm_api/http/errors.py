"""Every error of the gateway as ProblemDetails; no other module knows both kubevnfm's errors and HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from aiohttp import web
from kubevnfm_access.errors import TooManyRequests, Unauthenticated
from kubevnfm_access.middleware import Handler
from kubevnfm_kit.errors import BeingRemoved, Conflict, InUse, InvalidInput, OutsideUnavailable, VnfmError
from kubevnfm_kit.request_ids import present_request_id
from kubevnfm_sol.problem import InvalidParam, ProblemDetails

from kubevnfm_lcm_api.http.documents import PointedError, PointedProblem, document_of, json_pointer

log = structlog.get_logger()

RETRY_AFTER_S: Final = 5
_MOST_PLACES: Final = 100
"""The most wrong places that an answer names (multicloud.md MC-006)."""

_DETAIL: Final = {
    404: "there is no resource at this path",
    405: "the method is not defined for this resource",
    413: "the body is larger than this resource accepts",
}


class NotAcceptable(VnfmError, code="not-acceptable", title="Not acceptable", status=406):
    """Accept or Version cannot be satisfied."""


class UnsupportedMediaType(VnfmError, code="unsupported-media-type", title="Unsupported media type", status=415):
    """The resource does not accept the body's Content-Type."""


class RangeNotSatisfiable(VnfmError, code="range-not-satisfiable", title="Range not satisfiable", status=416):
    """The range begins after the end."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"Range: the content has {size_bytes} bytes")
        self.size_bytes = size_bytes


class RequestRunning(Conflict, code="request-running", title="Request running", retryable=True):
    """The first request with the Idempotency-Key has not been answered yet."""

    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("Idempotency-Key: the first request with this key is running; repeat this one later")


class BodyTooLarge(VnfmError, code="body-too-large", title="Body too large", status=413):
    """The body is larger than the resource accepts."""


def problem_response(
    request: web.Request, problem: ProblemDetails, headers: Sequence[tuple[str, str]] = ()
) -> web.Response:
    """Return the answer with the problem and the request's id; below ``/v1.0`` in the form of Tacker's VIM API (api.md 1.5), for ONAP as plain text."""
    problem = problem.model_copy(update={"request_id": present_request_id() or None})
    if document_of(request.app, request.path).plain_status is not None:
        return web.Response(status=problem.status, text=f"{problem.detail}\n", headers=headers)
    if request.path.startswith("/v1.0/"):
        error = {"type": problem.type, "message": problem.detail, "detail": ""}
        named = [one.model_dump(by_alias=True) for one in problem.invalid_params or ()]
        places = {"invalidParams": named} if named else {}
        return web.json_response({"TackerError": error, **places}, status=problem.status, headers=headers)
    return web.Response(
        status=problem.status,
        text=problem.model_dump_json(by_alias=True, exclude_none=True),
        content_type="application/problem+json",
        headers=headers,
    )


def _of_error(request: web.Request, error: VnfmError) -> web.Response:
    places = error.places[:_MOST_PLACES] if isinstance(error, InvalidInput) else ()
    problem: ProblemDetails
    document = document_of(request.app, request.path)
    if document.plain_status is not None:
        status = document.plain_status(error)
        problem = ProblemDetails(type=error.code, title=error.title, status=status, detail=str(error))
    elif document.has_pointers:
        errors = tuple(PointedError(pointer=json_pointer(name), message=reason) for name, reason in places)
        users = {"holders": error.holders, "holder_count": error.holder_count} if isinstance(error, InUse) else {}
        problem = PointedProblem.from_error(error).model_copy(update={"errors": errors, **users})
    else:
        named = tuple(InvalidParam(name=name, reason=reason) for name, reason in places if name)
        problem = ProblemDetails.from_error(error).model_copy(update={"invalid_params": named})
    headers: list[tuple[str, str]] = []
    if isinstance(error, OutsideUnavailable | BeingRemoved):
        headers.append(("Retry-After", str(RETRY_AFTER_S)))
    if isinstance(error, RangeNotSatisfiable):
        headers.append(("Content-Range", f"bytes */{error.size_bytes}"))
    if isinstance(error, Unauthenticated):
        headers.extend([("WWW-Authenticate", challenge) for challenge in error.challenges])
    if isinstance(error, TooManyRequests | RequestRunning):
        headers.append(("Retry-After", str(error.retry_after_s)))
    return problem_response(request, problem, headers)


@web.middleware
async def errors_as_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every exception of a handler into ProblemDetails (SOL013 6.3); the caller sees no detail of a crash."""
    try:
        return await handler(request)
    except VnfmError as error:
        return _of_error(request, error)
    except web.HTTPException as refusal:
        if refusal.status < 400:
            raise
        # aiohttp rejects OPTIONS with 405, but its Allow header is the answer that OPTIONS asks for (RFC 9110 9.3.7).
        if request.method == "OPTIONS" and isinstance(refusal, web.HTTPMethodNotAllowed):
            return web.Response(status=204, headers={"Allow": refusal.headers["Allow"]})
        allow = [("Allow", refusal.headers["Allow"])] if "Allow" in refusal.headers else []
        detail = _DETAIL.get(refusal.status, refusal.reason)
        return problem_response(
            request,
            ProblemDetails(title=refusal.reason, status=refusal.status, detail=detail),
            allow,
        )
    except Exception:  # the outermost handler: everything is logged, nothing is shown to the caller
        log.exception("request_failed", method=request.method, path=request.path)
        return problem_response(request, ProblemDetails(type="internal-error", status=500, detail="unexpected error"))
