"""The proxies of the environment: every way out leads through them, or past them, and none fails without their name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from callers.user import Answer, User
from clouds.lab_process import LabControl, LabProcess
from clusters.own_cluster import a_cluster, live
from kubevnfm_kit.http import serving
from kubevnfm_lab.kubernetes import LabCluster
from packages.own_packages import own_vm, zipped
from patience import until
from servers.connect_proxy import connect_proxy
from servers.installations import SingleInstallation
from servers.ports import free_port
from servers.subscriber import Subscriber

PACKAGES = "/vnfpkgm/v1/vnf_packages"


@asynccontextmanager
async def with_proxies(folder: Path, lab: LabProcess, url: str, exceptions: str) -> AsyncIterator[User]:
    """Yield a user of an installation of its own; each name is resolved by the proxy."""
    variables = {"HTTP_PROXY": url, "https_proxy": url, "NO_PROXY": exceptions, "KUBEVNFM_PROXY_RESOLVES": "true"}
    installation = SingleInstallation(folder, lab, **variables)
    try:
        await asyncio.to_thread(installation.start)
        async with User(installation) as user:
            yield user
    finally:
        await asyncio.to_thread(installation.stop)


@pytest.fixture
async def archive() -> AsyncIterator[int]:
    """The port of a server with a package."""

    async def content(_: web.Request) -> web.Response:
        return web.Response(body=zipped(own_vm("5b5d5ab5-8a4c-4a4e-9d1b-777777777777")), content_type="application/zip")

    app = web.Application()
    app.router.add_get("/vm.zip", content)
    async with serving(app, host="127.0.0.1", port=0) as port:
        yield port


async def registers_cloud(user: User, host: str) -> Answer:
    lab = user.installation.lab
    url = lab.endpoints["auth_url"].replace("127.0.0.1", host)
    return await user.call("POST", "/v1.0/vims", {"vim": lab.vim(auth_url=url, name=host, is_default=False)})


async def registers_cluster(user: User, cluster: LabCluster, host: str) -> Answer:
    login = {"bearer_token": cluster.admin_token, "ssl_ca_cert": cluster.ca_pem}
    url = f"https://{host}:{urlsplit(cluster.endpoint).port}"
    vim = {"name": host, "type": "kubernetes", "auth_url": url, "auth_cred": login, "vim_project": {"name": "default"}}
    return await user.call("POST", "/v1.0/vims", {"vim": vim})


async def subscribes(user: User, subscriber: Subscriber, host: str) -> Answer:
    uri = subscriber.uri.replace("127.0.0.1", host)
    return await user.lcm("POST", "/subscriptions", {"callbackUri": uri})


async def fetches(user: User, port: int, host: str) -> dict[str, Any]:
    """Return a package that kubevnfm fetches, when it is onboarded or has failed."""
    package_id = (await user.call("POST", PACKAGES, {})).must(201).json["id"]
    body = {"addressInformation": f"http://{host}:{port}/vm.zip"}
    (await user.call("POST", f"{PACKAGES}/{package_id}/package_content/upload_from_uri", body)).must(202)

    async def ended() -> dict[str, Any] | None:
        shown: dict[str, Any] = (await user.call("GET", f"{PACKAGES}/{package_id}")).must(200).json
        return shown if "onboardingFailureDetails" in shown or shown["onboardingState"] == "ONBOARDED" else None

    return await until(ended)


async def test_every_call_that_leaves_kubevnfm_passes_the_proxy(
    lab: LabControl, lab_process: LabProcess, archive: int, tmp_path: Path
) -> None:
    cluster_name = "cluster.example"
    async with (
        connect_proxy("ada:s3cret") as proxy,
        a_cluster(cluster_name) as cluster,
        Subscriber.listening() as subscriber,
        with_proxies(tmp_path, lab_process, proxy.url, "192.0.2.0/24") as user,
    ):
        proxy.places[cluster_name] = str(urlsplit(cluster.endpoint).hostname)
        (await registers_cloud(user, "cloud.example")).must(201)
        assert proxy.hosts == {"cloud.example"}
        vim = (await registers_cluster(user, cluster, cluster_name)).must(201).json["vim"]
        before = len(proxy.requests)
        (await subscribes(user, subscriber, "subscriber.example")).must(201)
        await live(user, await user.sample("cnf"), vim["id"])
        assert (await fetches(user, archive, "packages.example"))["onboardingState"] == "ONBOARDED"
        assert len(subscriber.received) > 0
        assert {target.partition(":")[0] for target, _ in proxy.requests[before:]} >= {
            "subscriber.example",
            "packages.example",
        }
        assert proxy.hosts == {"cloud.example", cluster_name, "subscriber.example", "packages.example"}
        assert "s3cret" not in "".join(user.heard)
    assert "s3cret" not in (tmp_path / "kubevnfm.log").read_text()


async def test_an_exception_is_direct_for_every_client_and_a_proxy_that_is_off_is_named_by_each(
    lab: LabControl, lab_process: LabProcess, archive: int, tmp_path: Path
) -> None:
    port = free_port()
    async with (
        a_cluster() as cluster,
        Subscriber.listening() as subscriber,
        with_proxies(tmp_path, lab_process, f"http://ada:s3cret@127.0.0.1:{port}", "127.0.0.0/8") as user,
    ):
        (await registers_cloud(user, "127.0.0.1")).must(201)
        vim = (await registers_cluster(user, cluster, str(urlsplit(cluster.endpoint).hostname))).must(201).json["vim"]
        (await subscribes(user, subscriber, "127.0.0.1")).must(201)
        await live(user, await user.sample("cnf"), vim["id"])
        assert (await fetches(user, archive, "127.0.0.1"))["onboardingState"] == "ONBOARDED"

        said = f"proxy 127.0.0.1:{port}: connection refused"
        for refused in (
            await registers_cloud(user, "cloud.example"),
            await registers_cluster(user, cluster, "cluster.example"),
            await subscribes(user, subscriber, "subscriber.example"),
        ):
            assert refused.status >= 400
            assert said in refused.text
            assert "does not answer" not in refused.text
        failed = await fetches(user, archive, "packages.example")
        assert said in failed["onboardingFailureDetails"]["detail"]
        assert "s3cret" not in "".join(user.heard)
    assert "s3cret" not in (tmp_path / "kubevnfm.log").read_text()
