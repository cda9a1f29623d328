"""The VNF instances that hold a link or use a volume, as events name them (multicloud.md MC-052). No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypedDict

from kubevnfm_clients.multicloud.links import VNF_REFERENCE

_MOST: Final = 1000


class Holders(TypedDict):
    """Members of an event."""

    vnf_instance_ids: tuple[str, ...]
    has_more_vnf_instances: bool


def vnfs_among(references: Iterable[str]) -> Holders:
    """Return the VNF instances among the references to an object; an event has at most 1,000."""
    found = dict.fromkeys(each.removeprefix(VNF_REFERENCE) for each in references if each.startswith(VNF_REFERENCE))
    return {"vnf_instance_ids": tuple(found)[:_MOST], "has_more_vnf_instances": len(found) > _MOST}
