"""The services behind ``/multicloud/v1``: clients of the services that own its resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.regions import CloudRegions
from kubevnfm_clients.multicloud.volumes import PersistentVolumes

from kubevnfm_lcm_api.http.documents import Document

PREFIX: Final = "/multicloud/v1"
DOCUMENT: Final = Document(
    "kubevnfm multi-cloud",
    "Cloud regions, and what the VNFs in them share",
    ("Cloud regions", "Virtual links", "Persistent volumes", "This document"),
    prefix=PREFIX,
)
"""Each resource adds its heading."""


@dataclass(frozen=True)
class MultiCloudServices:
    """The owners of the resources."""

    regions: CloudRegions
    links: VirtualLinks
    volumes: PersistentVolumes


SERVICES: Final = web.AppKey("multicloud", MultiCloudServices)


def services(request: web.Request) -> MultiCloudServices:
    """Return the services behind a request."""
    return request.app[SERVICES]
