"""The check that nothing that VNFs share keeps a cloud region, or its VIM, registered (multicloud.md MC-077)."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.errors import InUse

from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.volumes import PersistentVolumes

_MOST_NAMED: Final = 100


async def check_empty(links: VirtualLinks, volumes: PersistentVolumes, vim_id: str, where: str) -> None:
    """Raise InUse if there are virtual links or persistent volumes on a VIM; ``where``: the VIM or region, for the message."""
    here = {"vim_id": vim_id}
    found_links = (await links.find(here, limit=_MOST_NAMED)).items
    found_volumes = (await volumes.find(here, limit=_MOST_NAMED)).items
    named = {
        **{link.id: f"virtual link {link.name} ({link.id})" for link in found_links},
        **{volume.id: f"persistent volume {volume.name} ({volume.id})" for volume in found_volumes},
    }
    if named:
        raise InUse(f"{where} has {', '.join(named.values())}", list(named))
