"""Finds out whether a Namespace was made for VNF instances, by what is recorded of it (multicloud.md MC-031)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, labels_of, uid_of
from kubevnfm_infra_k8s.domain.ports import Releases, SharedObjects
from kubevnfm_infra_k8s.domain.release import Release

_ASKED: Final = 5
"""The most holders whose records are read. Each of them has the uid, but for those that have not stored it yet."""


@dataclass(frozen=True)
class MadeNamespaces:
    """The Namespaces that no file has, and that were made because they were absent."""

    releases: Releases
    shared: SharedObjects

    async def has(self, mine: Release, key: ObjectKey, body: Body) -> bool:
        """Return whether the Namespace was made for this instance, or for another one that has not left it yet.

        An instance that leaves is no holder any more, but has its inventory until the Namespace is gone or stays.
        """
        if _has_made(mine, key, body):
            return True
        named = labels_of(body).get(INSTANCE_LABEL)
        holders = await self.shared.holders(mine.cluster, key)
        asked = dict.fromkeys([*([named] if named else []), *holders[:_ASKED]])
        for instance in asked:
            release = await self.releases.get(instance)
            if release is not None and release.cluster == mine.cluster and _has_made(release, key, body):
                return True
        return False


def _has_made(release: Release, key: ObjectKey, body: Body) -> bool:
    """Return whether an inventory has the Namespace; between its creation and the record of the uid, the label says so."""
    uid = next((each.uid for each in release.entries if each.is_implied and each.key == key), None)
    if uid == "":
        return labels_of(body).get(INSTANCE_LABEL) == release.vnf_instance_id
    return uid is not None and uid == uid_of(body)
