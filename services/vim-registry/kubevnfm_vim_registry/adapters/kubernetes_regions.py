"""Reads the clusters of cloud regions: permissions, API groups, nodes, objects of any kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from kubevnfm_clients.cluster_api import ApiAnswer, ClusterApi
from kubevnfm_clients.multicloud.errors import UnknownKind
from kubevnfm_clients.multicloud.regions import ObjectsWanted
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_vim_registry.adapters.kubernetes import KubernetesProbe, found_in, translated_api_errors
from kubevnfm_vim_registry.domain.capacity import SeenCapacity, cluster_capacity
from kubevnfm_vim_registry.domain.errors import VimForbids, VimRefused
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.domain.region import Inspected, Permission

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_AT_A_TIME: Final = 8
_PAGE: Final = 50
"""Objects of one answer: a node with many images has 60 KiB, and an answer may have 4 MiB."""
_MOST_BYTES: Final = 64 * 2**20
"""Bytes of all answers together: those of 5,000 nodes have some 60 MB."""
_MOST: Final = 10_000
"""Objects that are read of one kind: Kubernetes supports 5,000 nodes."""
_MOST_ANSWERS: Final = 1_000
"""Answers about one kind: an API server may send fewer objects than a page has, but no endless number of empty answers."""
_LONGEST_MARK: Final = 2048
"""Characters of ``continue``, which becomes a part of URLs; API servers write a few hundred."""


@dataclass(frozen=True)
class _Served:
    """A kind as discovery describes it."""

    base: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str | None) -> str:
        """Return the path of its objects; None: in all namespaces."""
        within = f"namespaces/{quote(namespace, safe='')}/" if namespace and self.is_namespaced else ""
        return f"{self.base}/{within}{self.plural}"


class KubernetesRegions:
    """`domain.ports.RegionProbe` and `CapacityProbe`."""

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

            # Not a TaskGroup, whose group of errors would hide which error of the API it was.
            reviews = await asyncio.gather(*(reviewed(each) for each in permissions))
            metadata = system.body.get("metadata") if system.is_success else None
            uid = str(metadata.get("uid", "")) if isinstance(metadata, Mapping) else ""
            return Inspected(uid[:128], _group_names(listed.get("groups")), frozenset(filter(None, reviews)))

    async def version(self, vim: VimRecord) -> str:
        with translated_api_errors():
            # The version alone needs no valid credentials.
            api = await self._clusters.answering(vim)
            return str(found_in(api, "/version", await api.get("/version")).get("gitVersion", ""))[:64]

    async def nodes(self, vim: VimRecord) -> Sequence[JsonObject]:
        with translated_api_errors():
            return await _all(self._clusters.api(vim), "/api/v1/nodes")

    async def capacity(self, vim: VimRecord, *, as_of: str) -> SeenCapacity:
        nodes = await self.nodes(vim)
        # In a thread: 5,000 nodes take some tenths of a second.
        return await asyncio.to_thread(cluster_capacity, nodes, as_of=as_of)

    async def listed(self, vim: VimRecord, api_version: str, kind: str) -> Sequence[JsonObject]:
        with translated_api_errors():
            api = self._clusters.api(vim)
            try:
                return await _all(api, (await _served(api, api_version, kind)).path(None))
            except (UnknownKind, VimForbids):
                return ()

    async def objects(
        self, vim: VimRecord, wanted: ObjectsWanted, *, limit: int, after: str | None
    ) -> Page[JsonObject]:
        with translated_api_errors():
            api = self._clusters.api(vim)
            served = await _served(api, wanted.apiVersion, wanted.kind)
            if not served.is_namespaced and wanted.namespace is not None:
                return Page(())
            query = {"limit": str(limit)}
            if wanted.name is not None:
                query["fieldSelector"] = f"metadata.name={wanted.name}"
            if wanted.labels is not None:
                query["labelSelector"] = wanted.labels
            items, following, _ = await _page(api, served.path(wanted.namespace), query, after)
            head = {"apiVersion": wanted.apiVersion, "kind": wanted.kind}
            return Page([{**head, **item} for item in items], following)


async def _served(api: ClusterApi, api_version: str, kind: str) -> _Served:
    base = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    answer = await api.get(base)
    listed = answer.body.get("resources") if answer.is_success else None
    for one in listed if isinstance(listed, list) else ():
        name = str(one.get("name", "")) if isinstance(one, Mapping) else ""
        # Subresources have the kind of their object, or one of their own.
        if name and "/" not in name and one.get("kind") == kind:
            return _Served(base, name, one.get("namespaced") is True)
    raise UnknownKind("kind", f"the region does not serve {kind} of {api_version}")


async def _all(api: ClusterApi, path: str) -> Sequence[JsonObject]:
    found: list[JsonObject] = []
    following: str | None = None
    left_bytes = _MOST_BYTES
    for _ in range(_MOST_ANSWERS):
        items, following, size_bytes = await _page(api, path, {"limit": str(_PAGE)}, following)
        left_bytes -= size_bytes
        if left_bytes < 0:
            raise VimRefused(api.endpoint, f"{path}: at most {_MOST_BYTES} bytes in all answers expected")
        found.extend(items)
        if following is None or len(found) >= _MOST:
            return found[:_MOST]
    raise VimRefused(api.endpoint, f"{path}: the last of at most {_MOST_ANSWERS} answers expected")


async def _page(
    api: ClusterApi, path: str, query: Mapping[str, str], after: str | None
) -> tuple[Sequence[JsonObject], str | None, int]:
    """Return the objects of one answer, where the next begins, and the size of this one."""
    more = {} if after is None else {"continue": after}
    answer = await api.get(f"{path}?{urlencode({**query, **more})}")
    body = _allowed(api, path, answer)
    items, metadata = body.get("items"), body.get("metadata")
    objects = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    following = metadata.get("continue") if isinstance(metadata, Mapping) else None
    if following and not (isinstance(following, str) and len(following) <= _LONGEST_MARK):
        raise VimRefused(api.endpoint, f"{path}: continue with at most {_LONGEST_MARK} characters expected")
    return objects, following or None, answer.size_bytes


def _allowed(api: ClusterApi, path: str, answer: ApiAnswer) -> JsonObject:
    if answer.status == 403:
        raise VimForbids(api.endpoint, answer.message)
    return found_in(api, path, answer)


async def _is_allowed(api: ClusterApi, permission: Permission) -> bool:
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
    }
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
