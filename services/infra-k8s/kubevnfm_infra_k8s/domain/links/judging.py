"""Decides whether an object of a link is as wanted, and whether it is ready (MC-089, MC-096, MC-098). No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.domain.objects import Body, annotations_of, condition, field_at, group_of
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.verdicts import CURRENT, Observation, Status, Verdict, failed, in_progress

_OVN4NFV: Final = "k8s.plugin.opnfv.org"
_UDN: Final = "k8s.ovn.org"
_KUBE_OVN: Final = "kubeovn.io"
_CREATED: Final = "Created"
_ERROR: Final = "InternalError"
"""The end of OVN4NFV's error states: CreateInternalError, DeleteInternalError."""
_DEEPEST: Final = 32


def readiness(body: Body, now: datetime) -> Verdict:
    """Return whether a link's object is ready: by its own status where its kind has one, otherwise because it exists."""
    if field_at(body, "metadata", "deletionTimestamp") is not None:
        return Verdict(Status.TERMINATING, "is being deleted")
    group, kind = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
    if group == _OVN4NFV:
        return _by_state(field_at(body, "status", "state"))
    if group == _UDN:
        return _udn(body)
    if group == _KUBE_OVN:
        return _kube_ovn(body, kind)
    # Nothing is waited for that has no status: a controller that never writes one would hold the link for ever.
    return judge(body, Observation(now=now, has_status=False, settle_s=0.0))


def _by_state(state: object) -> Verdict:
    if state == _CREATED:
        return CURRENT
    if isinstance(state, str) and state.endswith(_ERROR):
        return failed(f"the CNI reports the state {state}")
    return in_progress(f"state {state}" if state else "no state yet")


def _udn(body: Body) -> Verdict:
    created = condition(body, "NetworkCreated")
    if created is None:
        return in_progress("no condition NetworkCreated yet")
    for each in (created, condition(body, "NetworkAllocationSucceeded")):
        # Its controller tries again by itself.
        if each is not None and each.get("status") != "True":
            return in_progress(_in_words(each))
    return CURRENT


def _kube_ovn(body: Body, kind: str) -> Verdict:
    if kind == "Vlan":
        return failed("its VLAN is in conflict") if field_at(body, "status", "conflict") is True else CURRENT
    if kind == "ProviderNetwork":
        return CURRENT if field_at(body, "status", "ready") is True else in_progress("not ready on all nodes")
    for name, bad in (("Error", "True"), ("Validated", "False")):
        found = condition(body, name)
        if found is not None and found.get("status") == bad:
            return failed(_in_words(found))
    ready = condition(body, "Ready")
    if ready is None:
        return in_progress("no condition Ready yet")
    return CURRENT if ready.get("status") == "True" else in_progress(_in_words(ready))


def _in_words(found: Body) -> str:
    return f"{found.get('type')} is {found.get('status')}: {found.get('message') or found.get('reason') or 'no reason'}"


def changed_members(wanted: Body, there: Body) -> list[str]:
    """Return the members of an object that differ from what is wanted; others, which defaults and controllers set, do not count."""
    found = [
        place
        for name, value in wanted.items()
        if name not in {"apiVersion", "kind", "metadata", "status"}
        for place in _changed(value, there.get(name), name, _DEEPEST)
    ]
    present = annotations_of(there)
    found += [
        f"metadata/annotations/{name}" for name, value in annotations_of(wanted).items() if present.get(name) != value
    ]
    return found


def _changed(wanted: object, there: object, place: str, levels: int) -> Iterator[str]:
    if isinstance(wanted, Mapping) and isinstance(there, Mapping) and levels:
        for name, value in wanted.items():
            yield from _changed(value, there.get(name), f"{place}/{name}", levels - 1)
    elif isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there) and levels:
        for index, (each, other) in enumerate(zip(wanted, there, strict=True)):
            yield from _changed(each, other, f"{place}[{index}]", levels - 1)
    elif wanted != there and not _same_json(wanted, there):
        yield place


def _same_json(wanted: object, there: object) -> bool:
    """Return whether two texts are the same JSON, as the configurations of CNI are: spaces and order do not count."""
    if not isinstance(wanted, str) or not isinstance(there, str) or "{" not in wanted:
        return False
    try:
        return bool(read_foreign(wanted) == read_foreign(there))
    except ValueError:
        return False
