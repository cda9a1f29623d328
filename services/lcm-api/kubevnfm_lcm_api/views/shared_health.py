"""The health of what VNFs share: virtual links, persistent volumes, cloud regions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.volumes import PersistentVolume

from kubevnfm_lcm_api.views.causes.wording import line

_OF_LINK: Final[Mapping[str, Health]] = {"READY": "ok", "DEGRADED": "problem", "FAILED": "problem"}
_OF_VOLUME: Final[Mapping[str, Health]] = {"Reserved": "ok", "Bound": "ok", "Released": "ok", "Failed": "problem"}
_OF_REGION: Final[Mapping[str, Health]] = {"ACTIVE": "ok", "UNREACHABLE": "problem", "ERROR": "problem"}
"""Any other state changes by itself."""


def link_health(link: VirtualLink) -> tuple[Health, str | None]:
    """Return the health of a link, and why it is not ``ok``."""
    return _judged(_OF_LINK, link.status, link.status_detail or f"the link is {link.status}")


def volume_health(volume: PersistentVolume) -> tuple[Health, str | None]:
    """Return the health of a volume, and why it is not ``ok``."""
    return _judged(_OF_VOLUME, volume.phase, volume.phase_detail or f"the volume is {volume.phase}")


def region_health(region: CloudRegion) -> tuple[Health, str | None]:
    """Return the health of a region, and why it is not ``ok``."""
    return _judged(_OF_REGION, region.status, region.status_reason or f"the region is {region.status}")


def _judged(healths: Mapping[str, Health], state: str, reason: str) -> tuple[Health, str | None]:
    health = healths.get(state, "progressing")
    return health, None if health == "ok" else line(reason)
