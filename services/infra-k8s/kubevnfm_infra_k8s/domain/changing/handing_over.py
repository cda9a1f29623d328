"""Hands the number of replicas of an object over to its autoscaler (multicloud.md MC-114).

The API server resets a field to its default if its only owner leaves it out of an apply: 3 replicas become 1. So a second field
manager owns the present number first. It loses the field when the autoscaler sets another number.
"""

from __future__ import annotations

import structlog

from kubevnfm_infra_k8s.domain.objects import Body, Wanted, field_at, uid_of
from kubevnfm_infra_k8s.domain.ownership import is_ours_alone
from kubevnfm_infra_k8s.domain.ports import Cluster

log = structlog.get_logger()


async def hand_over(cluster: Cluster, wanted: Wanted, there: Body) -> None:
    """Have the present number stay when ``wanted`` is applied, which lacks it; ``there``: the metadata of the object."""
    path = wanted.autoscaled_at
    if not is_ours_alone(there, path):
        return
    body = await cluster.get(wanted.resource, wanted.key)
    number = field_at(body, *path)
    if body is None or not isinstance(number, int):
        return
    part: Body = {path[-1]: number}
    for name in reversed(path[:-1]):
        part = {name: part}
    await cluster.keep(wanted.resource, wanted.key, {**part, "metadata": {"uid": uid_of(body)}})
    log.info("replicas_handed_over", object=str(wanted.key), replicas=number)
