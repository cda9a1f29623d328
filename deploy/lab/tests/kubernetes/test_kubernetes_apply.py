"""Server-side apply: ownership of fields, conflicts, and the removal of fields that are no longer applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"


def a_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def owned_by(obj: Any, manager: str) -> Any:
    return next((e["fieldsV1"] for e in obj["metadata"]["managedFields"] if e["manager"] == manager), None)


async def test_an_apply_makes_and_then_only_changes(api: Any) -> None:
    first = await api.apply(f"{MAPS}/a", a_map(x="1"))
    again = await api.apply(f"{MAPS}/a", a_map(x="1"))
    changed = await api.apply(f"{MAPS}/a", a_map(x="2"))
    assert [first.code, again.code, changed.code] == [201, 200, 200]
    assert again.body == first.body
    assert changed.body["data"] == {"x": "2"}


async def test_a_field_that_is_no_longer_applied_goes(api: Any) -> None:
    await api.apply(f"{MAPS}/a", a_map(x="1", y="2"))
    await api.patch(f"{MAPS}/a?fieldManager=another", {"data": {"z": "3"}})
    answer = await api.apply(f"{MAPS}/a", a_map(x="1"))
    assert answer.body["data"] == {"x": "1", "z": "3"}
    assert owned_by(answer.body, "one") == {"f:data": {"f:x": {}}}
    assert owned_by(answer.body, "another") == {"f:data": {"f:z": {}}}


async def test_a_field_that_two_apply_stays_when_one_drops_it(api: Any) -> None:
    await api.apply(f"{MAPS}/a", a_map(x="1"), manager="one")
    await api.apply(f"{MAPS}/a", a_map(x="1", y="2"), manager="two")
    answer = await api.apply(f"{MAPS}/a", a_map(), manager="one")
    assert answer.body["data"] == {"x": "1", "y": "2"}


async def test_a_conflict_names_the_manager_and_the_field(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.apply(f"{DEPLOYMENTS}/web", a_deployment(), manager="kubevnfm")
    answer = await api.apply(f"{DEPLOYMENTS}/web", a_deployment(replicas=5), manager="other")
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["message"] == 'Apply failed with 1 conflict: conflict with "kubevnfm": .spec.replicas'
    (cause,) = answer.body["details"]["causes"]
    assert cause == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "kubevnfm"',
        "field": ".spec.replicas",
    }


async def test_several_conflicts_are_listed_by_manager(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.apply(f"{DEPLOYMENTS}/web", a_deployment(), manager="kubevnfm")
    answer = await api.apply(f"{DEPLOYMENTS}/web", a_deployment(replicas=5, image="nginx:2"), manager="other")
    assert answer.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "kubevnfm":\n'
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="main"].image'
    )


async def test_an_updaters_conflict_names_version_and_time(api: Any) -> None:
    await api.apply(f"{MAPS}/a", a_map(x="1"))
    await api.patch(f"{MAPS}/a?fieldManager=kubectl-edit", {"data": {"x": "2"}})
    answer = await api.apply(f"{MAPS}/a", a_map(x="1"))
    assert answer.body["message"].startswith(
        'Apply failed with 1 conflict: conflict with "kubectl-edit" using v1 at 20'
    )
    assert answer.body["message"].endswith("Z: .data.x")


async def test_force_takes_the_field_over(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.apply(f"{DEPLOYMENTS}/web", a_deployment(), manager="kubevnfm")
    answer = await api.apply(f"{DEPLOYMENTS}/web", a_deployment(replicas=5), manager="other", force=True)
    assert (answer.code, answer.body["spec"]["replicas"]) == (200, 5)
    assert "f:replicas" not in owned_by(answer.body, "kubevnfm")["f:spec"]
    assert "f:replicas" in owned_by(answer.body, "other")["f:spec"]


async def test_scaling_takes_replicas_from_the_applier(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.apply(f"{DEPLOYMENTS}/web", a_deployment(), manager="kubevnfm")
    await api.patch(f"{DEPLOYMENTS}/web/scale?fieldManager=scaler", {"spec": {"replicas": 4}})
    answer = await api.apply(f"{DEPLOYMENTS}/web", a_deployment(replicas=2), manager="kubevnfm")
    assert answer.code == 409
    assert '"scaler"' in answer.body["message"]


async def test_a_number_that_its_only_owner_drops_is_reset(api: Any, a_deployment: Callable[..., Any]) -> None:
    """Seen on Kubernetes 1.34.10: 3 replicas become 1, unless a second manager owns them too."""
    without = a_deployment()
    del without["spec"]["replicas"]
    await api.apply(f"{DEPLOYMENTS}/web", a_deployment(replicas=3), manager="kubevnfm")
    dropped = await api.apply(f"{DEPLOYMENTS}/web", without, manager="kubevnfm")
    assert dropped.body["spec"]["replicas"] == 1
    await api.apply(f"{DEPLOYMENTS}/web", a_deployment(replicas=3), manager="kubevnfm")
    part = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    await api.apply(f"{DEPLOYMENTS}/web", part, manager="second")
    shared = await api.apply(f"{DEPLOYMENTS}/web", without, manager="kubevnfm")
    assert shared.body["spec"]["replicas"] == 3


async def test_a_scale_records_an_owner_only_in_place_of_another_one(
    api: Any, a_deployment: Callable[..., Any]
) -> None:
    """Seen on Kubernetes 1.34.10: a number without an owner keeps none, and 0 loses its owners."""

    async def scaled(count: int) -> set[str]:
        await api.patch(f"{DEPLOYMENTS}/web/scale?fieldManager=scaler", {"spec": {"replicas": count}})
        found = await api.get(f"{DEPLOYMENTS}/web")
        assert found["spec"]["replicas"] == count
        entries = found["metadata"]["managedFields"]
        return {each["manager"] for each in entries if "f:replicas" in each["fieldsV1"].get("f:spec", {})}

    without = a_deployment()
    del without["spec"]["replicas"]
    await api.apply(f"{DEPLOYMENTS}/web", without, manager="kubevnfm")
    assert await scaled(4) == set()
    await api.apply(f"{DEPLOYMENTS}/web", a_deployment(replicas=2), manager="kubevnfm")
    assert await scaled(4) == {"scaler"}
    assert await scaled(0) == set()
    assert await scaled(3) == set()


async def test_containers_env_and_ports_merge_by_their_keys(api: Any, a_deployment: Callable[..., Any]) -> None:
    body = a_deployment()
    body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    await api.apply(f"{DEPLOYMENTS}/web", body, manager="one")
    side = {"name": "side", "image": "busybox:1"}
    other = a_deployment()
    other["spec"] = {
        "selector": body["spec"]["selector"],
        "template": {"spec": {"containers": [side, {"name": "main", "env": [{"name": "B", "value": "2"}]}]}},
    }
    merged = await api.apply(f"{DEPLOYMENTS}/web", other, manager="two")
    containers = merged.body["spec"]["template"]["spec"]["containers"]
    assert [c["name"] for c in containers] == ["main", "side"]
    assert [e["name"] for e in containers[0]["env"]] == ["A", "B"]
    other["spec"]["template"]["spec"]["containers"] = [{"name": "main"}]
    left = (await api.apply(f"{DEPLOYMENTS}/web", other, manager="two")).body
    containers = left["spec"]["template"]["spec"]["containers"]
    assert [c["name"] for c in containers] == ["main"]
    assert containers[0]["env"] == [{"name": "A", "value": "1"}]
    assert containers[0]["image"] == "nginx:1.25"


async def test_service_ports_merge_by_port_and_protocol(api: Any) -> None:
    def body(*ports: dict[str, Any]) -> dict[str, Any]:
        spec = {"selector": {"app": "web"}, "ports": list(ports)}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}

    dns = ({"name": "u", "port": 53, "protocol": "UDP"}, {"name": "t", "port": 53})
    made = await api.apply(f"{SERVICES}/s", body(*dns))
    assert [(p["port"], p["protocol"]) for p in made.body["spec"]["ports"]] == [(53, "UDP"), (53, "TCP")]
    left = await api.apply(f"{SERVICES}/s", body(dns[1]))
    assert [(p["port"], p["protocol"]) for p in left.body["spec"]["ports"]] == [(53, "TCP")]
    assert left.body["spec"]["clusterIP"] == made.body["spec"]["clusterIP"]


async def test_tolerations_are_replaced_as_a_whole(api: Any, a_deployment: Callable[..., Any]) -> None:
    body = a_deployment()
    body["spec"]["template"]["spec"]["tolerations"] = [{"key": "a", "operator": "Exists"}]
    await api.apply(f"{DEPLOYMENTS}/web", body)
    body["spec"]["template"]["spec"]["tolerations"] = [{"key": "b", "operator": "Exists"}]
    answer = await api.apply(f"{DEPLOYMENTS}/web", body)
    assert [t["key"] for t in answer.body["spec"]["template"]["spec"]["tolerations"]] == ["b"]


async def test_an_apply_needs_a_manager_and_a_kind(api: Any) -> None:
    kind = "application/apply-patch+yaml"
    body = a_map()
    del body["kind"]
    assert (await api.call("PATCH", f"{MAPS}/a?fieldManager=one", body, kind=kind)).code == 400
    other = await api.apply(f"{MAPS}/b", a_map())
    assert other.code == 422


async def test_an_apply_may_be_yaml(api: Any) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: '1'\n"
    assert (await api.apply(f"{MAPS}/a", text)).body["data"] == {"x": "1"}


async def test_status_is_applied_apart(api: Any) -> None:
    place = f"{SERVICES}/s"
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    await api.apply(place, {**body, "spec": spec})
    condition = {"type": "Ready", "status": "True", "reason": "x", "message": "", "lastTransitionTime": None}
    applied = await api.apply(f"{place}/status", {**body, "status": {"conditions": [condition]}}, manager="two")
    assert applied.body["status"]["conditions"][0]["type"] == "Ready"
    entry = next(e for e in applied.body["metadata"]["managedFields"] if e["manager"] == "two")
    assert entry["subresource"] == "status"
    assert applied.body["spec"]["ports"][0]["port"] == 80
