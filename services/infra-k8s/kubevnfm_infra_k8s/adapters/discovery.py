"""Finds the kinds that a cluster serves: by aggregated discovery (Kubernetes 1.26 and later), otherwise by group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from cachetools import LRUCache

from kubevnfm_infra_k8s.adapters.transport import JSON, Answer, Transport
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable
from kubevnfm_infra_k8s.domain.objects import Resource, field_at, group_of

_AGGREGATED: Final = "as=APIGroupDiscoveryList"
_ACCEPT: Final = (
    ",".join(f"application/json;g=apidiscovery.k8s.io;v={v};{_AGGREGATED}" for v in ("v2", "v2beta1")) + f",{JSON}"
)
Kinds = dict[tuple[str, str], Resource]
_SHARED: Final[LRUCache[Resource, Resource]] = LRUCache(20_000)
"""Most clusters serve the same kinds in the same way: each is kept once for all of them, since one takes 2 kB and a cluster has hundreds."""


class Discovery:
    """The kinds of one cluster, cached until `forget`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._kinds: Kinds = {}
        self._is_fresh = False
        self._asking = asyncio.Lock()

    def forget(self) -> None:
        """Have the next unknown or known kind read from the cluster."""
        self._is_fresh = False

    def known_resource(self, api_version: str, kind: str) -> Resource | None:
        """Return how the kind was served when kinds were read last."""
        return self._kinds.get((api_version, kind))

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Return how the kind is served, None if it is not. Unknown kinds are read from the cluster."""
        found = self._kinds.get((api_version, kind)) if self._is_fresh else None
        if found is not None:
            return found
        # Many objects of a plan ask at the same time, but one request answers all of them.
        async with self._asking:
            if not self._is_fresh:
                self._kinds = await self._ask(api_version)
                self._is_fresh = True
            elif (api_version, kind) not in self._kinds:
                # The whole list takes 10 ms: of a version that is looked for again, its own kinds are read.
                others = {key: each for key, each in self._kinds.items() if key[0] != api_version}
                self._kinds = others | await self._ask_version(api_version)
        return self._kinds.get((api_version, kind))

    async def api_versions(self) -> Sequence[str]:
        """Return what is served: each ``version`` or ``group/version``, and each with ``/Kind``, as Helm names them.

        Without the kinds where the cluster has no aggregated discovery.
        """
        kinds, core, groups = await self._overview()
        if kinds is not None:
            return sorted({each for version, kind in kinds for each in (version, f"{version}/{kind}")})
        with self._readable("/apis"):
            listed = [str(each["groupVersion"]) for group in groups.body["groups"] for each in group["versions"]]
            return sorted({*map(str, core.body["versions"]), *listed})

    async def kinds(self) -> Sequence[Resource]:
        """Return all kinds, each in the first version of its group, which is the one that the server prefers."""
        kinds, core, groups = await self._overview()
        if kinds is None:
            with self._readable("/apis"):
                preferred_versions = (group["preferredVersion"]["groupVersion"] for group in groups.body["groups"])
                versions = [*core.body["versions"], *preferred_versions]
            asked = await asyncio.gather(*(self._ask_version(str(version)) for version in versions))
            kinds = {key: resource for found in asked for key, resource in found.items()}
        preferred: dict[tuple[str, str], Resource] = {}
        for (api_version, kind), resource in kinds.items():
            preferred.setdefault((group_of(api_version), kind), resource)
        return list(preferred.values())

    async def _overview(self) -> tuple[Kinds | None, Answer, Answer]:
        """Return all kinds, None from a cluster without aggregated discovery; and what it lists of its core and its groups."""
        core, groups = await asyncio.gather(
            self._transport.call("GET", "/api", accept=_ACCEPT), self._transport.call("GET", "/apis", accept=_ACCEPT)
        )
        if not all(_AGGREGATED in each.content_type for each in (core, groups)):
            return None, core, groups
        with self._readable("/apis"):
            found = _by_kind(resource for each in (core, groups) for resource in _from_aggregated(each.body))
        return found, core, groups

    async def _ask(self, api_version: str) -> Kinds:
        kinds, _, _ = await self._overview()
        if kinds is not None:
            if any(each_version == api_version for each_version, _ in kinds):
                return kinds
            # The list has no kinds for a group whose own API server did not answer.
            return kinds | await self._ask_version(api_version)
        # One request for each group would be slow, and a broken group must not hide the others. So only the wanted
        # group is read.
        return self._kinds | await self._ask_version(api_version)

    async def _ask_version(self, api_version: str) -> Kinds:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        answer = await self._transport.call("GET", path)
        if answer.status == 404:
            return {}
        if not isinstance(answer.body, Mapping) or not isinstance(answer.body.get("resources"), list):
            raise ClusterUnavailable(f"{self._transport.endpoint}{path}: the answer is not a list of kinds")
        with self._readable(path):
            return _by_kind(_from_version(api_version, answer.body["resources"]))

    @contextmanager
    def _readable(self, path: str) -> Iterator[None]:
        """Raise ClusterUnavailable if members of an answer are missing or have other types."""
        try:
            yield
        except (AttributeError, KeyError, TypeError) as error:
            raise ClusterUnavailable(f"{self._transport.endpoint}{path}: the answer is not a list of kinds") from error


def _by_kind(found: Iterable[Resource]) -> Kinds:
    return {each.api_kind: each for each in (_SHARED.setdefault(one, one) for one in found)}


def _from_aggregated(document: Any) -> Iterator[Resource]:
    for group in document.get("items") or []:
        name = field_at(group, "metadata", "name") or ""
        for version in group.get("versions") or []:
            api_version = f"{name}/{version['version']}" if name else version["version"]
            for each in version.get("resources") or []:
                kind = field_at(each, "responseKind", "kind")
                if kind:
                    yield Resource(
                        api_version=api_version,
                        kind=kind,
                        plural=each["resource"],
                        namespaced=each.get("scope") == "Namespaced",
                        verbs=frozenset(each.get("verbs") or []),
                        subresources=frozenset(sub["subresource"] for sub in each.get("subresources") or []),
                    )


def _from_version(api_version: str, listed: Sequence[Mapping[str, Any]]) -> Iterator[Resource]:
    for each in listed:
        plural, _, sub = str(each["name"]).partition("/")
        if sub:
            continue
        subresources = [str(other["name"]).partition("/") for other in listed]
        yield Resource(
            api_version=api_version,
            kind=str(each["kind"]),
            plural=plural,
            namespaced=bool(each.get("namespaced")),
            verbs=frozenset(each.get("verbs") or []),
            subresources=frozenset(name for of, _, name in subresources if of == plural and name),
        )
