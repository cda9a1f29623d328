"""Documents of VIMs with and without a region in them."""

from __future__ import annotations

from kubevnfm_secrets import Secret
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.records import COLLECTION
from worlds.vim_world import RING, World

EARLIER = {
    "name": "cluster",
    "tenant_id": "default",
    "type": "kubernetes",
    "status": "ACTIVE",
    "auth_url": "https://192.0.2.1:6443",
    "auth_cred": {"bearer_token": Secret("swordfish").document(RING)},
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
}


async def test_a_vim_that_an_earlier_version_has_stored_is_no_region(world: World) -> None:
    """MC-071: it is shown as before, and is not listed among regions."""
    for number in range(2):
        document = {**EARLIER, "name": f"cluster-{number}"}
        await world.store.insert(COLLECTION, f"vim-{number}", document)
    assert VimRecord.model_validate({**EARLIER, "id": "vim-0"}).region is None
    shown = await world.vims.get("vim-0")
    assert shown["auth_cred"]["bearer_token"] == "***"
    assert "region" not in shown
    headers = {"Authorization": "Bearer internal"}
    async with world.session.get(f"{world.url}/internal/v1/cloud-regions?limit=10", headers=headers) as response:
        assert await response.json() == {"regions": [], "next_after": None}
