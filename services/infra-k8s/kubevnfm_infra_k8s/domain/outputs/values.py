"""Reads the values of outputs from their objects. A region may be hostile: what cannot be stored or is too large is null."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from kubevnfm_csar.json_path import parse_path, value_at
from kubevnfm_secrets import hide

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey
from kubevnfm_infra_k8s.domain.outputs.record import Output
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.existing import readable

LARGEST_BYTES: Final = 4096
"""The limit for a value as JSON."""
DEEPEST: Final = 32
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Values:
    """The values of outputs at one moment."""

    by_name: Mapping[str, Any]
    """None: the path has no value, or one that cannot be shown. Values under names of secrets are secret."""
    digest: str
    refused: tuple[str, ...]
    """The names of those that have a value which is too large, too deep, or a number beyond 64 bits."""


async def read_values(cluster: Cluster, outputs: Sequence[Output]) -> Values:
    """Return the values as the cluster has them now."""
    keys = list(dict.fromkeys(each.key for each in outputs))

    async def find(key: ObjectKey) -> Body | None:
        resource = await cluster.resource(*key.api_kind)
        return await readable(cluster, resource, key) if resource is not None else None

    bodies = dict(zip(keys, await each_of(keys, find), strict=True))
    # In a thread: an object may have megabytes.
    return await asyncio.to_thread(_values, outputs, bodies)


def _values(outputs: Sequence[Output], bodies: Mapping[ObjectKey, Body | None]) -> Values:
    found: dict[str, Any] = {}
    refused: list[str] = []
    for each in outputs:
        value = value_at(bodies[each.key], parse_path(each.jsonpath))
        if is_shown(value):
            found[each.name] = value
        else:
            found[each.name] = None
            refused.append(each.name)
    text = json.dumps(found, sort_keys=True)
    return Values(hide(found), sha256(text.encode()).hexdigest(), tuple(refused))


def is_shown(value: object) -> bool:
    """Return whether a value can be stored and shown."""
    level = [value]
    for _ in range(DEEPEST):
        if any(isinstance(each, int) and not _SMALLEST <= each <= _LARGEST for each in level):
            return False
        # A stored `{"$sealed": ..}` would be taken for a secret of ours, which no key opens.
        # MongoDB has no names with NUL.
        names = [str(name) for each in level if isinstance(each, dict) for name in each]
        if any(name.startswith("$") or "\0" in name for name in names):
            return False
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return len(json.dumps(value, ensure_ascii=False).encode()) <= LARGEST_BYTES
    return False
