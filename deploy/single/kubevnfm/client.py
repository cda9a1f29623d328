"""A user's client of the gateway for asyncio: a thin HTTP client for the demos and scripts."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.settings import ServiceSettings
from kubevnfm_kit.tls import ClientTls
from pydantic import SecretStr
from pydantic_settings import SettingsConfigDict


class ClientSettings(ServiceSettings):
    """Credentials for the gateway: environment variables ``KUBEVNFM_CLIENT_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_CLIENT_")

    user: str | None = None
    """With ``password``: HTTP Basic."""
    password: SecretStr = SecretStr("")
    token: SecretStr | None = None
    """A bearer token."""
    auth_token: SecretStr | None = None
    """A Keystone token."""
    ca: Path | None = None
    """PEM file of the CAs that issued the gateway's certificate; None: the machine's CAs."""
    certificate: Path | None = None
    """PEM file of a client certificate; with ``key``."""
    key: Path | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers with the credentials."""
        sent = {}
        if self.user is not None:
            pair = f"{self.user}:{self.password.get_secret_value()}"
            sent["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token.get_secret_value()}"
        if self.auth_token is not None:
            sent["X-Auth-Token"] = self.auth_token.get_secret_value()
        return sent


class Refused(VnfmError):
    """The gateway answered with a problem."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")


class Unreachable(VnfmError):
    """The gateway does not answer, or the connection was lost."""


class GatewayClient:
    """Calls of SOL003 v2, package management, VIMs and our own views.

    An async context manager. Inside its block aiohttp's errors become Unreachable.
    """

    def __init__(self, url: str, access: ClientSettings | None = None) -> None:
        self.url = url.rstrip("/")
        self._access = access or ClientSettings()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        access = self._access
        context = await asyncio.to_thread(ClientTls(access.ca, access.certificate, access.key).context)
        # No limit for a whole call: an event stream stays open for hours, and an upload may be large.
        self._session = client_session(
            base_url=self.url,
            headers=access.headers(),
            connector=HttpConnector(ssl=context),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()
        if isinstance(error, aiohttp.ClientError):
            raise Unreachable(f"{self.url}: {str(error) or type(error).__name__}") from error

    async def call(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> tuple[Any, Mapping[str, str]]:
        """Return the answer's JSON (None without a body) and headers. Raises Refused."""
        assert self._session is not None
        sent = {"Version": "2.0.0", **(headers or {})}
        async with self._session.request(method, path, json=body, headers=sent) as response:
            text = await response.text()
            if response.status >= 400:
                raise Refused(response.status, _detail(text))
            return (read_foreign(text) if text else None), response.headers

    async def upload(self, package_id: str, archive: Path) -> None:
        """Send a CSAR's bytes."""
        assert self._session is not None
        path = f"/vnfpkgm/v1/vnf_packages/{package_id}/package_content"
        file = await asyncio.to_thread(archive.open, "rb")
        try:
            # aiohttp streams a file, so an archive is never whole in memory.
            async with self._session.put(path, data=file, headers={"Content-Type": "application/zip"}) as response:
                if response.status >= 400:
                    raise Refused(response.status, _detail(await response.text()))
        finally:
            await asyncio.to_thread(file.close)

    async def onboard(self, archive: Path) -> JsonObject:
        """Create a package, upload the archive, wait until it is ONBOARDED; return it. Raises Refused."""
        created, _ = await self.call("POST", "/vnfpkgm/v1/vnf_packages", {})
        await self.upload(created["id"], archive)
        while True:
            # The upload is answered with 202 before the package is processed (SOL005), so the state must be polled.
            package, _ = await self.call("GET", f"/vnfpkgm/v1/vnf_packages/{created['id']}")
            if package["onboardingState"] == "ONBOARDED":
                return dict(package)
            if package["onboardingState"] == "ERROR":
                raise Refused(400, package["onboardingFailureDetails"]["detail"])
            await asyncio.sleep(0.05)

    async def create(self, request: JsonMapping) -> JsonObject:
        """Create a VNF instance."""
        body, _ = await self.call("POST", "/vnflcm/v2/vnf_instances", dict(request))
        return dict(body)

    async def start(self, instance_id: str, task: str, request: JsonMapping) -> str:
        """Start an operation; return its occurrence's id."""
        # A task is answered with 202 without a body (SOL003): the id is only in Location.
        _, headers = await self.call("POST", f"/vnflcm/v2/vnf_instances/{instance_id}/{task}", dict(request))
        return str(headers["Location"]).rsplit("/", 1)[-1]

    async def operation(self, operation_id: str) -> JsonObject:
        """Return our view of an operation: steps, nodes, times."""
        body, _ = await self.call("GET", f"/kubevnfm/v1/operations/{operation_id}")
        return dict(body)

    async def events(self, **query: str) -> AsyncIterator[JsonObject | None]:
        """Yield events as they happen; None once when the stream is open, and with each heartbeat. Raises Refused."""
        assert self._session is not None
        async with self._session.get("/kubevnfm/v1/events", params=query) as response:
            if response.status >= 400:
                raise Refused(response.status, _detail(await response.text()))
            async for raw in response.content:
                line = raw.decode().rstrip("\n")
                # A comment of server-sent events: the gateway sends one when the stream opens, and as its heartbeat.
                if line.startswith(":"):
                    yield None
                elif line.startswith("data: "):
                    yield read_foreign(line.removeprefix("data: "))


def _detail(text: str) -> str:
    try:
        body = read_foreign(text)
    except ValueError:
        return text[:500]
    return str(body.get("detail") or body.get("TackerError", {}).get("message") or text[:500])
