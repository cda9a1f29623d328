"""Refusals of the API server end the step with their reason; those that another object of the set cures do not."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.errors import ObjectsRefused
from kubevnfm_secrets import Secret
from packages.kubernetes_objects import a_deployment, a_pod, an_object, things_of

RBAC = "rbac.authorization.k8s.io/v1"


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *parents, last = path.split(".")
    node: Any = body
    for name in parents:
        node = node[int(name) if name.isdigit() else name]
    node[last] = value
    return body


TYPING_ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("unknown field", changed(a_deployment(), "spec.replica", 2), ".spec.replica: field not declared in schema"),
    ("text for a number", changed(a_deployment(), "spec.replicas", "two"), ".spec.replicas: expected numeric"),
    ("text for a map", changed(a_deployment(), "spec.strategy", "x"), ".spec.strategy: expected map"),
    (
        "number as a label",
        changed(a_deployment(), "spec.selector.matchLabels", {"a": 1}),
        ".spec.selector.matchLabels.a: expected string",
    ),
    ("unknown in metadata", changed(a_deployment(), "metadata.foo", 1), ".metadata.foo: field not declared in schema"),
    ("number in a map", an_object("ConfigMap", "c", data={"a": 1}), ".data.a: expected string"),
    ("unknown at the top", an_object("ConfigMap", "c", dat={"a": "1"}), ".dat: field not declared in schema"),
    (
        "a key given twice",
        changed(a_deployment(), "spec.template.spec.containers", [{"name": "m", "image": "i"}] * 2),
        '.spec.template.spec.containers: duplicate entries for key [name="m"]',
    ),
    (
        "a port given twice",
        an_object("Service", "s", spec={"ports": [{"port": 80}, {"port": 80}]}),
        '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
    ),
    ("number for a map", an_object("Secret", "s", type="bootstrap.kubernetes.io/token", data=5), ".data: expected map"),
    ("no base64", an_object("Secret", "s", data={"a": "not base64!"}), "illegal base64 data"),
    (
        "no quantity",
        changed(a_deployment(), "spec.template.spec.containers.0.resources", {"limits": {"cpu": "abc"}}),
        "quantities must match",
    ),
    ("value too long", an_object("ConfigMap", "c", data={"a": "x" * 1_100_000}), "may not be more than 1048576 bytes"),
    (
        "annotations too long",
        an_object("ConfigMap", "c", metadata={"annotations": {"a": "x" * 300_000}}),
        "may not be more than 262144 bytes",
    ),
]


@pytest.mark.parametrize(
    ("body", "says"), [each[1:] for each in TYPING_ERRORS], ids=[each[0] for each in TYPING_ERRORS]
)
async def test_a_typing_error_is_refused_at_once_with_its_place(ground: Any, body: dict[str, Any], says: str) -> None:
    """CR-016: HTTP 500 without a reason is a refusal; nothing is created and nothing is tried again."""
    good = an_object("ConfigMap", "good")
    with pytest.raises(ObjectsRefused) as caught:
        await ground.apply(good, body)
    assert says in str(caught.value)
    assert f"{body['kind']} {ground.namespace}/{body['metadata']['name']}" in str(caught.value)
    assert len(caught.value.refusals) == 1
    assert await ground.shown("v1", "ConfigMap", "good") is None


@pytest.mark.parametrize("value", [4711004711, ["sword-fish"], {"inner": "sword-fish"}], ids=["number", "list", "map"])
async def test_a_value_of_a_secret_is_not_repeated_in_the_refusal(ground: Any, value: object) -> None:
    with pytest.raises(ObjectsRefused, match=r"\.data\.key: expected string") as caught:
        await ground.apply(an_object("Secret", "s", data={"key": value}))
    assert "4711004711" not in str(caught.value)
    assert "sword" not in str(caught.value)


async def test_a_value_of_a_variable_is_not_repeated_in_the_refusal(ground: Any) -> None:
    """CR-042: the API server repeats values that it does not support."""
    service = an_object("Service", "s", spec={"type": "${TYPE}", "ports": [{"port": 80}]})
    with pytest.raises(ObjectsRefused, match=r'spec\.type: Unsupported value: "\*\*\*"') as caught:
        await ground.apply(service, variables={"TYPE": Secret("Sword-Fish-42")})
    assert f"Service {ground.namespace}/s" in str(caught.value)
    assert "Sword" not in str(caught.value)
    assert "Sword" not in str(ground.site.progress)


async def test_a_pod_may_be_in_one_set_with_its_account_and_its_priority(ground: Any) -> None:
    """CR-017: the dry run refuses such a pod, and its real apply accepts it; also if the pod comes first in the file."""
    priority = ground.own_name("high")
    pod = an_object("Pod", "p", spec=a_pod(serviceAccountName="worker", priorityClassName=priority)["spec"])
    done = await ground.apply(
        pod,
        an_object("ServiceAccount", "worker"),
        an_object("PriorityClass", priority, api_version="scheduling.k8s.io/v1", value=1000),
    )
    assert [each.name for each in done.objects] == ["p", "worker", priority]
    assert all(each.uid for each in done.objects)
    await ground.delete()
    assert await ground.shown("v1", "Pod", "p") is None


async def test_an_account_that_is_nowhere_refuses_the_pod_before_anything_is_created(ground: Any) -> None:
    """CR-017: only the objects of the set can cure a refusal."""
    with pytest.raises(ObjectsRefused, match='serviceaccount "missing" not found'):
        await ground.apply(
            an_object("ConfigMap", "c"), an_object("Pod", "p", spec=a_pod(serviceAccountName="missing")["spec"])
        )
    assert await ground.shown("v1", "ConfigMap", "c") is None


async def test_a_role_and_its_binding_are_deployed_by_a_token_of_the_namespace(ground: Any) -> None:
    """CR-017: for such a token the API server refuses a binding whose Role does not exist yet."""
    limited = await ground.limited()
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    binding = an_object(
        "RoleBinding",
        "reads",
        api_version=RBAC,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        subjects=[{"kind": "ServiceAccount", "name": "default", "namespace": ground.namespace}],
    )
    done = await limited.apply(binding, an_object("Role", "reader", api_version=RBAC, rules=rules))
    assert [each.name for each in done.objects] == ["reads", "reader"]
    await limited.delete()
    assert await ground.shown(RBAC, "Role", "reader") is None


async def test_a_token_of_the_namespace_deploys_a_claim(ground: Any) -> None:
    """CR-029: the token may not list storage classes, so that a claim that is not bound yet counts as ready."""
    limited = await ground.limited()
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "no"}
    done = await limited.apply(an_object("PersistentVolumeClaim", "data", spec=spec))
    assert [each.name for each in done.objects] == ["data"]
    await limited.delete()
    assert await ground.shown("v1", "PersistentVolumeClaim", "data") is None


async def test_what_a_token_may_not_create_is_refused_and_does_not_stop_the_rollback(ground: Any) -> None:
    """CR-019: an object of the inventory that was never sent needs no look, which the token may not take."""
    limited = await ground.limited()
    role = an_object("ClusterRole", ground.own_name("reader"), api_version=RBAC, rules=[])
    with pytest.raises(ObjectsRefused, match="cannot patch resource"):
        await limited.apply(an_object("ConfigMap", "c"), role)
    assert (await limited.delete()).count == 2


async def test_what_the_api_server_warns_of_is_shown_once(ground: Any) -> None:
    """CR-017: the dry run and the apply get the same warning, and so do the calls of a step that follow each other."""
    pod = a_pod(nodeSelector={"beta.kubernetes.io/os": "linux"})
    await ground.apply(*(a_deployment(f"web{number}", replicas=0, pod=pod) for number in range(5)))
    (said,) = [each.message for each in ground.site.progress if each.task == "warnings"]
    first = ", ".join(f"Deployment {ground.namespace}/web{number}" for number in range(3))
    what = (
        'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
    )
    assert said == f"warning: {first} and 2 more: the API server warns: {what}"


async def test_a_resource_that_gets_no_status_is_named_with_the_way_out(ground: Any) -> None:
    """CR-027: nothing says whether its controller works, so the operation ends with a warning."""
    group = f"{ground.namespace}.example"
    definition = things_of(group)
    definition["spec"]["versions"][0]["subresources"] = {"status": {}}
    await ground.apply(definition, an_object("Thing", "t", api_version=f"{group}/v1"))
    (said,) = [each.message for each in ground.site.progress if each.task == "warnings"]
    assert said.startswith(
        f"warning: Thing {ground.namespace}/t: counts as ready without a status, which no controller"
    )
    assert "kubevnfm.io/ready-when" in said
    await ground.delete()
