"""The policy for CNFs: what it finds, for which VIM it holds, and that every path that applies manifests goes through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import VduTarget
from kubevnfm_infra_k8s.adapters import documents
from kubevnfm_infra_k8s.domain.errors import PolicyViolated
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, Wanted, group_of
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Finding, Policies, Rules, findings, namespaces_of
from kubevnfm_infra_k8s.domain.planning.policy_report import described
from kubevnfm_infra_k8s.handlers.policy_gate import PolicyGate
from kubevnfm_infra_k8s.policy_settings import policies_of
from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_secrets import Secret
from pydantic import ValidationError

RBAC = "rbac.authorization.k8s.io/v1"
SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "Namespace",
    "PersistentVolume",
    "CustomResourceDefinition",
    "TokenReview",
}
URL = "https://192.0.2.7:6443"


def wanted(kind: str, name: str = "x", *, api_version: str = "v1", namespace: str = "cnf", **body: Any) -> Wanted:
    namespaced = kind not in SCOPED
    key = ObjectKey(api_version, kind, namespace if namespaced else "", name)
    verbs = frozenset({"create"}) if kind == "TokenReview" else frozenset({"get", "patch"})
    resource = Resource(api_version, kind, f"{kind.lower()}s", namespaced=namespaced, verbs=verbs)
    return Wanted(
        key, {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **body}, resource, "f", "d"
    )


def found(*objects: Wanted, others: Mapping[str, list[str]] | None = None, **rules: Any) -> list[tuple[str, str]]:
    """Return rule and field of what is found."""
    return [(each.rule, each.field) for each in findings(objects, Rules(**rules), others or {})]


def role(*rules: dict[str, Any], name: str = "all", **body: Any) -> Wanted:
    return wanted("ClusterRole", name, api_version=RBAC, rules=list(rules), **body)


def binding(to: str, kind: str = "ClusterRoleBinding", of: str = "ClusterRole") -> Wanted:
    return wanted(kind, "b", api_version=RBAC, roleRef={"apiGroup": group_of(RBAC), "kind": of, "name": to})


ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
ANY_SCOPE: dict[str, Any] = {"cluster_scoped": ("*",)}


@pytest.mark.parametrize(
    "rule",
    [
        ALL,
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["*/proxy"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": ["system:masters"]},
        {
            "apiGroups": [group_of(RBAC)],
            "resources": ["clusterroles"],
            "verbs": ["bind"],
            "resourceNames": ["cluster-admin"],
        },
        {"apiGroups": [group_of(RBAC)], "resources": ["clusterroles"], "verbs": ["escalate"]},
        {"apiGroups": [group_of(RBAC)], "resources": ["roles"], "verbs": ["bind"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["*/ephemeralcontainers"], "verbs": ["patch"]},
        {"apiGroups": ["*"], "resources": ["mutatingwebhookconfigurations"], "verbs": ["create"]},
        {
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests/approval"],
            "verbs": ["update"],
        },
    ],
    ids=str,
)
def test_a_role_as_good_as_cluster_admin_is_found_and_so_is_its_binding(rule: dict[str, Any]) -> None:
    first = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}
    assert found(role(first, rule), **ANY_SCOPE) == [("clusterAdmin", "rules[1]")]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert ("clusterAdmin", "roleRef") in found(binding("all", kind), role(rule), **ANY_SCOPE)
    assert not found(role(rule), binding("all"), cluster_admin=True, **ANY_SCOPE)


def test_other_roles_and_their_bindings_are_none() -> None:
    ordinary = (
        {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["own"]},
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingwebhookconfigurations"],
            "verbs": ["get", "patch"],
            "resourceNames": ["own"],
        },
    )
    assert not found(role(*ordinary), binding("all"), binding("view", "RoleBinding"), **ANY_SCOPE)
    own = wanted("Role", "all", api_version=RBAC, rules=[ALL])
    assert not found(own, binding("cluster-admin", "RoleBinding", of="Role"))


@pytest.mark.parametrize("kind", ["ClusterRoleBinding", "RoleBinding"])
@pytest.mark.parametrize("name", ["cluster-admin", "system:controller:clusterrole-aggregation-controller"])
def test_a_binding_to_a_role_of_kubernetes_itself_is_found(kind: str, name: str) -> None:
    assert ("clusterAdmin", "roleRef") in found(binding(name, kind), **ANY_SCOPE)


@pytest.mark.parametrize("name", ["admin", "edit", "system:node"])
def test_a_role_that_is_too_much_in_all_namespaces_may_be_bound_in_one(name: str) -> None:
    assert found(binding(name), **ANY_SCOPE) == [("clusterAdmin", "roleRef")]
    assert not found(binding(name, "RoleBinding"), **ANY_SCOPE)
    assert not found(binding("view"), **ANY_SCOPE)


def test_a_role_that_becomes_a_part_of_others_or_takes_theirs_is_found() -> None:
    label = "rbac.authorization.k8s.io/aggregate-to-edit"
    given = role(metadata={"name": "all", "labels": {label: "true"}}, aggregationRule={"clusterRoleSelectors": [{}]})
    assert found(given, **ANY_SCOPE) == [
        ("clusterAdmin", f"metadata.labels[{label}]"),
        ("clusterAdmin", "aggregationRule"),
    ]


def test_cluster_scoped_objects_are_found_unless_their_kind_is_allowed() -> None:
    crd = wanted("CustomResourceDefinition", api_version="apiextensions.k8s.io/v1")
    assert found(crd) == [("clusterScoped", "kind")]
    assert not found(crd, cluster_scoped=("CustomResourceDefinition",))
    assert not found(crd, cluster_scoped=("*.apiextensions.k8s.io",))
    assert not found(wanted("Namespace", "cnf"), wanted("TokenReview"))
    # A custom resource of the same kind is another one.
    other = wanted("ClusterRole", api_version="example.com/v1")
    assert found(other, cluster_scoped=("ClusterRole",)) == [("clusterScoped", "kind")]
    assert not found(other, cluster_scoped=("ClusterRole.example.com",))


def test_kinds_are_limited() -> None:
    assert found(wanted("Secret"), wanted("ConfigMap"), kinds=("ConfigMap",)) == [("kind", "kind")]
    assert not found(wanted("Deployment", api_version="apps/v1"), kinds=("*.apps",))


def test_namespaces_of_kubernetes_and_of_others_are_found() -> None:
    assert found(wanted("ConfigMap", namespace="kube-system")) == [("namespace", "metadata.namespace")]
    assert found(wanted("Namespace", "kube-system")) == [("namespace", "metadata.name")]
    assert not found(wanted("ConfigMap", namespace="kube-system"), namespaces=("kube-system",))
    assert found(wanted("ConfigMap"), wanted("ConfigMap", namespace="cnf-2"), namespaces=("cnf-*",)) == [
        ("namespace", "metadata.namespace")
    ]
    shared = found(wanted("ConfigMap"), wanted("Namespace", "cnf"), others={"cnf": ["i2"]})
    assert shared == [("otherVnfNamespace", "metadata.namespace"), ("otherVnfNamespace", "metadata.name")]
    objects = [wanted("ConfigMap", namespace=name) for name in ("default", "b", "a")]
    assert namespaces_of([*objects, wanted("ClusterRole")], Rules()) == ["a", "b"]
    assert namespaces_of(objects, Rules(shared_namespaces=("*",))) == []


def test_what_lowers_pod_security_or_gets_around_it_is_found() -> None:
    label = "pod-security.kubernetes.io/enforce"
    low = wanted("Namespace", "cnf", metadata={"name": "cnf", "labels": {label: "privileged"}})
    same = wanted("Namespace", "cnf", metadata={"name": "cnf", "labels": {label: "baseline"}})
    assert found(low, same) == [("podSecurityLabel", f"metadata.labels[{label}]")]
    volume = wanted("PersistentVolume", spec={"hostPath": {"path": "/"}})
    assert found(volume, **ANY_SCOPE) == [("hostPathVolumes", "spec.hostPath")]
    assert not found(volume, low, pod_security="privileged", **ANY_SCOPE)


def test_a_text_names_object_field_and_rule_and_stays_short() -> None:
    pods = [wanted("Pod", f"p{n}", spec={"hostNetwork": True}) for n in range(500)]
    text = described(findings([*pods, wanted("ClusterRole", "r\n" + "x" * 9000)], Rules(), {}))
    assert text.startswith("hostNamespaces: Pod cnf/p0: spec.hostNetwork (true), Pod cnf/p1:")
    assert " and 495 more; clusterScoped: ClusterRole r?xxx" in text
    assert len(text) < 1000


# --- the setting ------------------------------------------------------------------------------------------------------

VIM_ID = "4f7d0b52-6f9c-4f0e-9c4d-6a0d9d0f2f11"
DOCUMENT = f"""
mode = "strict"
pod_security = "restricted"
namespaces = ["cnf-*"]

