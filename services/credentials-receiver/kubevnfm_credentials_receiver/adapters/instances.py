"""Which VNF instances exist, asked of lcm-api's public API."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import aiohttp
from kubevnfm_clients.http import ServiceUnavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10.0, sock_connect=3.0)


class LcmInstances:
    """`domain.ports.Instances` over SOL003."""

    def __init__(self, base_url: str, session: aiohttp.ClientSession) -> None:
        self._base_url, self._session = base_url.rstrip("/"), session

    async def exists(self, vnf_instance_id: str) -> bool:
        """See the port."""
        url = f"{self._base_url}/vnflcm/v2/vnf_instances/{quote(vnf_instance_id, safe='')}"
        try:
            async with self._session.get(url, headers={"Version": "2.0.0"}, timeout=_TIMEOUT) as response:
                if response.status in {200, 404}:
                    return response.status == 200
                raise ServiceUnavailable(f"lcm-api answered {response.status}")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ServiceUnavailable(f"lcm-api does not answer ({type(error).__name__})") from error
