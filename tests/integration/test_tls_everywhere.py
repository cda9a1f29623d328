"""The six processes with mutual TLS on each listener: they answer, reject unknown clients, and reach one another."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import aiohttp
import pytest
from callers.documented import judge
from kubevnfm_access.passwords import PasswordHash
from kubevnfm_kit.tls import ClientTls
from patience import until
from servers.certificates import Authority
from servers.mongodb import MongoServer
from servers.processes import PROJECT
from servers.rabbitmq import RabbitServer
from servers.six_processes import SERVICES, SixProcesses

pytestmark = pytest.mark.server

PASSWORD = "of the operator"
AUTHENTICATING = ("lcm-api", "credentials-receiver")


async def test_six_processes_speak_mutual_tls(rabbitmq: RabbitServer, mongodb: MongoServer, tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    server, own = ca.issue("server"), ca.issue("own")
    users = tmp_path / "users.toml"
    users.write_text(f'[users.op]\nroles = ["operator"]\npassword = "{PasswordHash.from_password(PASSWORD)}"\n')
    tls = {
        "TLS_CERTIFICATE": str(server.certificate),
        "TLS_KEY": str(server.key),
        "TLS_CLIENT_CA": str(ca.file),
        "INTERNAL_TLS_CA": str(ca.file),
        "INTERNAL_TLS_CERTIFICATE": str(own.certificate),
        "INTERNAL_TLS_KEY": str(own.key),
    }
    asks = {"AUTH_MODES": "basic", "AUTH_USERS_FILE": str(users)}
    known = ClientTls(ca.file, own.certificate, own.key).context()
    # Queues and documents of its own: other installations of the session live on the same servers.
    rabbitmq.control("add_vhost", "tls")
    rabbitmq.control("set_permissions", "--vhost", "tls", rabbitmq.user, ".*", ".*", ".*")
    own_documents = {service: {"MONGO_DATABASE": f"tls_{service.replace('-', '_')}"} for service in SERVICES}
    six = SixProcesses(
        tmp_path / "six",
        amqp_url=f"{rabbitmq.url}tls",
        mongo_url=mongodb.url,
        more={
            service: {**tls, **own_documents[service], **(asks if service in AUTHENTICATING else {})}
            for service in SERVICES
        },
        tls=known,
    )
    try:
        six.start()
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=known)) as session,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ClientTls(ca.file).context())) as stranger,
        ):
            for service in SERVICES:
                async with session.get(f"{six.url_of(service)}/health/live") as response:
                    assert response.status == 200
                async with session.get(f"{six.url_of(service)}/health/ready") as response:
                    judge("GET", "/health/ready", response.status, response.headers, raw := await response.read())
                    states = {each["part"]: each["state"] for each in json.loads(raw)["parts"]}
                    assert (response.status, states["store"], states["broker"]) == (200, "ready", "ready"), service
                    assert {"disk", "sandbox", "parked-commands"} <= states.keys()
                    # They are valid for an hour.
                    assert states["certificates"] == "degraded"
                    assert ("infra-k8s" in states) == (service == "lcm-api")
                with pytest.raises((aiohttp.ClientError, ConnectionError)):
                    await stranger.get(f"{six.url_of(service)}/health/live")
            me = {"Authorization": f"Basic {b64encode(f'op:{PASSWORD}'.encode()).decode()}"}
            async with session.get(f"{six.url}/v1.0/vims", headers=me) as response:  # the gateway asks vim-registry
                assert (response.status, await response.json()) == (200, {"vims": []})
            clusters = f"{six.url_of('credentials-receiver')}/credentials/v1/workload-clusters"
            async with session.get(clusters, headers=me) as response:
                assert (response.status, await response.json()) == (200, {"items": [], "next": None})
            for closed in (f"{six.url}/v1.0/vims", clusters):
                async with session.get(closed) as response:
                    assert response.status == 401

            old = await serials(six, known)
            ca.issue("server")

            async def are_replaced() -> bool | None:
                return not set(await serials(six, known)) & set(old) or None

            assert await until(are_replaced)
        assert healthy(six.port_by_service["lcm-api"], tls) == 0
        assert healthy(six.port_by_service["lcm-api"], {}) != 0
    finally:
        six.stop()


async def serials(six: SixProcesses, context: ssl.SSLContext) -> list[str]:
    """Return the serial numbers of the certificates that the six processes present now."""
    found = []
    for service in SERVICES:
        _, writer = await asyncio.open_connection("127.0.0.1", six.port_by_service[service], ssl=context)
        found.append(str(writer.get_extra_info("peercert")["serialNumber"]))
        writer.close()
    return found


def healthy(port: int, settings: dict[str, str]) -> int:
    """Return the exit code of the containers' health check."""
    own = {f"KUBEVNFM_LCM_API_{name}": value for name, value in settings.items()}
    environment = {**os.environ, "KUBEVNFM_HEALTH_PORT": str(port), **own}
    return subprocess.run([sys.executable, PROJECT / "deploy/base/healthy.py"], env=environment, check=False).returncode
