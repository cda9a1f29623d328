"""The inventory reads little from an object, within bounds: regions may be hostile (multicloud.md MC-107)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_infra_k8s.adapters.shapes import part_of
from kubevnfm_infra_k8s.domain.inventory.record import InstanceFacts, ObjectRecord, Place, changes_of, troubles_of
from kubevnfm_infra_k8s.domain.inventory.seen_object import Owner, SeenObject, parts_of
from kubevnfm_infra_k8s.domain.inventory.watcher import kinds_of
from kubevnfm_infra_k8s.domain.objects import PODS, Resource
from kubevnfm_store.query import Stored

_STATUS = "k8s.v1.cni.cncf.io/network-status"
_CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
_MACHINES = Resource("kubevirt.io/v1", "VirtualMachineInstance", "virtualmachineinstances", namespaced=True)


def a_pod(status: object = None, *, owner: object = None, **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": "web-5d9-x",
        "namespace": "ns",
        "uid": "u1",
        "labels": {"kubevnfm.io/vnf-instance-id": "i1", "pod-template-hash": "5d9"},
    }
    if status is not None:
        metadata["annotations"] = {_STATUS: status if isinstance(status, str) else json.dumps(status)}
    if owner is not None:
        metadata["ownerReferences"] = owner
    spec = {"nodeName": "worker-1"}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "podIPs": [{"ip": "10.1.0.7"}], **more}}


def seen(body: dict[str, Any], resource: Resource = PODS) -> SeenObject:
    return SeenObject.from_body(body, resource)


def test_the_addresses_of_each_network_are_read_and_none_twice() -> None:
    status = [
        {"name": "cbr0", "interface": "eth0", "ips": ["10.1.0.7"], "default": True},
        {"name": "ns/net", "interface": "net1", "ips": ["192.168.0.5/24", "FD00:0::1"], "mac": "02:00:00:00:00:01"},
    ]
    found = seen(a_pod(status, podIPs=[{"ip": "10.1.0.7"}, {"ip": "fd01::7"}]))
    assert found.networks == (
        NetworkAddresses(addresses=("fd01::7",)),
        NetworkAddresses(network="cbr0", interface="eth0", addresses=("10.1.0.7",)),
        NetworkAddresses(network="ns/net", interface="net1", addresses=("192.168.0.5", "fd00::1")),
    )
    assert (found.node, found.phase, found.vnf_instance_id) == ("worker-1", "Running", "i1")


def test_a_virtual_machine_has_the_addresses_of_its_interfaces() -> None:
    interfaces = [
        {"name": "default", "ipAddress": "10.1.0.8", "ipAddresses": ["10.1.0.8", "fd01::8"], "interfaceName": "eth0"},
        {"name": "net", "ipAddress": "192.168.0.6"},
        {"name": "new"},
    ]
    body = {"metadata": {"name": "vm"}, "status": {"nodeName": "w", "phase": "Running", "interfaces": interfaces}}
    found = seen(body, _MACHINES)
    assert [(each.network, each.addresses) for each in found.networks] == [
        ("default", ("10.1.0.8", "fd01::8")),
        ("net", ("192.168.0.6",)),
        ("new", ()),
    ]
    assert (found.node, found.phase) == ("w", "Running")


@pytest.mark.parametrize(
    "status",
    ["{", "[" * 300, "null", '{"name": 1}', "[1, null]", [{"name": 5, "ips": "10.0.0.1"}], "x" * 70_000,
     [{"ips": ["999.1.1.1", 7, None, "1" * 5000, "fe80::1%eth0", ""]}]],
)  # fmt: skip
def test_a_malformed_status_leaves_the_pods_own_address(status: object) -> None:
    found = seen(a_pod(status))
    assert [address for each in found.networks for address in each.addresses] == ["10.1.0.7"]


def test_what_a_region_says_is_bounded() -> None:
    many = [{"name": "n" * 400, "ips": [f"10.{n}.0.{m}" for m in range(40)]} for n in range(60)]
    found = seen(a_pod(many, podIPs=[{"ip": f"10.9.0.{n}"} for n in range(200)]))
    assert len(found.networks) <= 33
    assert all(len(each.addresses) <= 16 and len(each.network) <= 253 for each in found.networks)
    body = {"metadata": {"name": "a\x1b[31mb", "namespace": 5, "uid": ["u"], "labels": {}}, "spec": "x", "status": []}
    strange = seen(body)
    assert (strange.name, strange.namespace, strange.uid, strange.networks) == ("ab", "", "", ())


def _waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    waiting = {"reason": reason, "message": message}
    status = {"name": "web", "image": "registry.example/web:1", "state": {"waiting": waiting}, **more}
    return {"containerStatuses": [status], "conditions": [{"type": "Ready", "status": "False"}]}


_ENDED = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
_NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}


@pytest.mark.parametrize(
    ("status", "ready", "trouble"),
    [
        ({}, None, ""),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True, ""),
        (_waiting("ContainerCreating"), False, ""),
        (
            _waiting("ImagePullBackOff", "Back-off pulling image"), False,
            "container web: the image registry.example/web:1 cannot be pulled (ErrImagePull)",
        ),
        (
            _waiting("ErrImagePull", "manifest unknown"), False,
            "container web: the image registry.example/web:1 cannot be pulled (ErrImagePull)",
        ),
        (
            _waiting("CrashLoopBackOff", "back-off 40s restarting failed container", **_ENDED), False,
            "container web ends again and again with exit code 137 (OOMKilled)",
        ),
        (
            _waiting("CreateContainerConfigError", 'secret "login" not found'), False,
            'container web: CreateContainerConfigError: secret "login" not found',
        ),
        ({"conditions": [_NO_NODE]}, None, "no node fits: 0/3 nodes are available"),
        (
            {"phase": "Failed", "containerStatuses": [{"name": "job", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]},
            None, "container job has ended with exit code 2",
        ),
        ({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}, None, "Evicted: The node was low on memory"),
        (
            {"conditions": "x", "containerStatuses": [5, {"state": 7}, {"name": ["a"], "state": {"waiting": "b"}}], "reason": 3},
            None, "",
        ),
        ({"containerStatuses": {"a": 1}, "initContainerStatuses": None, "conditions": [None, 1]}, None, ""),
    ],
)  # fmt: skip
def test_a_pod_says_why_it_does_not_start_in_words_that_stay(
    status: dict[str, Any], ready: bool | None, trouble: str
) -> None:
    """MC-107: kubelet's back-off and its two words for one failure are not news."""
    found = seen(a_pod(**status))
    assert (found.ready, found.trouble) == (ready, trouble)
    record = ObjectRecord.from_seen("vim", found, Place(), now="t1")
    assert (record.shows(found), record.shows(seen(a_pod(podIPs=[])))) == (True, False)
    well = seen(a_pod(conditions=[{"type": "Ready", "status": "True"}]))
    assert record.shows(well) == (ready is True)
    same = ObjectRecord.from_seen("vim", well, Place(), now="t2")
    assert changes_of(record, same) == [] or found.phase == "Failed", "only a change of the placement is published"
    assert record.is_exported_as(same) == (found.phase != "Failed")


