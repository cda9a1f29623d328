"""The number of replicas of objects that an autoscaler scales: it stays the autoscaler's in every operation (MC-114)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectCount, ObjectsApplied, ScaleObjects, VduTarget
from kubevnfm_infra_k8s.domain.errors import Autoscaled
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey
from kubevnfm_worker.outcome import NotYet
from patience import until_true

Make = Callable[..., dict[str, Any]]
WEB = VduTarget(vdu_id="VDU1", name="web", replicas=2)
HPA = "kube-controller-manager"


async def replaced(ground: Any, *objects: Body, operation: str = "", **more: Any) -> None:
    """Change to a package with these objects."""
    await ground.site.replace(
        {"f.yaml": list(objects)}, package_id=f"p-{ground.namespace}", instance=ground.namespace,
        namespace=ground.namespace, operation=operation or f"change-{secrets.token_hex(4)}",
        **{"vdus": (WEB,), **more},
    )  # fmt: skip


async def number(ground: Any, name: str = "web", kind: str = "Deployment") -> int:
    found = await ground.shown("apps/v1", kind, name)
    return int(found["spec"]["replicas"])


async def owners(ground: Any, name: str = "web") -> set[tuple[str, str]]:
    """Return who owns the number of a Deployment: field manager and subresource."""
    found = await ground.shown("apps/v1", "Deployment", name)
    return {
        (each["manager"], each.get("subresource", ""))
        for each in found["metadata"]["managedFields"]
        if "f:replicas" in each["fieldsV1"].get("f:spec", {})
    }


def counts(done: ObjectsApplied, *names: str, count: int, is_change: bool = True) -> Sequence[ObjectCount]:
    return [
        ObjectCount(
            api_version=each.api_version,
            kind=each.kind,
            namespace=each.namespace,
            name=each.name,
            count=count,
            is_change=is_change,
        )
        for each in done.objects
        if each.name in names and each.kind in ("Deployment", "StatefulSet")
    ]


@pytest.mark.parametrize("has_number", [True, False])
async def test_a_number_of_an_autoscaler_survives_every_operation(
    ground: Any, workload: Make, autoscaler: Callable[..., Body], has_number: bool
) -> None:
    """MC-114, the four steps of the finding: also if the Deployment has no number and the VNFD gives it one."""
    web = workload()
    if not has_number:
        del web["spec"]["replicas"]
    done = await ground.apply(web, autoscaler("web"), vdus=(WEB,))
    assert await number(ground) == 1, "the autoscaler begins with what the API server gives"
    await ground.scale_as_other("web", 5, manager=HPA)
    newer = workload(image="nginx:1.28")
    if not has_number:
        del newer["spec"]["replicas"]
    await replaced(ground, newer, autoscaler("web"))
    assert (await number(ground), await owners(ground)) == (5, set()), (
        "the API server begins no record of owners by a Scale"
    )
    refused = r"Deployment .*/web: 3 replicas wanted, but HorizontalPodAutoscaler .*/web \(1 to 9\) chooses the number: change minR"
    with pytest.raises(Autoscaled, match=refused) as caught:
        await ground.site.scale_to(counts(done, "web", count=3), instance=ground.namespace, operation="out")
    assert (caught.value.status, caught.value.made_nothing) == (422, True)
    # Another party changes the image: a repair restores it alone.
    container = {"name": "main", "image": "nginx:1.0"}
    await ground.as_other("apps/v1", "Deployment", "web", {"spec": {"template": {"spec": {"containers": [container]}}}})
    assert (await ground.repair(operation="mend", vdus=(WEB,))).repaired == 1
    assert await number(ground) == 5
    # A person's number is the autoscaler's business too.
    await ground.scale_as_other("web", 4)
    assert (await ground.repair(operation="mend again", vdus=(WEB,))).repaired == 0


async def test_a_refusal_after_numbers_were_set_does_not_say_that_nothing_was_made(
    ground: Any, workload: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: the autoscaler comes while the pods are awaited, and a rollback has numbers to restore."""
    stuck = [workload(name=name, replicas=0) for name in ("web", "db")]
    for each in stuck:
        each["spec"]["template"]["spec"]["nodeSelector"] = {"room": ground.namespace}
    done = await ground.apply(*stuck)
    site = ground.site.with_changes(wait_s=0.2)
    site.step = "scale"
    objects = tuple(counts(done, "web", "db", count=3))
    command = ScaleObjects(vnf_instance_id=ground.namespace, vim=site.vim, objects=objects)
    assert isinstance(await site.handlers.scale_objects(command, site.context(operation="out")), NotYet)
    assert await number(ground, "db") == 3
    await ground.create(autoscaler("web", namespace=ground.namespace))
    with pytest.raises(Autoscaled) as caught:
        await site.handlers.scale_objects(command, site.context(operation="out"))
    assert not caught.value.made_nothing
    # So the rollback leaves it its number, and restores the others.
    undo = command.model_copy(update={"objects": tuple(counts(done, "web", "db", count=0)), "is_undo": True})
    site.step = "undo of scale"
    while isinstance(await site.handlers.scale_objects(undo, site.context(operation="out")), NotYet):
        pass
    assert (await number(ground), await number(ground, "db")) == (3, 0)


