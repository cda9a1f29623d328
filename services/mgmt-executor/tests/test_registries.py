"""Private registries: what a node gets to pull from them, and what is said when it cannot, on the lab's machines."""

from __future__ import annotations

import json
import ssl
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_cluster.registries import Registry
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lab.machines.registry import RegistryPort, RegistrySettings
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful
from kubevnfm_mgmt_executor.domain.kubernetes.registry_files import hosts_toml, listed, on_the_node
from kubevnfm_secrets import Secret
from servers.certificates import Authority
from worlds.mgmt_lab import MgmtLab

LOGIN = {"username": "tacker", "password": 'pa:s"\\w$(reboot)'}
NAME = "registry.example.com"
LIMITS = {"ssh_ready": 20, "node_install": 60, "command": 20, "node_ready": 20}


@dataclass
class Sites:
    """Registries made elsewhere, with one CA."""

    authority: Authority
    opened: list[RegistryPort] = field(default_factory=list)

    async def open(self, *, tls: bool, login: bool, has_names: bool = True) -> int:
        """Start a registry on 127.0.0.1; return its port."""
        context = None
        if tls:
            pair = self.authority.issue(NAME, dns=NAME, has_names=has_names)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
        right = tuple(LOGIN.values())
        settings = RegistrySettings(context, (lambda *given: given == right) if login else None)
        opened = RegistryPort(["127.0.0.1"], 0, settings)
        await opened.open()
        self.opened.append(opened)
        return opened.port


@pytest.fixture
async def sites(tmp_path: Path, lab: MgmtLab) -> AsyncIterator[Sites]:
    sites = Sites(Authority(tmp_path))
    folder = lab.packages.root / "Files/registries"
    folder.mkdir(parents=True)
    (folder / "ca.crt").write_bytes(sites.authority.file.read_bytes())
    yield sites
    for one in sites.opened:
        one.close()


def both(http: int, https: int) -> list[dict[str, Any]]:
    """Return the connections of document 004's sample: HTTP without login; HTTPS with login, CA and hosts entry."""
    return [
        {"connection_type": "0", "server": f"127.0.0.1:{http}"},
        {
            "connection_type": "1",
            "server": f"{NAME}:{https}",
            **LOGIN,
            "certificate_path": "Files/registries/ca.crt",
            "hosts_string": f"127.0.0.1 {NAME}",
        },
    ]


def connected(registries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"private_registry_connection_info": list(registries), "x_timeouts": LIMITS}


def files_of(lab: MgmtLab, node: ManagedNode, server: str) -> dict[str, str]:
    """Return the files of a registry in containerd's folder on a node."""
    folder = lab.machine(node).root / "etc/containerd/certs.d" / server
    return {file.name: file.read_text() for file in folder.iterdir()}


async def test_every_node_is_connected_before_it_joins_and_so_is_a_new_worker(lab: MgmtLab, sites: Sites) -> None:
    """SEQ-123, SEQ-126 to SEQ-131, SEQ-134, SEQ-136."""
    http, https = await sites.open(tls=False, login=False), await sites.open(tls=True, login=True)
    nodes = list(await lab.boot_cluster(workers=1))
    done = await lab.run(lab.command(nodes, changes=connected(both(http, https))), operation="op-0", message="m-0")
    assert done.cluster is not None
    order = [(news.task, news.node) for news in lab.news if news.state == "finished"]
    assert order.index(("registries", "master10")) < order.index(("init", "master10"))
    assert order.index(("registries", "worker20")) < order.index(("join", "worker20"))

    nodes = [node.model_copy(update={"name": lab.name(node), "is_target": False}) for node in nodes]
    nodes.append(await lab.boot("worker", 21))
    lab.news.clear()
    await lab.run(lab.command(nodes, phase="scale_end", changes=connected(both(http, https))))
    assert [news.node for news in lab.news if (news.task, news.state) == ("registries", "finished")] == ["worker21"]

    for node in nodes:
        assert files_of(lab, node, f"127.0.0.1:{http}") == {
            "hosts.toml": f'server = "http://127.0.0.1:{http}"\ncapabilities = ["pull", "resolve"]\n\n[host]\n'
        }
        of_https = files_of(lab, node, f"{NAME}:{https}")
        assert of_https["ca.crt"].strip() == sites.authority.file.read_text().strip()
        assert f'ca = "/etc/containerd/certs.d/{NAME}:{https}/ca.crt"' in of_https["hosts.toml"]
        root = lab.machine(node).root
        logins = root / ".docker/config.json"
        assert stat.S_IMODE(logins.stat().st_mode) == 0o600
        assert list(json.loads(logins.read_text())["auths"]) == [f"{NAME}:{https}"]
        assert (root / "etc/hosts").read_text().count(f"127.0.0.1 {NAME}\n") == 1
        assert not [file for file in root.glob("home/ubuntu/.kubevnfm/*") if file.is_dir() and any(file.iterdir())]
    assert LOGIN["password"] not in await lab.log("op-0") + await lab.log()