def test_the_trouble_of_a_hostile_pod_is_bounded() -> None:
    found = seen(a_pod(**_waiting("X" * 1000, "m\u202e" * 100_000)))
    assert len(found.trouble) <= 310
    assert "\u202e" not in found.trouble
    many = [{"name": f"c{n}", "state": {}} for n in range(100_000)]
    assert seen(a_pod(containerStatuses=many, initContainerStatuses=many)).trouble == ""


def test_nothing_but_the_parts_that_are_read_is_checked() -> None:
    """A check of all containers takes longer than the reading of the JSON."""
    whole = {**a_pod(), "apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "w", "containers": "none"}, "data": 5}
    part = part_of(whole, parts_of("v1", "Pod"))
    assert part.keys() == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert part["spec"] == {"nodeName": "w"}
    assert seen(part) == seen(whole)
    assert part_of({"metadata": {}, "spec": "x"}, parts_of("v1", "Pod")) == {"metadata": {}}
    assert (part_of(5, ()), parts_of("v1", "Secret")) == (5, ())


def test_a_pod_belongs_to_its_deployment_by_the_hash_in_the_name_of_its_replica_set() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9", "controller": True}
    assert seen(a_pod(owner=[{"kind": "x"}, reference])).owner == Owner("apps", "Deployment", "web")
    assert seen(a_pod(owner=[{**reference, "name": "own"}])).owner == Owner("apps", "ReplicaSet", "own")
    assert seen(a_pod(owner="none")).owner is None
    places = {
        ("apps", "Deployment", "ns", "web"): Place("VDU1", 3),
        ("", "ConfigMap", "ns", "web-5d9-x"): Place(None, 1),
    }
    facts = InstanceFacts(places)
    assert facts.place_of(seen(a_pod(owner=[reference]))) == Place("VDU1", None)
    assert facts.place_of(seen(a_pod(), _CONFIG_MAPS)) == Place(None, 1)
    assert facts.place_of(seen(a_pod())) is None


def test_only_a_change_of_the_placement_is_published() -> None:
    """MC-051, MC-108: node and addresses come in later events, and a change is published once."""
    new = ObjectRecord.from_seen("vim", seen(a_pod(podIPs=[])), Place("VDU1"), now="t1")
    placed = ObjectRecord.from_seen("vim", seen(a_pod()), Place("VDU1"), now="t2")
    (created,), (changed,), (gone,) = changes_of(None, new), changes_of(new, placed), changes_of(placed, None)
    assert [each.change for each in (created, changed, gone)] == ["created", "changed", "vanished"]
    assert (changed.old, changed.vdu_id) == (created.new, "VDU1")
    assert changed.new == gone.old
    assert not changes_of(placed, placed.model_copy(update={"priority": 7, "changed_at": "t3"}))
    settings = ObjectRecord.from_seen("vim", seen(a_pod(), _CONFIG_MAPS), Place(), now="t1")
    assert (settings.node, changes_of(None, settings)) == ("", []), "of other kinds nothing but metadata is read"


def test_a_trouble_is_published_when_it_begins_changes_or_ends() -> None:
    """Also the end of one that nothing has said: a pod was on its way for too long. A pod that starts is no trouble."""

    def record(now: str, trouble: str = "", *, ready: bool | None = True) -> ObjectRecord:
        found = ObjectRecord.from_seen("vim", replace(seen(a_pod()), trouble=trouble, ready=ready), Place(), now=now)
        stored = ObjectRecord.from_stored(Stored(found.id, 1, found.document()))
        assert stored.ill == (ready is False)
        return stored

    def published(old: ObjectRecord | None, new: ObjectRecord | None) -> list[str]:
        return [each.text for each in troubles_of(old, new)]

    first, later, late = "2030-01-01T00:00:00Z", "2030-01-01T00:04:00Z", "2030-01-01T01:00:00Z"
    well, starts = record(later), record(first, ready=False)
    bad, worse = record(later, "ended", ready=False), record(late, "ends again", ready=False)
    assert published(None, starts) == published(starts, well) == published(well, None) == []
    assert published(starts, bad) == ["ended"]
    assert published(bad, worse) == ["ends again"]
    assert published(bad, bad.model_copy(update={"node": "worker-2", "changed_at": late})) == []
    assert published(worse, well) == published(worse, None) == published(starts, record(late)) == [""]
    assert published(starts, None) == [""], "it may have been on its way for too long"
    assert published(worse, well.model_copy(update={"vnf_instance_id": "i2"})) == [""]
    earlier = bad.model_copy(update={"ill": False})
    assert not earlier.shows(replace(seen(a_pod()), trouble="ended", ready=False)), "it is written again"


def test_pods_are_always_watched_and_the_machines_of_kubevirt_with_its_kinds() -> None:
    """MC-108: no list of kinds but of what has a node and addresses."""
    assert kinds_of([("apps/v1", "Deployment")]) == {("v1", "Pod"), ("apps/v1", "Deployment")}
    machine = ("kubevirt.io/v1", "VirtualMachine")
    assert kinds_of([machine]) == {("v1", "Pod"), machine, ("kubevirt.io/v1", "VirtualMachineInstance")}
