"""The second demo: a cluster of three masters with a storage server, which grows and is healed while its API answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.json_types import JsonObject

from kubevnfm.client import GatewayClient
from kubevnfm.demo import (
    Demo,
    DemoFailed,
    carry_out,
    inventory,
    register_openstack,
    remove,
    request_of,
    say,
    show_cluster,
    upload,
)

SAMPLE: Final = "storage"
_PAUSE_S: Final = 0.2


@dataclass
class Polls:
    """Calls of an API, one after another."""

    made: int = 0
    answered: int = 0
    row: int = 0
    """How many calls in a row have just failed."""
    longest_row: int = 0

    def count(self, *, is_answered: bool) -> None:
        """Count one more call."""
        self.made += 1
        self.answered += is_answered
        self.row = 0 if is_answered else self.row + 1
        self.longest_row = max(self.longest_row, self.row)


@asynccontextmanager
async def polled(url: str) -> AsyncIterator[Polls]:
    """Call a URL again and again while the block runs."""
    polls = Polls()
    polling = asyncio.create_task(_poll(url, polls))
    try:
        yield polls
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)


async def _poll(url: str, polls: Polls) -> None:
    async with client_session(timeout=aiohttp.ClientTimeout(10)) as session:
        while True:
            try:
                # A new connection each time, as one that stays open does not show where the address is. Only whether an
                # API server answers matters, so its certificate is not checked, and a 401 will do.
                async with session.get(url, ssl=False, headers={"Connection": "close"}) as response:
                    polls.count(is_answered=response.status in (200, 401))
            except (aiohttp.ClientError, TimeoutError):
                polls.count(is_answered=False)
            await asyncio.sleep(_PAUSE_S)


async def _job(client: GatewayClient, endpoints: JsonObject, samples: Path) -> None:
    await register_openstack(client, endpoints)
    await upload(client, samples, SAMPLE)

    say("\n3. Instantiate a cluster of three masters, two workers and a storage server")
    cluster = await client.create(request_of(SAMPLE, "create"))
    cluster_id = str(cluster["id"])
    await carry_out(client, cluster_id, "instantiate", request_of(SAMPLE, "instantiate"))
    connection = await show_cluster(client, cluster_id)
    await _show_volumes(endpoints)

    say("\n4. Add a worker")
    await carry_out(client, cluster_id, "scale", request_of(SAMPLE, "scale_out"))

    say("\n5. Replace a master, while the Kubernetes API is polled at its virtual address")
    async with polled(f"{connection['interfaceInfo']['endpoint']}/readyz") as polls:
        await _heal(client, cluster_id, "masterNode")
    say(f"   The API has answered {polls.answered} of {polls.made} calls meanwhile")
    # A connection may break in the moment in which the address moves; the next one finds it at its new place.
    if not polls.answered or polls.longest_row > 1:
        raise DemoFailed(f"the API did not answer {polls.longest_row} calls in a row while a master was replaced")

    say("\n6. Replace the storage server; its volume stays, and the persistent volumes come back")
    await _heal(client, cluster_id, "storage_server", x_keep_volume=True)
    await show_cluster(client, cluster_id)
    await _show_volumes(endpoints)

    say("\n7. Take it down")
    await remove(client, cluster_id, SAMPLE)


async def _heal(client: GatewayClient, cluster_id: str, vdu: str, **parameters: Any) -> None:
    """Heal the first machine of a VDU."""
    shown, _ = await client.call("GET", f"/vnflcm/v2/vnf_instances/{cluster_id}")
    chosen = next(one for one in shown["instantiatedVnfInfo"]["vnfcInfo"] if one["vduId"] == vdu)
    request = {"vnfcInstanceId": [chosen["id"]], "additionalParams": parameters}
    await carry_out(client, cluster_id, "heal", request)


async def _show_volumes(endpoints: JsonObject) -> None:
    (cluster,) = (await inventory(endpoints))["clusters"]
    names = [place.rpartition("/")[2] for place in cluster["objects"] if place.startswith("PersistentVolume/")]
    if not names:
        raise DemoFailed("the cluster has no persistent volumes")
    say(f"   Persistent volumes: {', '.join(sorted(names))}")


HA: Final = Demo("a cluster of three masters with storage, which is scaled and healed while its API answers", _job)
