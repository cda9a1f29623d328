"""Marked passwords and tokens in a whole run: no log, document, message or response contains them in clear text."""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
import signal
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aio_pika
import pytest
from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from clusters.masters import kubectl
from kubevnfm_bus.topology import COMMANDS, EVENTS
from servers.installations import GivenInstallation, Installation, SingleInstallation, SixInstallation
from servers.six_processes import SERVICES
from servers.subscriber import Subscriber
from servers.wirings import deep_in_single, in_six


def _forms(secret: str) -> set[bytes]:
    """Return the forms of a secret: as it is, in base64 at each of three offsets, and as hex."""
    raw = secret.encode()
    shifted = {base64.b64encode(b"x" * pad + raw)[8 if pad else 0 : -4] for pad in range(3)}
    return {raw, raw.hex().encode(), *shifted}


def _found(where: str, content: bytes, marked: Mapping[str, str]) -> list[str]:
    return [f"{name} in {where}" for name, secret in marked.items() if any(form in content for form in _forms(secret))]


async def _token_of(lab: LabControl, user: User, cluster_id: str) -> str:
    """Return the cluster's admin token, read on its master as root."""
    master = await lab.master_of(cluster_id)
    get = "get secret -n kubevnfm-system vnfm-admin-token -o jsonpath={.data.token}"
    return base64.b64decode(await kubectl(user.installation.lab, master, get)).decode()


@asynccontextmanager
async def _overheard(installation: Installation) -> AsyncIterator[list[bytes]]:
    """Yield a list of every message on the broker within the block; it stays empty without a broker."""
    heard: list[bytes] = []
    if not isinstance(installation, SixInstallation):
        yield heard
        return
    async with await aio_pika.connect(installation.rabbit.url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(EVENTS, "#")
        for service in SERVICES:
            await queue.bind(COMMANDS, service)

        async def record(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            heard.append(f"{dict(message.headers)} ".encode() + message.body)

        await queue.consume(record, no_ack=True)
        yield heard


@asynccontextmanager
async def _debug_lines(installation: Installation) -> AsyncIterator[None]:
    """Have all processes log debug lines within the block, as an operator does who searches for a fault."""
    assert isinstance(installation, SingleInstallation | SixInstallation)
    pids = (
        [installation.pid]
        if isinstance(installation, SingleInstallation)
        else [pid for _, pid in installation.listeners.values()]
    )

    def switch() -> None:
        for pid in pids:
            os.kill(pid, signal.SIGUSR1)

    switch()
    try:
        yield
    finally:
        switch()


@deep_in_single
async def test_no_secret_of_a_whole_run_is_found_in_clear(user: User, v1: User, lab: LabControl) -> None:
    """SEQ-183, API-030: VIM, machines, proxy, cluster token, subscriber, and a password that is wrong."""
    installation = user.installation
    if isinstance(installation, GivenInstallation):
        pytest.skip("logs and documents of a given installation cannot be read, and its passwords are common words")
    proxy, listener, wrong = (f"marked-{secrets.token_hex(12)}" for _ in range(3))
    marked = {
        "VIM password": installation.lab.vim_password,
        "machine password": installation.lab.machine_password,
        "proxy password": proxy,
        "subscriber's password": listener,
        "wrong password": wrong,
    }
    body = user.cluster()
    body["additionalParams"]["k8s_cluster_installation_param"]["proxy"] = {
        "http_proxy": f"http://proxyuser:{proxy}@192.0.2.1:3128",
        "https_proxy": f"http://proxyuser:{proxy}@192.0.2.1:3128",
        "no_proxy": "192.0.2.2",
    }
    basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "listener", "password": listener}}
    queried = f"marked-{secrets.token_hex(12)}"
    async with (
        _overheard(installation) as messages,
        Subscriber.listening() as subscriber,
        _debug_lines(installation),
    ):
        subscription = await user.lcm(
            "POST", "/subscriptions", {"callbackUri": subscriber.uri, "authentication": basic, "verbosity": "FULL"}
        )
        of_packages = await user.call(
            "POST", "/vnfpkgm/v1/subscriptions", {"callbackUri": subscriber.uri, "authentication": basic}
        )
        stream = user.events()
        assert await anext(stream) is None
        watching = asyncio.create_task(_watch(stream))
        cluster_id = await user.create(await user.sample("cluster"))
        operation = await user.start(cluster_id, "instantiate", body)
        view = await user.rest(operation)
        assert view["state"] == "COMPLETED", view.get("error")
        marked["cluster token"] = await _token_of(lab, user, cluster_id)
        assert len(marked["cluster token"]) > 100
        await _read_everything(user, operation)
        await _read_everything(v1, operation)

        await _ask_for(user, queried)
        failing = user.cluster()
        failing["additionalParams"]["k8s_cluster_installation_param"]["worker_node"]["password"] = wrong
        other_id = await user.create(await user.sample("cluster"))
        refused = await user.start(other_id, "instantiate", failing)
        assert (await user.rest(refused))["state"] == "FAILED_TEMP"
        await _read_everything(user, refused)
        await user.act(refused, "rollback")
        await user.delete(other_id)
        bad_vim = installation.lab.vim(name="wrong", is_default=False)
        bad_vim["auth_cred"]["password"] = wrong
        assert (await user.call("POST", "/v1.0/vims", {"vim": bad_vim})).status >= 400
        nonsense = {**sample_body("vm", "instantiate"), "flavourId": {"password": wrong}}
        assert (await user.ask(cluster_id, "instantiate", nonsense)).status >= 400
        await user.do(cluster_id, "terminate", GRACEFUL)
        await _read_everything(user, operation)
        await user.delete(cluster_id)
        (await user.lcm("DELETE", f"/subscriptions/{subscription.json['id']}")).must(204)
        (await user.call("DELETE", f"/vnfpkgm/v1/subscriptions/{of_packages.json['id']}")).must(204)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        notified = [str(each.body) for each in subscriber.received]

    leaks: list[str] = []
    for where, texts in {"an HTTP answer": [*user.heard, *v1.heard], "a notification": notified}.items():
        assert texts
        leaks += _found(where, "\n".join(texts).encode(), marked)
    leaks += _found("a message", b"\n".join(messages), marked)
    assert bool(messages) == isinstance(installation, SixInstallation)
    leaks += await asyncio.to_thread(_found_in_debug_logs, installation.log_files(), queried)
    for path in [*installation.log_files(), *installation.stored_files()]:
        leaks += _found(path.name, await asyncio.to_thread(path.read_bytes), marked)
    assert len(installation.stored_files()) >= 1
    assert leaks == []
    assert _finds_what_is_there(installation.stored_files(), cluster_id), "the search does not reach the documents"