async def test_the_number_stays_when_an_autoscaler_gets_it_from_us(
    ground: Any, workload: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: the API server resets a number that its only owner drops; a second field manager holds it meanwhile."""
    await ground.apply(workload(), vdus=(WEB,))
    assert await owners(ground) == {("kubevnfm", "")}
    await replaced(ground, workload(), autoscaler("web"))
    assert (await number(ground), await owners(ground)) == (2, {("kubevnfm-handover", "")})
    await replaced(ground, workload(image="nginx:1.28"), autoscaler("web"))
    assert await number(ground) == 2
    await ground.scale_as_other("web", 5, manager=HPA)
    assert await owners(ground) == {(HPA, "scale")}
    assert (await ground.repair(vdus=(WEB,))).repaired == 0


async def test_the_number_is_ours_again_when_the_package_has_no_autoscaler_any_more(
    ground: Any, workload: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: that of the scale level, which the instance shows; a rollback gives it back to the autoscaler."""
    done = await ground.apply(workload(), autoscaler("web"), vdus=(WEB,))
    await ground.scale_as_other("web", 5, manager=HPA)
    await replaced(ground, workload(), operation="away")
    assert await ground.shown("autoscaling/v2", "HorizontalPodAutoscaler", "web") is None
    assert (await number(ground), await owners(ground)) == (2, {("kubevnfm", "")})
    assert (await ground.repair(vdus=(WEB,))).repaired == 0
    await ground.site.scale_to(counts(done, "web", count=3), instance=ground.namespace, operation="out")
    assert await number(ground) == 3
    await replaced(ground, workload(), autoscaler("web"), operation="back")
    assert await number(ground) == 3


async def test_a_number_that_was_handed_over_is_ours_again_too(
    ground: Any, workload: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: an autoscaler that has never set one."""
    await ground.apply(workload(), vdus=(WEB,))
    await replaced(ground, workload(), autoscaler("web"))
    await replaced(ground, workload(), vdus=(WEB.model_copy(update={"replicas": 3}),))
    assert await number(ground) == 3
    assert ("kubevnfm", "") in await owners(ground)


async def test_an_autoscaler_of_others_owns_the_number_as_long_as_it_exists(ground: Any, workload: Make) -> None:
    """MC-114: it is in the cluster, and in no package."""
    done = await ground.apply(workload(replicas=1), workload(name="db", replicas=1))
    await ground.autoscale("web", least=3)
    await replaced(ground, workload(replicas=1), workload(name="db", replicas=2), vdus=())
    assert (await number(ground), await number(ground, "db")) == (3, 2)
    # The others of a level are scaled.
    objects = [*counts(done, "web", count=1, is_change=False), *counts(done, "db", count=1)]
    await ground.site.scale_to(objects, instance=ground.namespace, operation="in")
    assert (await number(ground), await number(ground, "db")) == (3, 1)
    await deleted(ground, "autoscaling/v2", "HorizontalPodAutoscaler", "web")
    # Its trace in managedFields is not taken for an autoscaler.
    await ground.site.scale_to(counts(done, "web", count=2), instance=ground.namespace, operation="out")
    assert await number(ground) == 2


async def test_a_persons_number_is_drift_and_is_put_back(ground: Any, workload: Make) -> None:
    """MC-114, CR-121: only an autoscaler owns a number in our place."""
    await ground.apply(workload(), vdus=(WEB,))
    await ground.scale_as_other("web", 4)
    assert (await ground.repair(vdus=(WEB,))).repaired == 1
    assert await number(ground) == 2
    await ground.scale_as_other("web", 4)
    await replaced(ground, workload())
    assert await number(ground) == 2


async def test_a_number_without_a_known_owner_is_no_drift_if_there_is_an_autoscaler(
    ground: Any, workload: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: the API server records no owner of 0, and some autoscalers have field managers of their own."""
    done = await ground.apply(workload(), workload(name="db"), workload(name="own"))
    await ground.create(autoscaler("web", namespace=ground.namespace))
    await ground.scale_as_other("web", 4, manager="autoscaler-of-a-cloud")
    assert (await ground.repair()).repaired == 0
    await ground.create(autoscaler("db", namespace=ground.namespace))
    await ground.scale_as_other("db", 0, manager="keda")
    assert await owners(ground, "db") == set()
    assert (await ground.repair(operation="again")).repaired == 0
    await ground.site.scale_to(counts(done, "own", count=0), instance=ground.namespace, operation="off")
    assert (await ground.repair(operation="off again")).repaired == 0, "our own 0 is none either"
    await deleted(ground, "autoscaling/v2", "HorizontalPodAutoscaler", "web")
    assert (await ground.repair(operation="late")).repaired == 1
    assert await number(ground) == 2


READABLE = (
    "deployments",
    "deployments/scale",
    "replicasets",
    "pods",
    "persistentvolumeclaims",
    "services",
    "events",
)
"""The resources that a Deployment and its scaling need; no autoscaler is among them."""
VERBS = ("get", "list", "watch", "create", "patch", "delete")


async def test_the_trace_of_an_autoscaler_counts_where_autoscalers_may_not_be_read(ground: Any, workload: Make) -> None:
    """MC-114: else the number of an autoscaler that the credentials do not see would be reset."""
    limited = await ground.limited(verbs=VERBS, resources=READABLE, groups=["", "apps"])
    done = await limited.apply(workload(replicas=1), workload(name="db", replicas=1))
    await ground.autoscale("web", least=3)
    await replaced(limited, workload(replicas=1), workload(name="db", replicas=2), vdus=())
    assert (await number(ground), await number(ground, "db")) == (3, 2)
    with pytest.raises(
        Autoscaled, match="the autoscaler that has set it last chooses the number: allow the credentials"
    ):
        await limited.site.scale_to(counts(done, "web", count=2), instance=ground.namespace, operation="out")


async def test_a_change_of_package_needs_no_permission_to_read_single_objects(ground: Any, workload: Make) -> None:
    """MC-114: it looks for numbers that an autoscaler has left, and knows nothing of objects that it may not read."""
    limited = await ground.limited(
        verbs=[each for each in VERBS if each != "get"], resources=READABLE, groups=["", "apps"]
    )
    await limited.apply(workload(replicas=1))
    await replaced(limited, workload(replicas=2), vdus=())
    assert await number(ground) == 2


async def test_autoscalers_are_read_where_those_of_keda_may_not_be(
    ground: Any, workload: Make, make: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: ClusterRole ``admin`` may list the first ones alone; one that KEDA has made stands for a ScaledObject then."""
    await ground.create(KEDA)

    async def is_served() -> bool:
        return await ground.cluster.resource("keda.sh/v1alpha1", "ScaledObject") is not None

    await until_true(is_served)
    limited = await ground.limited(
        verbs=VERBS, resources=[*READABLE, "horizontalpodautoscalers"], groups=["", "apps", "autoscaling"]
    )
    await limited.apply(workload(replicas=1), workload(name="db", replicas=1), workload(name="own", replicas=1))
    # Neither has set a number yet, so that no trace shows them.
    await ground.create(autoscaler("db", namespace=ground.namespace))
    load = make("ScaledObject", "load", api_version="keda.sh/v1alpha1", spec={"scaleTargetRef": {"name": "web"}})
    load["metadata"]["namespace"] = ground.namespace
    await ground.create(made_by_keda(ground.namespace, (await ground.create(load))["metadata"]["uid"]))
    await replaced(limited, *(workload(name=name, replicas=2) for name in ("web", "db", "own")), vdus=())
    assert [await number(ground, name) for name in ("web", "db", "own")] == [1, 1, 2]


async def test_a_stateful_set_and_a_kind_with_another_path_have_autoscalers_too(
    ground: Any, workload: Make, make: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: any kind with a scale subresource; its definition says where the number is."""
    group = f"{ground.namespace}.example.org"
    pool = make("Pool", "pool", api_version=f"{group}/v1", spec={"size": 2, "color": "red"})
    scaler = autoscaler("pool")
    scaler["spec"]["scaleTargetRef"] = {"apiVersion": f"{group}/v1", "kind": "Pool", "name": "pool"}
    objects = [a_definition(make, group), workload("StatefulSet", "db"), autoscaler("db", kind="StatefulSet")]
    await ground.apply(*objects, pool)
    assert await number(ground, "db", "StatefulSet") == 1
    await replaced(ground, *objects, pool, scaler, vdus=())
    found = await ground.shown(f"{group}/v1", "Pool", "pool")
    assert found["spec"] == {"size": 2, "color": "red"}
    await replaced(ground, *objects, {**pool, "spec": {"size": 3, "color": "blue"}}, scaler, vdus=())
    found = await ground.shown(f"{group}/v1", "Pool", "pool")
    assert found["spec"] == {"size": 2, "color": "blue"}


async def test_an_object_of_a_custom_kind_is_created_with_its_number(
    ground: Any, make: Make, autoscaler: Callable[..., Body]
) -> None:
    """MC-114: there is no default for it, and no autoscaler can read a Scale without a number; it is handed over later."""
    group = f"{ground.namespace}.example.org"
    pool = make("Pool", "pool", api_version=f"{group}/v1", spec={"size": 2, "color": "red"})
    scaler = autoscaler("pool", namespace=ground.namespace)
    scaler["spec"]["scaleTargetRef"] = {"apiVersion": f"{group}/v1", "kind": "Pool", "name": "pool"}
    await ground.create(scaler)
    definition = a_definition(make, group)
    await ground.apply(definition, pool)
    assert (await ground.shown(f"{group}/v1", "Pool", "pool"))["spec"] == {"size": 2, "color": "red"}
    pool["spec"] = {"size": 3, "color": "blue"}
    await replaced(ground, definition, pool, vdus=())
    assert (await ground.shown(f"{group}/v1", "Pool", "pool"))["spec"] == {"size": 2, "color": "blue"}
    assert (await ground.repair()).repaired == 0
    await deleted(ground, f"{group}/v1", "Pool", "pool")
    assert (await ground.repair(operation="again")).repaired == 1
    assert (await ground.shown(f"{group}/v1", "Pool", "pool"))["spec"] == {"size": 3, "color": "blue"}


async def test_a_scaled_object_of_keda_owns_the_number_of_its_target(ground: Any, workload: Make, make: Make) -> None:
    """MC-114: its target is a Deployment unless it says otherwise, and the autoscaler that it makes is not named."""
    await ground.create(KEDA)
    scaled = make("ScaledObject", "load", api_version="keda.sh/v1alpha1", spec={"scaleTargetRef": {"name": "web"}})

    async def is_served() -> bool:
        return await ground.cluster.resource("keda.sh/v1alpha1", "ScaledObject") is not None

    await until_true(is_served)
    done = await ground.apply(workload(), scaled, vdus=(WEB,))
    assert await number(ground) == 1
    shown = await ground.shown("keda.sh/v1alpha1", "ScaledObject", "load")
    await ground.create(made_by_keda(ground.namespace, shown["metadata"]["uid"]))
    await ground.scale_as_other("web", 0, manager="keda")
    assert (await ground.repair(vdus=(WEB,))).repaired == 0
    await ground.scale_as_other("web", 4, manager=HPA)
    with pytest.raises(
        Autoscaled, match=r"but ScaledObject .*/load \(0 to 100\) chooses the number: change minReplicaC"
    ):
        await ground.site.scale_to(counts(done, "web", count=3), instance=ground.namespace, operation="out")
    await replaced(ground, workload(image="nginx:1.28"), scaled)
    assert await number(ground) == 4
    await replaced(ground, workload(image="nginx:1.28"))
    assert await number(ground) == 2


async def deleted(ground: Any, api_version: str, kind: str, name: str) -> None:
    resource = await ground.cluster.resource(api_version, kind)
    await ground.cluster.delete(resource, ObjectKey(api_version, kind, ground.namespace, name))

    async def is_gone() -> bool:
        return await ground.shown(api_version, kind, name) is None

    await until_true(is_gone)


def a_definition(make: Make, group: str) -> Body:
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    }  # fmt: skip
    names = {"kind": "Pool", "plural": "pools", "singular": "pool", "listKind": "PoolList"}
    return make(
        "CustomResourceDefinition", f"pools.{group}", api_version="apiextensions.k8s.io/v1",
        spec={"group": group, "scope": "Namespaced", "versions": [version], "names": names},
    )  # fmt: skip


def made_by_keda(namespace: str, uid: str) -> Body:
    """Return the autoscaler that KEDA makes for its ScaledObject."""
    owner = {
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "load", "uid": uid, "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "keda-hpa-load", "namespace": namespace, "ownerReferences": [owner]},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 100,
        },
    }


KEDA: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {
        "group": "keda.sh",
        "scope": "Namespaced",
        "names": {"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"status": {}},
            }
        ],
    },
}
"""The kind alone: the test does what KEDA's operator would do."""
