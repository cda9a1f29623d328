"""Whether a pod or virtual machine is ready, and why not, in words that stay the same from one try of kubelet to the next. No I/O.

Kubelet counts seconds in its messages and changes between two reasons with each try: with these a pod that does not start would be
written again and again. A region may be hostile: each text has a limit, and so has the number of containers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.printable import printable

from kubevnfm_infra_k8s.domain.objects import Body, field_at

_MOST_CONTAINERS: Final = 64
_MOST_CONDITIONS: Final = 64
_LONGEST_BYTES: Final = 300
_LONGEST_NAME: Final = 253
_PULLS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
_CRASH: Final = "CrashLoopBackOff"
_STARTS: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of containers that are on their way."""


def readiness_of(body: Body) -> bool | None:
    """Return the condition Ready; None: there is none."""
    found = _condition(body, "Ready")
    return None if found is None else found.get("status") == "True"


def trouble_of(body: Body) -> str:
    """Return why it does not start or has ended; empty if nothing says so."""
    return bounded(printable(next(_troubles(body), "")), _LONGEST_BYTES)


def _troubles(body: Body) -> Iterator[str]:
    for container in _containers(body):
        name, state = _text(container.get("name")), container.get("state")
        waiting, ended = (_map(_map(state).get(each)) for each in ("waiting", "terminated"))
        reason = _text(waiting.get("reason"))
        if reason in _PULLS:
            yield f"container {name}: the image {_text(container.get('image'))} cannot be pulled ({_pull_reason(reason)})"
        elif reason == _CRASH:
            yield f"container {name} ends again and again{_end(_map(_map(container.get('lastState')).get('terminated')))}"
        elif reason and reason not in _STARTS:
            yield f"container {name}: {reason}: {_text(waiting.get('message'), 1024)}".rstrip(": ")
        elif ended and ended.get("exitCode") != 0:
            yield f"container {name} has ended{_end(ended)}"
    scheduled = _condition(body, "PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        yield f"no node fits: {_text(scheduled.get('message'), 1024)}".rstrip(": ")
    evicted = _text(field_at(body, "status", "reason"))
    if evicted:
        yield f"{evicted}: {_text(field_at(body, 'status', 'message'), 1024)}".rstrip(": ")


def _pull_reason(reason: str) -> str:
    # The two alternate with each try.
    return "ErrImagePull" if reason == "ImagePullBackOff" else reason


def _end(ended: Mapping[str, Any]) -> str:
    code, reason = ended.get("exitCode"), _text(ended.get("reason"))
    if type(code) is not int:
        return ""
    return f" with exit code {code}" + (f" ({reason})" if reason and reason != "Error" else "")


def _containers(body: Body) -> Iterator[Mapping[str, Any]]:
    for name in ("initContainerStatuses", "containerStatuses"):
        listed = field_at(body, "status", name)
        if isinstance(listed, list):
            yield from (each for each in listed[:_MOST_CONTAINERS] if isinstance(each, Mapping))


def _condition(body: Body, wanted: str) -> Mapping[str, Any] | None:
    listed = field_at(body, "status", "conditions")
    if not isinstance(listed, list):
        return None
    return next((e for e in listed[:_MOST_CONDITIONS] if isinstance(e, Mapping) and e.get("type") == wanted), None)


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object, longest: int = _LONGEST_NAME) -> str:
    return value[:longest] if isinstance(value, str) else ""