[vims.{VIM_ID}]
mode = "warn"

[vims."{URL}/"]
pod_security = "privileged"

[own_clusters]
cluster_scoped = ["*"]
"""


def test_a_file_has_rules_for_all_and_what_differs_for_some(tmp_path: Path) -> None:
    """CR-126."""
    path = tmp_path / "policy.toml"
    path.write_text(DOCUMENT)
    policies = policies_of(str(path))
    by_id = VimConnection(vim_id=VIM_ID)
    whole = VimConnection(vim_id=VIM_ID, access_info={"bearer_token": Secret("t")})
    assert policies.for_cluster(VimConnection(vim_id="other"), "https://x").mode == "strict"
    lab = policies.for_cluster(by_id, "https://x")
    assert (lab.mode, lab.pod_security, lab.namespaces) == ("warn", "restricted", ("cnf-*",))
    # A request that brings the access data brings the id, too.
    assert policies.for_cluster(whole, "https://x").mode == "strict"
    for vim in (by_id, whole):
        assert policies.for_cluster(vim, "HTTPS://192.0.2.7:6443").pod_security == "privileged"
    assert policies.for_cluster(by_id, "https://x", is_own=True).cluster_scoped == ("*",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "mode: warn or strict expected"),
        (
            'mode = "warn"\npod_security = "low"',
            "pod_security: Input should be 'privileged', 'baseline' or 'restricted'",
        ),
        ('mode = "warn"\n[vims.a]\nnamespace = ["x"]', "vims.a.namespace: no such rule"),
        ('mode = "warn"\n[vims.nonsense]', "vims: 'nonsense': the id of a registered VIM, or the http"),
        ('mode = "warn"\n[vims."https://h:66443"]', "vims: 'https://h:66443': the id of a registered VIM, or the http"),
        ('mode = "warn"\n[vims."https://h"]\n[vims."https://H:443/"]', "another part names the same API server"),
        ("mode = warn", "Invalid value"),
    ],
)
def test_a_file_with_a_fault_is_refused_at_start(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ValidationError, match=said):
        Settings(internal_token="t", keys="k", cnf_policy=str(path))


@pytest.mark.parametrize(
    ("given", "said"), [("Strict", "path of a TOML file expected"), ("/no/such.toml", "No such file")]
)
def test_another_word_is_refused_at_start(given: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings(internal_token="t", keys="k", cnf_policy=given)


def test_the_words_are_policies() -> None:
    assert policies_of("warn") == Policies()
    assert policies_of("strict") == Policies(mode="strict")


# --- the paths --------------------------------------------------------------------------------------------------------

FILE = "Files/a.yaml"
HOST = {"pod": {"hostNetwork": True}}


def strict(site: Any) -> Any:
    gate = PolicyGate(policies_of("strict"), documents.StoredReleases(site.store))
    return site.with_changes(policy=gate)


async def changed(site: Any, path: str, bad: Any, *, package: str) -> None:
    """Have one of the paths apply the manifest."""
    if path == "apply":
        await site.apply({FILE: bad}, operation="op2")
    elif path == "update":
        await site.update({FILE: bad}, def_files=[FILE], package_id=package)
    elif path == "replace":
        await site.replace({FILE: bad}, package_id=package)
    else:
        site.packages.add({FILE: bad}, package_id=package)
        await site.repair(def_files=[FILE], package_id=package)


@pytest.mark.parametrize("path", ["apply", "update", "replace", "repair"])
async def test_every_path_that_applies_manifests_is_judged(
    site: Any, lab: LabCluster, workload: Callable[..., dict[str, Any]], path: str
) -> None:
    """CR-126."""
    await site.apply({FILE: workload()})
    before = lab.inventory()["objects"]
    with pytest.raises(
        PolicyViolated, match=r"hostNamespaces: Deployment default/web: spec.template.spec.hostNetwork"
    ) as error:
        await changed(strict(site), path, workload(**HOST), package="p-bad")
    assert error.value.made_nothing
    assert lab.inventory()["objects"] == before


async def test_a_bare_pod_is_judged_when_it_is_healed(site: Any, make: Callable[..., dict[str, Any]]) -> None:
    pod = make("Pod", "one", spec={"hostPID": True, "containers": [{"name": "c", "image": "x"}]})
    applied = await site.apply({FILE: pod}, vdus=[VduTarget(vdu_id="VDU1", name="one", replicas=1)])
    assert len(applied.pods) == 1
    with pytest.raises(PolicyViolated, match="hostPID"):
        await strict(site).heal(applied.pods, def_files=[FILE])


async def test_a_warning_is_shown_once_in_each_attempt(site: Any, workload: Callable[..., dict[str, Any]]) -> None:
    await site.apply({FILE: workload(**HOST)})
    [task] = [one for one in site.progress if one.task == "policy"]
    assert task.state == "finished"
    assert task.message == (
        "warning: 1 findings of cnf_policy (baseline): "
        "hostNamespaces: Deployment default/web: spec.template.spec.hostNetwork (true)"
    )


async def test_what_was_refused_once_is_refused_when_its_command_is_delivered_again(
    site: Any, lab: LabCluster, workload: Callable[..., dict[str, Any]]
) -> None:
    """By the same process: it remembers the attempts that have passed."""
    victim = strict(site)
    before = lab.inventory()["objects"]
    for _ in range(2):
        with pytest.raises(PolicyViolated, match="hostNamespaces"):
            await victim.apply({FILE: workload(**HOST)})
        assert lab.inventory()["objects"] == before


async def test_what_has_passed_is_judged_again_in_another_attempt(
    site: Any, workload: Callable[..., dict[str, Any]]
) -> None:
    for attempt, shown in ((1, 1), (1, 1), (2, 2)):
        await site.apply({FILE: workload(**HOST)}, attempt=attempt)
        assert len([one for one in site.progress if one.task == "policy"]) == shown


async def test_a_namespace_of_another_vnf_is_known(site: Any, make: Callable[..., dict[str, Any]]) -> None:
    space = make("Namespace", "cnf-a")
    await site.apply({FILE: space}, instance="i1")
    inside = make("ConfigMap", "settings", namespace="cnf-a")
    with pytest.raises(PolicyViolated, match=r"otherVnfNamespace: ConfigMap cnf-a/settings: .*VNF instance i1"):
        await strict(site).apply({FILE: inside}, instance="i2")
    await strict(site).apply({FILE: [space, inside]}, instance="i1", operation="op2")


async def test_values_of_the_request_are_not_shown(site: Any, workload: Callable[..., dict[str, Any]]) -> None:
    bad = workload(pod={"volumes": [{"name": "v", "hostPath": {"path": "/srv/${secret}"}}]})
    variables = {"secret": Secret("swordfish-11")}
    await site.apply({FILE: bad}, variables=variables)
    [task] = [one for one in site.progress if one.task == "policy"]
    assert "hostPathVolumes" in task.message
    assert "swordfish-11" not in task.message


@pytest.mark.parametrize("secret", ["swordfish-11" * 20, "sword'fi\"sh\\11", "sword\u200bfish-11-and-more"])
async def test_no_part_of_a_value_of_the_request_is_shown(
    site: Any, workload: Callable[..., dict[str, Any]], secret: str
) -> None:
    """Findings are short, and quoted: what is masked afterwards has the beginning of a long secret in clear."""
    bad = workload(pod={"securityContext": {"seccompProfile": {"type": "${secret}"}}})
    await site.apply({FILE: bad}, variables={"secret": Secret(secret)})
    [task] = [one for one in site.progress if one.task == "policy"]
    assert "seccompProfile_baseline" in task.message
    assert "***" in task.message
    assert "sword" not in task.message


def test_a_finding_reads_as_object_field_and_what_it_has() -> None:
    assert str(Finding("privileged", "Pod a/b", "spec.x", "true")) == "Pod a/b: spec.x (true)"
