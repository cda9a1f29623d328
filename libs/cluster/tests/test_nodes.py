"""The choice of the machines of a role, and addresses that two of them share."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from kubevnfm_cluster.parameters import NodeChoice
from kubevnfm_cluster.rules import SharedAddress, refuse_shared_addresses
from kubevnfm_kit.errors import Unprocessable


@dataclass(frozen=True)
class AServer:
    name: str
    vdu_id: str = "VDU"
    group: str | None = None


SERVERS = [
    AServer("masterNode", "masterNode", "master_instance"),
    AServer("workerNode", "workerNode", "worker_instance"),
    AServer("worker2", "extra"),
    AServer("storage", "storage"),
]


@pytest.mark.parametrize(
    ("aspect_id", "vdu_id", "chosen"),
    [
        ("worker_instance", None, ["workerNode"]),
        ("worker_instance", "storage", ["workerNode"]),
        (None, "storage", ["storage"]),
        (None, None, ["workerNode", "worker2"]),
        ("none", None, []),
    ],
)
def test_the_aspect_goes_before_the_vdu_and_the_vdu_before_the_name(
    aspect_id: str | None, vdu_id: str | None, chosen: list[str]
) -> None:
    choice = NodeChoice.from_attributes("worker", aspect_id=aspect_id, vdu_id=vdu_id)
    assert [server.name for server in SERVERS if choice.includes(server)] == chosen


def test_two_nodes_of_one_address_are_refused_in_every_spelling() -> None:
    """Difference: lcm-api compared the texts, mgmt-executor the addresses."""
    refuse_shared_addresses([("master a", "10.0.0.1"), ("worker b", "10.0.0.2"), ("worker c", "fd00::1")])
    with pytest.raises(SharedAddress, match=r"10\.0\.0\.1 is the address of master a and worker b"):
        refuse_shared_addresses([("master a", "10.0.0.1"), ("worker b", "10.0.0.1")])
    with pytest.raises(SharedAddress, match="fd00::1 is the address of worker and worker"):
        refuse_shared_addresses([("worker", "fd00::1"), ("worker", "FD00:0::1")])


def test_a_text_that_is_no_address_is_refused() -> None:
    with pytest.raises(Unprocessable, match="worker b: an IP address expected"):
        refuse_shared_addresses([("worker b", "host.example")])
