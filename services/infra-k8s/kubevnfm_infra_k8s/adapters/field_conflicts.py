"""Reads the refusal of an apply that would take fields of other managers (multicloud.md MC-106b)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from kubevnfm_infra_k8s.adapters.shapes import version_of
from kubevnfm_infra_k8s.adapters.transport import Answer
from kubevnfm_infra_k8s.domain.errors import FieldConflict
from kubevnfm_infra_k8s.domain.objects import FIELD_MANAGER, KEEPING_MANAGER, Body, ObjectKey, field_at

_MANAGER: Final = re.compile(r'conflict with "([^"]{1,200})"(?: with subresource "([^"]{1,50})")?')
_MOST: Final = 20
_TRIES: Final = 10
_LONGEST_PATH: Final = 300
NO_OWNERS: Final = "conflict: abort needs server-side apply, which the API server does not have for it"


def is_own_conflict(answer: Answer, key: ObjectKey) -> bool:
    """Return whether an apply was refused for fields that kubevnfm itself manages. Raises FieldConflict naming those of others."""
    causes = field_at(answer.body, "details", "causes")
    conflicts = [
        (cause, manager)
        for cause in (causes if isinstance(causes, list) else ())
        if field_at(cause, "reason") == "FieldManagerConflict"
        and (manager := _MANAGER.match(str(field_at(cause, "message")))) is not None
    ]
    others = [each for each in conflicts if each[1][1] not in (FIELD_MANAGER, KEEPING_MANAGER)]
    if others:
        raise FieldConflict("; ".join(_in_words(cause, manager, key) for cause, manager in others[:_MOST]))
    return bool(conflicts)


async def taken_from_own(
    key: ObjectKey,
    body: Body,
    read: Callable[[], Awaitable[Body | None]],
    send: Callable[[Body, bool], Awaitable[Answer]],
) -> Answer:
    """Apply an object by force, in a version of it in which that takes fields of kubevnfm alone. Raises FieldConflict.

    ``send``: applies it, by force or not. Another manager may take a field between two requests.
    """
    for _ in range(_TRIES):
        there = await read()
        if there is None:
            return await send(body, False)
        of_version = {**body, "metadata": {**body["metadata"], "resourceVersion": version_of(there)}}
        answer = await send(of_version, False)
        if answer.status == 409 and is_own_conflict(answer, key):
            answer = await send(of_version, True)
        # 409: it has another version by now.
        if answer.status != 409:
            break
    return answer


def _in_words(cause: object, manager: re.Match[str], key: ObjectKey) -> str:
    path = str(field_at(cause, "field"))[:_LONGEST_PATH]
    subresource = f" ({manager[2]})" if manager[2] else ""
    return f"{path} of {key.kind} {key.name} is managed by {manager[1]}{subresource}"
