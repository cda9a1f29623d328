"""Reads the clusters of cloud regions: permissions, API groups, nodes, objects of any kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from kubevnfm_clients.cluster_api import ClusterApi

from kubevnfm_vim_registry.adapters.kubernetes import KubernetesProbe, found_in, translated_api_errors
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.domain.region import Inspected, Permission

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_AT_A_TIME = 8


class KubernetesRegions:
    """`domain.ports.RegionProbe`."""

    def __init__(self, clusters: KubernetesProbe) -> None:
        self._clusters = clusters

    async def inspect(self, vim: VimRecord, permissions: Iterable[Permission]) -> Inspected:
        with translated_api_errors():
            api = self._clusters.api(vim)
            system = await api.get("/api/v1/namespaces/kube-system")
            listed = found_in(api, "/apis", await api.get("/apis"))
            places = asyncio.Semaphore(_AT_A_TIME)

            async def reviewed(permission: Permission) -> Permission | None:
                async with places:
                    return None if await _is_allowed(api, permission) else permission

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(reviewed(each)) for each in permissions]
            missing = frozenset(found for task in tasks if (found := task.result()) is not None)
            metadata = system.body.get("metadata") if system.is_success else None
            uid = str(metadata.get("uid", "")) if isinstance(metadata, Mapping) else ""
            return Inspected(uid[:128], _group_names(listed.get("groups")), missing)


async def _is_allowed(api: ClusterApi, permission: Permission) -> bool:
    attributes = {"verb": permission.verb, "group": permission.group, "resource": permission.resource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    status = found_in(api, _REVIEWS, await api.call("POST", _REVIEWS, body=review)).get("status")
    return isinstance(status, Mapping) and status.get("allowed") is True


def _group_names(groups: object) -> tuple[str, ...]:
    listed = groups if isinstance(groups, list) else []
    return tuple(str(one.get("name", "")) for one in listed if isinstance(one, Mapping))