@pytest.mark.parametrize("task", ["registries", pytest.param("join", marks=pytest.mark.deep)])
async def test_a_killed_installation_goes_on_and_keeps_the_logins(lab: MgmtLab, sites: Sites, task: str) -> None:
    """SEQ-180; a join that begins again resets its node, which deletes /var/lib/kubelet."""
    https = await sites.open(tls=True, login=True)
    nodes = await lab.boot_cluster(workers=1)
    command = lab.command(nodes, changes=connected(both(await sites.open(tls=False, login=False), https)))
    await lab.run_until(command, task, "worker20")
    if task == "join":
        kubelet = lab.machine(nodes[1]).root / "var/lib/kubelet"
        kubelet.mkdir(parents=True, exist_ok=True)
        (kubelet / "config.yaml").write_text("half")
    await lab.run(command, fencing=2)
    lab.news.clear()
    await lab.run(command, fencing=3)
    assert {news.node for news in lab.news if (news.task, news.state) == ("registries", "skipped")} == {
        "master10",
        "worker20",
    }
    for node in nodes:
        assert f"{NAME}:{https}" in (lab.machine(node).root / ".docker/config.json").read_text()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("unreachable", "registry {http}: cannot be reached at http://{http}/v2/: curl: (7) "),
        (
            "no such name",
            "registry {https}: cannot be reached at https://{https}/v2/: curl: (6) Could not resolve host",
        ),
        ("wrong login", "registry {https}: https://{https}/v2/ refuses the login (status 401)"),
        ("no login", "registry {https}: https://{https}/v2/ asks for a login, and the request has none"),
        ("another CA", "registry {https}: its certificate is not trusted: curl: ("),
        ("no TLS", "registry {https}: no TLS connection to https://{https}/v2/: curl: (35) "),
        ("no names", "registry {https}: its certificate is not trusted by containerd: failed to do request"),
    ],
)
async def test_a_registry_that_cannot_be_pulled_from_is_named_with_node_and_cause(
    lab: MgmtLab, sites: Sites, fault: str, reason: str, tmp_path: Path
) -> None:
    """SEQ-137: nothing has joined then, and a retry goes on."""
    http, https = await sites.open(tls=False, login=False), await sites.open(tls=True, login=True)
    right = both(http, https)
    wrong = both(http, https)
    match fault:
        case "unreachable":
            sites.opened[0].close()
        case "no such name":
            del wrong[1]["hosts_string"]
        case "wrong login":
            wrong[1]["password"] = "other"
        case "no login":
            del wrong[1]["username"], wrong[1]["password"]
        case "another CA":
            (tmp_path / "other").mkdir()
            other = Authority(tmp_path / "other").file.read_bytes()
            (lab.packages.root / "Files/registries/ca.crt").write_bytes(other)
        case "no TLS":
            https = await sites.open(tls=False, login=True)
            wrong = both(http, https)
        case "no names":
            https = await sites.open(tls=True, login=True, has_names=False)
            wrong = both(http, https)
    nodes = await lab.boot_cluster(workers=0)
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(lab.command(nodes, changes=connected(wrong)))
    servers = {"http": f"127.0.0.1:{http}", "https": f"{NAME}:{https}"}
    assert f"node master10: task registries: {reason.format(**servers)}" in str(caught.value)
    assert "pa:s" not in str(caught.value)
    assert lab.calls(nodes[0], "kubeadm init") == 0
    if fault == "wrong login":
        done = await lab.run(lab.command(nodes, changes=connected(right)), message="m-2")
        assert done.cluster is not None
        await lab.assert_ready(done.cluster, ["master10"])


