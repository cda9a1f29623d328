"""The view of objects that a step awaits: watches for those that are pending, lists for the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.verdicts import CURRENT, in_progress
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited, View, viewing
from kubevnfm_infra_k8s.domain.watching.unseen_resources import UnseenResources
from kubevnfm_lab.faults import CallLedger
from patience import until_true

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
SECRETS = Resource("v1", "Secret", "secrets", namespaced=True)


async def test_what_is_ready_is_not_watched_but_listed_again_at_the_end(
    cluster: Cluster, ledger: CallLedger, make: Callable[..., dict[str, Any]]
) -> None:
    def calls(verb: str) -> int:
        return sum(call["count"] for call in ledger.calls() if call["verb"] == verb)

    async def apply(resource: Resource, key: ObjectKey) -> None:
        body = make(resource.kind, key.name, namespace="default")
        body["metadata"]["labels"] = {INSTANCE_LABEL: "i1"}
        await cluster.apply(resource, key, body)

    ready = ObjectKey("v1", "ConfigMap", "default", "ready")
    pending = ObjectKey("v1", "Secret", "default", "pending")
    await apply(CONFIG_MAPS, ready)
    awaited = [Awaited(ready, CONFIG_MAPS), Awaited(pending, SECRETS)]
    async with viewing(cluster, awaited, vnf_instance_id="i1") as view:
        assert set(view.bodies) == {ready}
        assert not await view.refreshed()
        await apply(SECRETS, pending)

        async def has_come() -> bool:
            await view.change([pending], within_s=0.1)
            return pending in view.bodies

        await until_true(has_come)
        await cluster.delete(CONFIG_MAPS, ready)
        assert set(view.bodies) == {ready, pending}
        assert await view.refreshed()
        assert set(view.bodies) == {pending}
        assert not await view.refreshed()
    assert (calls("list configmaps"), calls("watch configmaps")) == (2, 0)
    assert (calls("list secrets"), calls("watch secrets")) == (1, 1)


async def test_a_resource_without_status_waits_for_what_can_be_its_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """CR-027: counted from when the workloads are ready; longer for a kind of which no controller has written a status."""
    now = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    kind = Resource("acme.example/v1", "Thing", "things", namespaced=True, subresources=frozenset({"status"}))
    things = [ObjectKey(*kind.api_kind, "n", name) for name in ("a", "b")]
    operator = ObjectKey("apps/v1", "Deployment", "n", "operator")
    awaited = [*(Awaited(key, kind) for key in things), Awaited(operator, CONFIG_MAPS)]
    bodies: dict[ObjectKey, Any] = {
        each.key: {"apiVersion": each.key.api_version, "kind": each.key.kind} for each in awaited
    }
    view = View(cast("Cluster", None), "", (), bodies, dict.fromkeys(bodies, 90.0))
    unseen, left_s = UnseenResources(settle_s=5.0), 1000.0

    def patience(*, is_working: bool) -> tuple[float, float]:
        verdicts = {key: CURRENT if "status" in body else in_progress("") for key, body in bodies.items()}
        verdicts[operator] = CURRENT if is_working else in_progress("")
        found = unseen.patience(awaited, verdicts, view, lambda key: left_s)
        assert found.keys() == {key for key in things if "status" not in bodies[key]}
        assert unseen.is_counting(found, verdicts) is is_working
        return found[things[1]].unchanged_s, found[things[1]].limit_s

    assert patience(is_working=False) == (0.0, 30.0)
    assert patience(is_working=True) == (0.0, 30.0)
    now = 107.0
    assert patience(is_working=True) == (7.0, 30.0)
    # Another one of the kind has a status: its controller works.
    bodies[things[0]]["status"] = {"phase": "Up"}
    assert patience(is_working=True) == (7.0, 5.0)
    del bodies[things[0]]["status"]
    # Not to fail at its limit, where it was ready before.
    left_s = 9.0
    assert patience(is_working=False) == (17.0, 5.0)
