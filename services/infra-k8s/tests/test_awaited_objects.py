"""The view of objects that a step awaits: watches for those that are pending, lists for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited, viewing
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
