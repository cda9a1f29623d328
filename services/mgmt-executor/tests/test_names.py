"""Host names of nodes."""

from __future__ import annotations

from typing import Literal

from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_mgmt_executor.domain.names import node_names


def a_node(vnfc_id: str, address: str, role: Literal["master", "worker"] = "worker") -> ManagedNode:
    return ManagedNode(vnfc_id=vnfc_id, role=role, ssh_address=address, nic_address=address)


def test_a_node_is_named_after_its_role_and_the_last_octet() -> None:
    nodes = [a_node("a", "10.10.0.5", "master"), a_node("b", "10.10.0.5"), a_node("c", "10.10.0.78")]
    assert node_names(nodes) == {"a": "master5", "b": "worker5", "c": "worker78"}


def test_names_that_would_be_equal_get_a_hash_of_the_address() -> None:
    names = node_names([a_node("a", "10.10.0.7"), a_node("b", "10.10.1.7"), a_node("c", "10.10.1.8")])
    assert len(set(names.values())) == 3
    assert names["c"] == "worker8"
    assert names["a"].startswith("worker7-")


def test_an_ipv6_node_is_named_by_a_hash() -> None:
    (name,) = node_names([a_node("a", "fd00::5")]).values()
    assert name.startswith("worker-")
    assert ":" not in name


def test_the_same_address_gives_the_same_name_again() -> None:
    before = node_names([a_node("old", "10.10.0.7"), a_node("x", "10.10.1.7")])
    after = node_names([a_node("new", "10.10.0.7"), a_node("x", "10.10.1.7")])
    assert before["old"] == after["new"]


def test_a_name_that_was_given_stays_and_no_other_node_gets_it() -> None:
    """SEQ-192, W-20."""
    old = a_node("old", "10.10.0.7").model_copy(update={"name": "worker7"})
    hashed = a_node("hashed", "10.10.2.9").model_copy(update={"name": "worker9-0123abcd"})
    names = node_names([old, hashed, a_node("new", "10.10.1.7"), a_node("other", "10.10.1.9")])
    assert (names["old"], names["hashed"], names["other"]) == ("worker7", "worker9-0123abcd", "worker9")
    assert names["new"].startswith("worker7-")
