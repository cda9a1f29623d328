"""From the chart to processes: the pods that it describes do the main job."""

from __future__ import annotations

import dataclasses
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
import pytest
import yaml
from callers.user import User, sample_body
from callers.users import basic, hashed
from chart.pods import PodProcesses, with_fixed_root
from chart.rendering import documents, program, template
from chart.values_schema import CHART
from clouds.lab_process import LabControl, LabProcess
from needs import cannot_have
from servers import mongodb as mongo_server
from servers import rabbitmq as rabbit_server
from servers.certificates import Authority
from servers.mongodb import MongoServer
from servers.ports import free_port
from servers.rabbitmq import RabbitServer
from servers.six_processes import SERVICES

HELM: Final = program("helm") or program("helm4")
PASSWORD: Final = "of-the-nfvo"
MUTUAL: Final = ("infraOpenstack", "infraK8s", "mgmtExecutor", "vimRegistry")

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(HELM is None, reason="NOT TESTED, there is no Helm: `make test-chart` builds it"),
]


class ManagedRabbit(RabbitServer):
    """A broker with the API of its administrator, which the Job of the chart calls."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.api_port = free_port()

    def _write_config(self) -> None:
        super()._write_config()
        (self._folder / "plugins").write_text("[rabbitmq_management].\n")
        with (self._folder / "rabbitmq.conf").open("a") as file:
            file.write(f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {self.api_port}\n")


class Nfvo(User):
    """A user of the gateway that authenticates by HTTP Basic."""

    def __init__(self, pods: PodProcesses) -> None:
        super().__init__(pods)
        self._ca = pods.folder / "ca.pem"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=60, sock_connect=5),
            headers=basic("nfvo", PASSWORD),
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(self._ca))),
        )
        return self


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedRabbit]:
    """A broker without queues and users of kubevnfm."""
    if (missing := rabbit_server.install()) is not None:
        cannot_have(missing, on="RABBITMQ")
    server = ManagedRabbit(tmp_path_factory.mktemp("rabbitmq"))
    server.start()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="module", params=["plain", "tls"])
def pods(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    lab_process: LabProcess,
    broker: ManagedRabbit,
) -> Iterator[PodProcesses]:
    """The pods of a release, ready; with TLS, those services prove who they are to one another that people do not call."""
    folder = tmp_path_factory.mktemp("pods")
    values = folder / "values.yaml"
    chosen = values_for(lab_process, broker)
    if request.param == "tls":
        chosen["tls"] = {"enabled": True}
        for key in MUTUAL:
            chosen[key] = {
                "settings": {**chosen.get(key, {}).get("settings", {}), "tls_client_ca": "/etc/kubevnfm/tls/ca.crt"}
            }
    values.write_text(yaml.safe_dump(chosen))
    authority = Authority(folder)
    if (missing := mongo_server.missing()) is not None:
        cannot_have(missing, on="MONGODB")
    (folder / "mongodb").mkdir()
    database = MongoServer(folder / "mongodb")
    database.start()
    given = [
        secret("kubevnfm-users", {"users.toml": f'[users.nfvo]\nroles = ["admin"]\npassword = "{hashed(PASSWORD)}"\n'}),
        secret("rabbitmq-admin", {"username": broker.user, "password": broker.password}),
        # The server that takes MongoDB's place has no users.
        secret("vnfm-mongo", dict.fromkeys(SERVICES, database.url)),
        *(certificate(authority, service) for service in SERVICES),
    ]
    running = PodProcesses(folder, lab_process, [*documents(template(str(HELM), values)), *given])
    try:
        (said,) = running.run_jobs()
        assert said.startswith("exchanges and queues are there, and the users")
        running.start()
        yield running
    finally:
        running.stop()
        database.stop()


def values_for(lab: LabProcess, broker: ManagedRabbit) -> dict[str, Any]:
    networks = {"vnf_networks": lab.vnf_networks}
    return {
        "listenAddress": "127.0.0.1",
        "auth": {"usersSecret": "kubevnfm-users"},
        "rabbitmq": {
            "host": "127.0.0.1",
            "port": broker.port,
            "users": {
                "enabled": True, "apiUrl": f"http://127.0.0.1:{broker.api_port}", "adminSecret": "rabbitmq-admin",
            },
        },
        "mongodb": {"urlsSecret": "vnfm-mongo"},
        "sandbox": {"mode": "trust"},  # the packages are our own, and the tests must run on every kernel
        "lcmApi": {"settings": {**networks, "page_size": 10}},
        "infraK8s": {"settings": networks},
        "mgmtExecutor": {"settings": {**networks, "ssh_port": lab.ssh_port}},
        "vimRegistry": {"settings": networks},
    }  # fmt: skip


def certificate(authority: Authority, service: str) -> dict[str, Any]:
    """The Secret that cert-manager would make."""
    pair = authority.issue(service)
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.file}
    return secret(f"vnfm-kubevnfm-{service}-tls", {name: path.read_text() for name, path in files.items()})


def secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": name}, "stringData": data}


async def test_the_pods_of_the_chart_instantiate_and_terminate_a_vm(pods: PodProcesses, lab: LabControl) -> None:
    assert set(pods.processes) == set(SERVICES)
    async with Nfvo(pods) as user:
        await user.register_lab()
        instance_id = await user.create(await user.sample("vm"))
        view = await user.rest(await user.start(instance_id, "instantiate", sample_body("vm", "instantiate")))
        assert view["state"] == "COMPLETED"
        assert f"stacks/vnf-{instance_id}" in await lab.names()

    # A pod that is gone is replaced by one with the same description.
    for service in ("lcm-api", "infra-openstack"):
        pods.kill(service)
        pods.start_one(service)
    async with Nfvo(pods) as user:
        await user.do(instance_id, "terminate", sample_body("vm", "terminate"))
        await user.delete(instance_id)
        assert f"stacks/vnf-{instance_id}" not in await lab.names()


def test_the_root_of_a_pod_cannot_be_written(pods: PodProcesses) -> None:
    container = pods.containers["lcm-api"]
    tries = "import pathlib; pathlib.Path('/tmp/mine').touch(); pathlib.Path('/var/lib/other').touch()"
    command = with_fixed_root(dataclasses.replace(container, arguments=[sys.executable, "-c", tries]))
    if command[0] != "unshare":
        pytest.skip("NOT TESTED, mounts are not allowed here")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "Read-only file system: '/var/lib/other'" in done.stderr
    assert container.tmp is not None
    assert (container.tmp / "mine").exists()


async def test_callers_with_a_wrong_password_get_nothing_from_the_pods(pods: PodProcesses) -> None:
    async with Nfvo(pods) as user:
        answer = await user.lcm(
            "GET", "/vnf_instances", headers={"Authorization": basic("nfvo", "another")["Authorization"]}
        )
        answer.must(401)


def test_the_users_that_the_job_has_made_have_the_rights_of_their_service(
    pods: PodProcesses, broker: ManagedRabbit
) -> None:
    listed = broker.control("list_permissions", "--no-table-headers")
    by_user = {line.split("\t")[0]: line.split("\t")[1:] for line in listed.splitlines()}
    definitions = json.loads((CHART / "files/rabbitmq/definitions.json").read_text(encoding="utf-8"))
    expected = {each["user"]: [each["configure"], each["write"], each["read"]] for each in definitions["permissions"]}
    assert set(expected) == set(SERVICES)
    assert {user: by_user[user] for user in expected} == expected
    assert "observer" in by_user


def test_no_pod_has_written_a_secret_to_its_log(pods: PodProcesses) -> None:
    words = {value for name, value in _secrets(pods) if len(value) > 20}
    assert len(words) > 15
    for path in pods.log_files():
        text = path.read_text(errors="replace")
        assert not [word for word in words if word in text], path.name


def _secrets(pods: PodProcesses) -> Iterator[tuple[str, str]]:
    for container in pods.containers.values():
        for name, value in container.environment.items():
            if name.startswith("TOKEN_") or name.endswith(("_KEYS", "_TOKEN", "_PASSWORD", "PEER_TOKENS")):
                yield name, value