@asynccontextmanager
async def with_tokens() -> AsyncIterator[int]:
    """Yield the port of a registry that accepts tokens of its own token server, as Harbor and GitLab do."""

    async def api(request: web.Request) -> web.Response:
        challenge = f'Bearer realm="http://{request.host}/token?x=1",service="the registry"'
        return web.json_response({}, status=401, headers={"WWW-Authenticate": challenge})

    async def token(request: web.Request) -> web.Response:
        right = request.headers.get("Authorization") == aiohttp.encode_basic_auth(*LOGIN.values())
        assert request.query == {"x": "1", "service": "the registry"}
        return web.json_response({"token": "t"} if right else {}, status=200 if right else 401)

    app = web.Application()
    app.add_routes([web.get("/v2/", api), web.get("/token", token)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_a_token_server_decides_whether_a_login_is_right(lab: MgmtLab) -> None:
    async with with_tokens() as port:
        server = f"127.0.0.1:{port}"
        one = {"connection_type": 0, "server": server}
        nodes = await lab.boot_cluster(workers=0)
        with pytest.raises(CommandUnsuccessful) as caught:
            await lab.run(lab.command(nodes, changes=connected([{**one, "username": "tacker", "password": "other"}])))
        assert f"registry {server}: http://{server}/token?x=1 refuses the login (status 401)" in str(caught.value)
        done = await lab.run(lab.command(nodes, changes=connected([{**one, **LOGIN}])), message="m-2")
        assert done.cluster is not None


async def test_a_certificate_of_the_package_is_checked_before_the_first_login(lab: MgmtLab, sites: Sites) -> None:
    nodes = await lab.boot_cluster(workers=0)
    changes = connected(both(1, 2))
    file = lab.packages.root / "Files/registries/ca.crt"
    for content, reason in ((b"a: 1\n", "not a certificate in PEM form"), (None, "the package has no file")):
        file.unlink() if content is None else file.write_bytes(content)
        with pytest.raises(Unprocessable, match=reason) as caught:
            await lab.run(lab.command(nodes, changes=changes))
        assert caught.value.field.endswith("private_registry_connection_info/1/certificate_path")
    assert lab.machine(nodes[0]).calls["ssh connect"] == 0


def test_the_files_of_a_registry_hold_any_login_literally() -> None:
    """SEQ-185."""
    one = Registry.model_validate({"connection_type": 1, "server": "r:5000", **LOGIN})
    assert one.password is not None
    found = on_the_node([one], {"r:5000": b"PEM"}, lambda secret: LOGIN["password"])
    assert listed([one]) == "0 r:5000 https://r:5000"
    assert found["registry-0.curl"] == b'user = "tacker:pa:s\\"\\\\w$(reboot)"\n'
    assert found["registry-0.crt"] == b"PEM"
    assert json.loads(found["logins.json"]) == {"auths": {"r:5000": {"auth": "dGFja2VyOnBhOnMiXHckKHJlYm9vdCk="}}}
    without = one.model_copy(update={"username": None, "password": None})
    assert list(on_the_node([without], {}, lambda secret: "")) == ["registry-0.toml"]
    assert "ca =" not in hosts_toml(without, has_authority=False)
    assert Secret("x") != one.password
