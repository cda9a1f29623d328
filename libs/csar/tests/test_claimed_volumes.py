"""Claims of persistent volumes against manifests: their cost, and what they are refused for (multicloud.md chapter 13)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import pytest
from kubevnfm_csar.claimed_volumes import check_claims
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.objects import ClaimedVolume, ObjectsOrder
from kubevnfm_kit.errors import Unprocessable

_CPU_S: Final = 2.0
"""The check takes a tenth of it, and more than 10 s where each volume looks at all mounts by itself."""
_MANY: Final = 50_000


def order_of(*claims: str, mode: str = "ReadWriteOnce") -> ObjectsOrder:
    volumes = tuple(
        ClaimedVolume(persistent_volume_id=f"v-{name}", claim_name=name, access_modes=(mode,)) for name in claims
    )
    package = PackageRef(package_id="p", vnfd_id="d", checksum="0")
    return ObjectsOrder(
        package=package, vim=VimConnection(vim_id="vim"), def_files=(), namespace="cnf", volumes=volumes, vdus=()
    )


def stateful(name: str, templates: Sequence[str], mounts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    spec = {
        "volumeClaimTemplates": [{"metadata": {"name": each}} for each in templates],
        "template": {"spec": {"volumes": [{"persistentVolumeClaim": each} for each in mounts]}},
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


def test_many_mounts_and_templates_cost_their_number() -> None:
    body = stateful("db", ["other"] * _MANY, [{"claimName": "other"}] * _MANY)
    order = order_of(*(f"disk-db-{number}" for number in range(64)))
    before = time.process_time()
    check_claims([body], order)
    assert time.process_time() - before < _CPU_S


def test_each_claim_that_a_stateful_set_makes_is_named() -> None:
    order = order_of("disk-db-0", "disk-db-12", "disk-db-x", "disk-db-0-0", "disk-d-0")
    with pytest.raises(Unprocessable) as refused:
        check_claims([stateful("db", ["disk", "more"], [])], order)
    assert [place for place, _ in refused.value.places] == ["volumes[0]/claim_name", "volumes[1]/claim_name"]


def test_one_mount_that_may_write_is_enough() -> None:
    read_only: dict[str, Any] = {"claimName": "data", "readOnly": True}
    check_claims([stateful("db", [], [read_only])], order_of("data", mode="ReadOnlyMany"))
    for mounts in ([read_only, {"claimName": "data"}], [{"claimName": "data"}, read_only]):
        with pytest.raises(Unprocessable, match="without readOnly: true"):
            check_claims([stateful("db", [], mounts)], order_of("data", mode="ReadOnlyMany"))


def test_two_workloads_do_not_share_a_volume_of_one_pod() -> None:
    """The pod of the second would be Pending until the wait ends; a Job ends before that."""
    mounts = [{"claimName": "data"}]
    first, second, stopped = (stateful(name, [], mounts) for name in ("one", "two", "none"))
    stopped["spec"]["replicas"] = 0
    job = {**second, "apiVersion": "batch/v1", "kind": "Job"}
    check_claims([first, stopped, job], order_of("data", mode="ReadWriteOncePod"))
    check_claims([first, second], order_of("data"))
    with pytest.raises(Unprocessable, match="StatefulSet one and StatefulSet two mount it"):
        check_claims([first, second], order_of("data", mode="ReadWriteOncePod"))
