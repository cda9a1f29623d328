"""Keys in the requests of clusters and load balancers: what is refused before anything is created, and what is sent."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from kubevnfm_cluster.ssh_keys import new_key_pair
from kubevnfm_events.mgmt import RunPhase
from kubevnfm_events.stacks import CreateResources
from kubevnfm_store.query import Query
from packages.package_variants import KEYED_CLUSTER, keyed_cluster, variant
from worlds.lcm_world import RING, World, sample_request

CLUSTER: Final = "k8s_cluster_installation_param"
FIELD: Final = f"additionalParams/{CLUSTER}"
KEY: Final = new_key_pair("test").private_key


def cluster_request(changes: Mapping[str, Any] = {}, **worker: Any) -> dict[str, Any]:
    """Return the sample's request for a pair; ``changes`` to the cluster, ``worker`` to the workers' login."""
    body = copy.deepcopy(sample_request("cluster", "instantiate"))
    section = body["additionalParams"][CLUSTER]
    section |= changes
    for role in ("master_node", "worker_node"):
        del section[role]["password"]
    section["worker_node"] |= worker
    return body


async def a_keyed_cluster(world: World, **declaration: str) -> str:
    onboarded = await world.upload(keyed_cluster(world.folder, **declaration))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    return await world.create("cluster", vnfdId=KEYED_CLUSTER)


async def test_the_pair_of_an_instance_reaches_the_stack_and_the_driver_and_is_sealed(world: World) -> None:
    """SEQ-195."""
    instance_id = await a_keyed_cluster(world)
    world.twins.failing.add("mgmt.run_phase")
    body = cluster_request({"x_key_pair_parameter": "ssh_public_key"}, password="of-the-workers")
    operation = await world.ask(instance_id, "instantiate", body)
    assert (await world.reached(operation))["operationState"] == "FAILED_TEMP"
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation}/retry")).must(202)
    await world.reached(operation, "COMPLETED")

    sent = [command.data for command in world.twins.commands]
    creations = [one for one in sent if isinstance(one, CreateResources)]
    phases = [one for one in sent if isinstance(one, RunPhase)]
    assert (len(creations), len(phases)) == (1, 2)
    # User data, which is code of the package, gets the public key only.
    parameters = creations[0].request["additionalParams"]
    public_key = parameters["ssh_public_key"]
    assert public_key.startswith("ssh-ed25519 ")
    assert public_key.endswith(f" vnf-{instance_id}")
    assert "private_key" not in parameters[CLUSTER]["master_node"]
    keys = []
    for phase in phases:
        assert phase.cluster is not None
        assert phase.cluster.master_node.private_key is not None
        assert phase.cluster.worker_node.private_key is None
        keys.append(phase.cluster.master_node.private_key.reveal(RING))
    assert keys[0] == keys[1]

    for path in (f"/vnf_instances/{instance_id}", f"/vnf_lcm_op_occs/{operation}"):
        for call in (world.lcm, world.v1):
            assert b"PRIVATE KEY" not in (await call("GET", path)).must(200).raw
    for collection in ("vnf_instances", "vnf_lcm_op_occs"):
        stored = json.dumps([one.body for one in await world.store.find(collection, Query())])
        assert public_key in stored
        assert keys[0].splitlines()[1] not in stored

    ended = await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    await world.reached(ended, "COMPLETED")
    left = [one.body for one in await world.store.find("vnf_instances", Query())]
    assert public_key not in json.dumps(left)


@pytest.mark.parametrize(
    ("body", "status", "field", "reason"),
    [
        (cluster_request(), 400, f"{FIELD}/master_node/password", "one of password and private_key"),
        (cluster_request({"x_key_pair_parameter": "ssh_key"}), 422, f"{FIELD}/x_key_pair_parameter", "no parameter ssh_key"),
        (cluster_request({"x_key_pair_parameter": "nfv"}), 422, f"{FIELD}/x_key_pair_parameter", "has another meaning"),
        (
            cluster_request({"x_key_pair_parameter": "ssh_public_key"}, private_key=KEY[:-90]),
            400,
            f"{FIELD}/worker_node/private_key",
            "a private key in OpenSSH's form or PEM expected",
        ),
        (
            cluster_request({"x_key_pair_parameter": "ssh_public_key"}, private_key=KEY, private_key_passphrase="hidden!"),
            400,
            f"{FIELD}/worker_node/private_key_passphrase",
            "is not encrypted",
        ),
        (
            cluster_request({"x_key_pair_parameter": "ssh_public_key"}, private_key=KEY, password="hidden!"),
            400,
            f"{FIELD}/worker_node/private_key",
            "only one of",
        ),
        (
            cluster_request({"x_key_pair_parameter": "ssh_public_key"}, bastion={"host": "b", "username": "u"}),
            400,
            f"{FIELD}/worker_node/bastion/password",
            "one of password and private_key",
        ),
    ],
)  # fmt: skip
async def test_an_unusable_login_is_refused_by_field_before_anything_is_created(
    world: World, body: Mapping[str, Any], status: int, field: str, reason: str
) -> None:
    """SEQ-194."""
    path = f"/vnf_instances/{await a_keyed_cluster(world)}/instantiate"
    for call in (world.lcm, world.v1):
        refused = (await call("POST", path, body)).problem(status)["detail"]
        assert refused.startswith(field), refused
        assert reason in refused
        assert "hidden!" not in refused
        assert KEY.splitlines()[1] not in refused
    assert world.twins.commands == []


async def test_a_parameter_with_a_default_cannot_give_the_key(world: World) -> None:
    """User data may leave such a parameter out; the machines would refuse the key, much later."""
    path = f"/vnf_instances/{await a_keyed_cluster(world, default='')}/instantiate"
    refused = await world.lcm("POST", path, cluster_request({"x_key_pair_parameter": "ssh_public_key"}))
    assert "without a default expected" in refused.problem(422)["detail"]


async def test_a_load_balancer_is_given_a_key_a_port_and_a_bastion(world: World) -> None:
    world.vims.add("VIM_ID", "kubernetes")
    files = {"Scripts/lb.sh": "true\n"}
    await world.upload(variant(world.folder, phases={"instantiate_end": "mgmt-drivers-cnf-nodeport"}, files=files))
    path = f"/vnf_instances/{await world.create('cnf')}/instantiate"
    body = sample_request("cnf", "instantiate")
    login = {"ssh_ip": "192.0.2.9", "ssh_username": "ubuntu", "ssh_private_key": KEY, "ssh_port": 2022}
    bastion = {"host": "jump.example", "username": "jump", "private_key": KEY}
    section = {"script_path": "Scripts/lb.sh", "external_lb_param": {**login, "bastion": bastion}}
    place = "additionalParams/lcm-kubernetes-external-lb/external_lb_param"

    body["additionalParams"]["lcm-kubernetes-external-lb"] = {
        **section, "external_lb_param": {**login, "bastion": {**bastion, "private_key": "rubbish"}},
    }  # fmt: skip
    refused = (await world.lcm("POST", path, body)).problem(400)["detail"]
    assert refused.startswith(f"{place}/bastion/private_key: ")
    assert world.twins.commands == []

    body["additionalParams"]["lcm-kubernetes-external-lb"] = section
    accepted = (await world.lcm("POST", path, body)).must(202)
    await world.reached(accepted.headers["Location"].rpartition("/")[2], "COMPLETED")
