"""The driver ``kuryr-kubernetes``: its configuration and objects, and a cluster on the lab's machines."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml
from kubevnfm_cluster.kuryr import KuryrParameters
from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.kuryr import KuryrLogin, KuryrNetwork
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from kubevnfm_kit.errors import Unprocessable, VnfmError
from kubevnfm_lab.machines.relay import Relay
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful
from kubevnfm_mgmt_executor.domain.kuryr.configuration import kuryr_conf, neutron_conf, rendered
from kubevnfm_mgmt_executor.domain.kuryr.manifests import manifests
from kubevnfm_secrets import Secret, hide
from worlds.mgmt_lab import MgmtLab

KURYR = {
    "pod_security_group_ids": ["pods"],
    "pod_subnet_ids": ["pod_subnet"],
    "service_subnet_id": "service_subnet",
    "lbaas_id": "api",
    "worker_nodes_subnet_id": "node_subnet",
}
NETWORK = KuryrNetwork(
    project_id="p1",
    pod_subnets=("s1", "s2"),
    pod_security_groups=("g1", "g2"),
    service_subnet="s3",
    worker_nodes_subnet="s4",
    api_address="10.96.0.1",
    tag="kubevnfm-kuryr-i",
    login=KuryrLogin(
        auth_url="https://cloud:5000/v3", region="R", credential_id="c", credential_secret=Secret("very$hidden")
    ),
)


def revealed(secret: Secret) -> str:
    return str(secret.reveal(RING))


class _NoRing:
    def open(self, _: str) -> bytes:
        raise AssertionError


RING: Any = _NoRing()


def parameters(**changes: Any) -> KuryrParameters:
    return KuryrParameters.model_validate({**KURYR, **changes})


def test_kuryr_conf_names_the_entities_and_holds_no_secret() -> None:
    """SEQ-016."""
    text = kuryr_conf(parameters(octavia_mode="L2"), NETWORK, api_root="https://10.0.0.10:6443")
    for line in (
        "api_root = https://10.0.0.10:6443",
        "project = p1",
        "pod_subnet = s1",
        "pod_security_groups = g1,g2",
        "service_subnet = s3",
        "resource_tags = kubevnfm-kuryr-i",
        "member_mode = L2",
        "pod_vif_driver = nested-vlan",
        "worker_nodes_subnet = s4",
        "driver = kuryr.lib.binding.drivers.vlan",
        "link_iface = eth0",
    ):
        assert line in text.splitlines()
    assert "hidden" not in text
    assert "[neutron]" not in text


def test_kuryr_conf_of_nodes_that_are_no_machines_of_the_cloud_binds_nothing() -> None:
    text = kuryr_conf(parameters(pod_vif_driver="neutron-vif"), NETWORK, api_root="https://x")
    assert "[binding]" not in text
    assert "ovs_bridge = br-int" in text


def test_the_controller_logs_in_by_its_credential_or_as_the_given_user() -> None:
    text = neutron_conf(NETWORK, revealed)
    assert "auth_type = v3applicationcredential" in text
    # oslo.config reads $ as the beginning of another option's name.
    assert "application_credential_secret = very$$hidden" in text
    user = KuryrLogin(auth_url="https://k", username="u", password=Secret("pw"), ca_pem="PEM")
    text = neutron_conf(NETWORK.model_copy(update={"login": user}), revealed)
    assert {"auth_type = password", "username = u", "password = pw", "project_id = p1"} <= set(text.splitlines())
    assert "cafile = /etc/ssl/certs/kuryr-ca-bundle.crt" in text


def test_a_value_with_a_line_end_is_refused() -> None:
    with pytest.raises(Unprocessable, match=r"kuryr\.neutron\.password: one line"):
        rendered({"neutron": {"password": "a\n[DEFAULT]"}})


def test_only_the_controller_can_read_the_login() -> None:
    objects = list(yaml.safe_load_all(manifests(parameters(), NETWORK, api_root="https://x", reveal=revealed)))
    holding = [(one["kind"], one["metadata"]["name"]) for one in objects if "hidden" in yaml.safe_dump(one)]
    assert holding == [("Secret", "kuryr-login")]
    using = [one["metadata"]["name"] for one in objects if "kuryr-login" in yaml.safe_dump(one.get("spec", {}))]
    assert using == ["kuryr-controller"]


@asynccontextmanager
async def kuryr_lab(lab: MgmtLab) -> AsyncIterator[tuple[list[ManagedNode], RunPhase]]:
    """Yield a master and a worker behind a load balancer, and the command that installs them."""
    nodes = [await lab.boot("master", 10), await lab.boot("worker", 20)]
    entry = nodes[0].nic_address.rpartition(".")[0] + ".250"
    command = lab.command(nodes, changes={"kuryr_param": KURYR})
    network = NETWORK.model_copy(update={"api_address": entry})
    relay = Relay(entry, 443, lambda: [(nodes[0].nic_address, 6443)])
    await relay.open()
    try:
        yield nodes, command.model_copy(update={"driver": "kuryr-kubernetes", "kuryr": network})
    finally:
        relay.close()


async def test_a_cluster_with_kuryr_comes_up_and_is_withdrawn(lab: MgmtLab) -> None:
    """SEQ-017."""
    async with kuryr_lab(lab) as (nodes, command):
        done = await lab.run(command)
        assert done.cluster is not None
        access: ClusterAccess = done.cluster
        await lab.assert_ready(access, ["master10", "worker20"])
        finished = lab.finished()
        assert {("etcd", "master10"), ("kuryr", "master10"), ("entry", "master10")} <= finished
        assert ("network", "master10") not in finished

        system = "/apis/apps/v1/namespaces/kube-system"
        daemons = {one["metadata"]["name"]: one for one in (await lab.ask_api(access, f"{system}/daemonsets"))["items"]}
        assert set(daemons) == {"kuryr-cni"}
        assert daemons["kuryr-cni"]["status"]["numberReady"] == 2
        login = await lab.ask_api(access, "/api/v1/namespaces/kube-system/secrets/kuryr-login")
        assert "very$$hidden" in base64.b64decode(login["data"]["neutron.conf"]).decode()
        assert "hidden" not in await lab.log()
        assert all("hidden" not in news.message for news in lab.news)

        # Nothing is done twice.
        await lab.run(command, operation="op-2", message="m-2")
        assert lab.calls(nodes[0], "kubeadm init") == 1

        service = {
            "metadata": {"name": "web"},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
        }
        inside = {"metadata": {"name": "inner"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
        services = "/api/v1/namespaces/default/services"
        for body in (service, inside):
            await lab.ask_api(access, services, method="POST", body=body)
        end = command.model_copy(update={"phase": "terminate_start", "kuryr": None})
        await lab.run(end, operation="op-3", message="m-3")
        left = {one["metadata"]["name"] for one in (await lab.ask_api(access, services))["items"]}
        assert left == {"kubernetes", "inner"}
        deployments = (await lab.ask_api(access, f"{system}/deployments"))["items"]
        assert [one["metadata"]["name"] for one in deployments] == ["coredns"]


async def test_a_load_balancer_that_does_not_answer_is_named(lab: MgmtLab) -> None:
    nodes = [await lab.boot("master", 10), await lab.boot("worker", 20)]
    limits = {"ssh_ready": 20, "node_install": 60, "command": 20, "node_ready": 4}
    command = lab.command(nodes, changes={"kuryr_param": KURYR, "x_timeouts": limits})
    entry = nodes[0].nic_address.rpartition(".")[0] + ".251"
    network = NETWORK.model_copy(update={"api_address": entry})
    with pytest.raises(
        CommandUnsuccessful, match=f"https://{entry}:443, the load balancer of the API, does not answer"
    ):
        await lab.run(command.model_copy(update={"driver": "kuryr-kubernetes", "kuryr": network}))


async def test_only_a_forceful_termination_goes_on_without_the_cluster(lab: MgmtLab) -> None:
    nodes = [await lab.boot("master", 10), await lab.boot("worker", 20)]
    await lab.machines.stop(nodes[0].server_id)
    changes = {"kuryr_param": KURYR, "x_timeouts": {"ssh_ready": 1, "command": 1}}
    command = lab.command(nodes, phase="terminate_start", changes=changes)
    command = command.model_copy(update={"driver": "kuryr-kubernetes"})
    with pytest.raises(VnfmError, match="master10"):
        await lab.run(command)
    await lab.run(command.model_copy(update={"force": True}), operation="op-2", message="m-2")
    assert any("could not be stopped" in news.message for news in lab.news)


async def test_a_termination_goes_on_without_a_cluster_whose_addresses_are_not_granted(lab: MgmtLab) -> None:
    """They may have become so by an upgrade, and no repeat would reach them."""
    nodes = [await lab.boot("master", 10), await lab.boot("worker", 20)]
    unknown = [node.model_copy(update={"ssh_address": f"198.51.100.{number}"}) for number, node in enumerate(nodes, 7)]
    command = lab.command(unknown, phase="terminate_start", changes={"kuryr_param": KURYR})
    await lab.run(command.model_copy(update={"driver": "kuryr-kubernetes"}))
    remark = "198.51.100.7 is in none of the networks of VNFs"
    assert any("could not be stopped" in news.message and remark in news.message for news in lab.news)


def test_sealed_parameters_are_read_again() -> None:
    login = {"auth_url": "https://k", "username": "u", "password": "pw"}
    read = parameters(neutron_auth=login)
    assert "pw" not in str(hide(read.model_dump()))
    assert KuryrParameters.model_validate(read.model_dump()) == read