async def _ask_for(user: User, queried: str) -> None:
    """Send a secret as the value of a query, where it does not belong."""
    (await user.lcm("GET", f"/vnf_instances?filter=(eq,vnfInstanceName,{queried})")).must(200)
    assert (await user.call("GET", f"/kubevnfm/v1/none?password={queried}")).status == 404
    (await user.call("GET", f"/health/ready?password={queried}")).must(200)


def _found_in_debug_logs(files: list[Path], queried: str) -> list[str]:
    """Search logs, one of which has debug lines at least, for the value of a query."""
    contents = {path.name: path.read_bytes() for path in files}
    assert any(b'"level": "debug"' in content for content in contents.values())
    marked = {"value of a query": queried}
    return [leak for name, content in contents.items() for leak in _found(name, content, marked)]


async def _watch(stream: AsyncIterator[object]) -> None:
    async for _ in stream:
        pass


async def _read_everything(user: User, operation: str) -> None:
    """Request every resource that shows a run; `User.heard` records the responses."""
    for path in ("/vnf_instances", "/vnf_lcm_op_occs", "/subscriptions"):
        (await user.lcm("GET", path)).must(200)
    shown = await user.occurrence(operation)
    (await user.lcm("GET", f"/vnf_instances/{shown['vnfInstanceId']}")).must(200)
    (await user.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200)
    await user.log(operation)
    for vim in (await user.vims()).values():
        (await user.call("GET", f"/v1.0/vims/{vim['id']}")).must(200)
    for path in ("/vnf_packages", "/subscriptions"):
        (await user.call("GET", f"/vnfpkgm/v1{path}")).must(200)


def _finds_what_is_there(files: list[Path], text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in files)


@in_six
async def test_no_other_user_of_the_machine_can_read_what_the_services_store(user: User) -> None:
    """Packages and documents may hold secrets of their authors; the cache has what was unpacked of them."""
    if isinstance(user.installation, GivenInstallation):
        pytest.skip("the files of a given installation cannot be read")
    await user.sample("vm")
    stored = user.installation.folder / "data"
    modes = {path: path.lstat().st_mode for path in (stored, *stored.rglob("*"))}
    assert any(path.suffix == ".zip" or path.suffix == ".yaml" for path in modes)
    readable = [
        f"{stat.filemode(mode)} {path}" for path, mode in modes.items() if mode & 0o077 and not stat.S_ISLNK(mode)
    ]
    assert not readable
