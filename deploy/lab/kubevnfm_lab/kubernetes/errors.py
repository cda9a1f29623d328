"""The API server's refusals: one class, with a constructor per reason, worded as Kubernetes words them.

Source: apimachinery's ``api/errors`` and the answers of real servers; clients match on ``reason``, people on ``message``.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from kubevnfm_lab.kubernetes.objects import Obj, compact_json

REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    """A request that the API server refuses with a Status object."""

    def __init__(
        self, code: int, message: str, *, reason: str | None = None, details: Obj | None = None, retry_after_s: int = 0
    ) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.reason = reason if reason is not None else REASONS.get(code, "")
        self.details = details
        self.retry_after_s = retry_after_s

    def status(self) -> Obj:
        """Return the ``v1`` Status object."""
        body: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            body["reason"] = self.reason
        details = dict(self.details or {})
        if self.retry_after_s:
            details["retryAfterSeconds"] = self.retry_after_s
        if details:
            body["details"] = details
        return body


def qualified(group: str, plural: str) -> str:
    """Return ``deployments.apps``, or ``pods`` in the core group."""
    return f"{plural}.{group}" if group else plural


def _details(group: str, plural: str, name: str, **more: Any) -> Obj:
    details: Obj = {"name": name} if name else {}
    if group:
        details["group"] = group
    return {**details, "kind": plural, **more}


def bad_request(message: str) -> ApiError:
    """400: the request is malformed."""
    return ApiError(400, message)


def unauthorized() -> ApiError:
    """401: the credential is missing or unknown."""
    return ApiError(401, "Unauthorized")


def not_found(group: str, plural: str, name: str) -> ApiError:
    """404: there is no such object."""
    return ApiError(404, f'{qualified(group, plural)} "{name}" not found', details=_details(group, plural, name))


def not_served() -> ApiError:
    """404: no group, version or resource is served at the path."""
    return ApiError(404, "the server could not find the requested resource", details={})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """409: the name of a new object is taken."""
    return ApiError(
        409,
        f'{qualified(group, plural)} "{name}" already exists',
        reason="AlreadyExists",
        details=_details(group, plural, name),
    )


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """409: the object is not in the state that the caller expects."""
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}'
    return ApiError(409, message, details=_details(group, plural, name))


STALE: Final = "the object has been modified; please apply your changes to the latest version and try again"


def apply_conflict(conflicts: Sequence[tuple[str, str]]) -> ApiError:
    """409 of a server-side apply: ``conflicts`` is pairs of (manager as printed, field path)."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in conflicts
    ]
    # kubectl shows this text to users and scripts match it, so singular and plural are those of Kubernetes.
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return ApiError(
            409, f"Apply failed with 1 conflict: conflict with {manager}: {path}", details={"causes": causes}
        )
    lines = []
    for owner in dict.fromkeys(manager for manager, _ in conflicts):
        lines.append(f"conflicts with {owner}:")
        lines.extend(f"- {path}" for manager, path in conflicts if manager == owner)
    text = "\n".join(lines)
    return ApiError(409, f"Apply failed with {len(conflicts)} conflicts: {text}", details={"causes": causes})


def forbidden(group: str, plural: str, name: str, why: str, *, causes: Sequence[Obj] = ()) -> ApiError:
    """403: the caller is known, but not permitted."""
    subject = f'{qualified(group, plural)} "{name}"' if name else qualified(group, plural)
    more = {"causes": list(causes)} if causes else {}
    return ApiError(403, f"{subject} is forbidden: {why}", details=_details(group, plural, name, **more))


def expired(message: str) -> ApiError:
    """410: the resource version or continue token is too old."""
    return ApiError(410, message)


def method_not_allowed(group: str, plural: str) -> ApiError:
    """405: the resource has no such verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, message, details=_details(group, plural, ""))


def unsupported_media_type(given: str, accepted: Sequence[str]) -> ApiError:
    """415: the content type of the body is not supported."""
    listed = ", ".join(accepted)
    return ApiError(
        415, f"the body of the request was in an unknown format - accepted media types include: {listed} (got {given})"
    )


def too_many_requests(message: str, *, retry_after_s: int = 10, causes: Sequence[Obj] = ()) -> ApiError:
    """429: try again later; an eviction is refused so for a disruption budget."""
    return ApiError(
        429, message, details={"causes": list(causes)} if causes else None, retry_after_s=retry_after_s if causes else 0
    )


class FieldProblem(Exception):
    """One problem of one field; several make a 422 Invalid."""

    def __init__(self, reason: str, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.reason, self.field, self.message = reason, field, message

    def cause(self) -> Obj:
        """Return the StatusCause."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field: str, more: str = "") -> FieldProblem:
    """Return a problem: the field is required."""
    return FieldProblem("FieldValueRequired", field, f"Required value: {more}" if more else "Required value")


def wrong(field: str, value: Any, why: str) -> FieldProblem:
    """Return a problem: the value is invalid."""
    return FieldProblem("FieldValueInvalid", field, f"Invalid value: {printed(value)}: {why}")


def wrong_type(field: str, value: Any, why: str) -> FieldProblem:
    """Return a problem: the value has the wrong JSON type."""
    return FieldProblem("FieldValueTypeInvalid", field, f"Invalid value: {printed(value)}: {why}")


def unsupported(field: str, value: Any, supported: Sequence[Any]) -> FieldProblem:
    """Return a problem: the value is not one of those listed."""
    listed = ", ".join(printed(item) for item in supported)
    return FieldProblem(
        "FieldValueNotSupported", field, f"Unsupported value: {printed(value)}: supported values: {listed}"
    )


def field_forbidden(field: str, why: str) -> FieldProblem:
    """Return a problem: the field must not be set or changed."""
    return FieldProblem("FieldValueForbidden", field, f"Forbidden: {why}")


def duplicate(field: str, value: Any) -> FieldProblem:
    """Return a problem: the value is a duplicate."""
    return FieldProblem("FieldValueDuplicate", field, f"Duplicate value: {printed(value)}")


def printed(value: Any) -> str:
    """Return the value as field errors show it."""
    return compact_json(value)


def invalid(group: str, kind: str, name: str, problems: Sequence[FieldProblem]) -> ApiError:
    """422: the object is readable but breaks rules; one cause per problem."""
    # Kubernetes lists equal problems once in the message, but each of them as a cause.
    texts = list(dict.fromkeys(str(problem) for problem in problems))
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return ApiError(
        422,
        f'{qualified(group, kind)} "{name}" is invalid: {listed}',
        details=_details(group, kind, name, causes=[problem.cause() for problem in problems]),
    )


def of_fault(status: int, message: str) -> ApiError:
    """Return the refusal that a fault asks for, with the reason of its status code."""
    known = status in REASONS or status in {s.value for s in HTTPStatus}
    return ApiError(status if known else 500, message, retry_after_s=1 if status in {429, 503} else 0)
