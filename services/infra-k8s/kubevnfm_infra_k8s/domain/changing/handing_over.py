"""Applies an object without the fields that are not ours: those of autoscalers, and those that its artifact ignores (MC-106c, MC-114).

The API server resets a field to its default if its only owner leaves it out of an apply: 3 replicas become 1. So a second field
manager owns the present values first. It loses a field when another party sets another value.
"""

from __future__ import annotations

from typing import Final

import structlog
from kubevnfm_csar.field_paths import without_fields
from kubevnfm_csar.object_treatment import OWN_KEYS, FieldPath

from kubevnfm_infra_k8s.domain.changing.applied_fields import part_with
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.objects import Body, Wanted, field_at, uid_of
from kubevnfm_infra_k8s.domain.ownership import kept_fields, obstacle_to_ignoring, ours_alone
from kubevnfm_infra_k8s.domain.ports import Cluster

log = structlog.get_logger()

_ALL: Final = 2
"""Tokens of ``/metadata/labels``."""
_UNPROCESSABLE: Final = 422


async def apply_left(cluster: Cluster, wanted: Wanted, body: Body, there: Body | None) -> Body:
    """Apply an object, without the fields that are left out once it exists; ``there``: it, or its metadata; None: it is absent.

    ``body``: what is sent of the object. Raises as `Cluster.apply`, and ObjectRefused for fields that cannot be left out.
    """
    if there is None:
        there = await cluster.apply(wanted.resource, wanted.key, body, takes_fields=wanted.takes_fields)
        if not wanted.ignored:
            return there
    if not wanted.ignored and not wanted.autoscaled_at:
        return await cluster.apply(wanted.resource, wanted.key, body, takes_fields=wanted.takes_fields)
    check_ignored(wanted, there)
    await _hand_over(cluster, wanted, there)
    left = fields_sent(wanted, body, there)
    return await cluster.apply(wanted.resource, wanted.key, left, takes_fields=wanted.takes_fields)


def fields_sent(wanted: Wanted, body: Body, there: Body | None) -> Body:
    """Return what an apply has of an object: without ignored fields if it exists.

    It then names the uid: another object that was made meanwhile would lack them.
    """
    if there is None or not wanted.ignored:
        return body
    left = without_fields(body, _of_the_manifest(wanted))
    return {**left, "metadata": {**left["metadata"], "uid": uid_of(there)}}


def fields_rehearsed(wanted: Wanted, there: Body | None) -> Body:
    """Return what a dry run of an apply has of an object: also what is handed over before the real one."""
    if there is None or not wanted.ignored:
        return wanted.body
    return without_fields(wanted.body, [each for each in _of_the_manifest(wanted) if not ours_alone(there, [each])])


def check_ignored(wanted: Wanted, there: Body) -> None:
    """Raise ObjectRefused for an ignored field that the API server does not manage by itself."""
    for field in wanted.ignored:
        if obstacle := obstacle_to_ignoring(there, wanted.body, field):
            reason = f"ignore_fields /{'/'.join(field)}: {obstacle}"
            raise ObjectRefused.with_status(str(wanted.key), reason, _UNPROCESSABLE)


async def _hand_over(cluster: Cluster, wanted: Wanted, there: Body) -> None:
    """Have the present values of the fields stay when ``wanted`` is applied, which lacks them."""
    fields = _of_the_manifest(wanted)
    if wanted.autoscaled_at:
        fields = (*fields, wanted.autoscaled_at)
    if not ours_alone(there, fields):
        return
    body = await cluster.get(wanted.resource, wanted.key)
    if body is None:
        return
    # An apply of the second manager without what it has would reset that too.
    part = part_with(body, kept_fields(body) | ours_alone(body, fields))
    metadata = {**(part.get("metadata") or {}), "uid": uid_of(body)}
    await cluster.keep(wanted.resource, wanted.key, {**part, "metadata": metadata})
    log.info("fields_handed_over", object=str(wanted.key), fields=["/".join(each) for each in fields])


def _of_the_manifest(wanted: Wanted) -> tuple[FieldPath, ...]:
    """Return the ignored fields; all labels or annotations are those of the manifest, as ours are needed."""
    found: list[FieldPath] = []
    for field in wanted.ignored:
        if len(field) == _ALL and field[0] == "metadata":
            found += [(*field, name) for name in field_at(wanted.body, *field) or () if not name.startswith(OWN_KEYS)]
        else:
            found.append(field)
    return tuple(found)
