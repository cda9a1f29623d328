"""The objects that the chart renders, with Helm 3 and with Helm 4: as before, restricted, and only with the connections that there are."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from chart.rendering import (
    BASE,
    CASES,
    by_kind,
    cases,
    documents,
    golden_of,
    golden_path,
    helm,
    normal,
    program,
    refused,
    rendered,
)
from chart.values_schema import CHART
from kubevnfm_secrets import KeyRing
from servers.six_processes import SERVICES

HELMS: Final = {"helm": program("helm"), "helm4": program("helm4")}
FIRST: Final = next((path for path in HELMS.values() if path is not None), None)

needs_one = pytest.mark.skipif(
    FIRST is None, reason="NOT TESTED, there is no Helm: `make test-chart` builds it, or KUBEVNFM_TEST_HELM names one"
)
LEAST: Final[Mapping[str, Any]] = yaml.safe_load((CASES / f"{BASE}.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=["helm", pytest.param("helm4", marks=pytest.mark.deep)])
def each_helm(request: pytest.FixtureRequest) -> str:
    """Helm 3, then Helm 4."""
    path = HELMS[request.param]
    if path is None:
        pytest.skip(f"NOT TESTED, there is no {request.param}: `make test-chart` builds it")
    return path


@pytest.fixture(scope="module")
def every_case(each_helm: str) -> dict[str, list[dict[str, Any]]]:
    """The objects of each values file."""
    return {case: rendered(each_helm, CASES / f"{case}.yaml") for case in cases()}


@pytest.fixture(scope="module")
def plain() -> list[dict[str, Any]]:
    """The objects of the least values."""
    assert FIRST is not None
    return rendered(FIRST, CASES / f"{BASE}.yaml")


def test_each_case_renders_as_before(every_case: Mapping[str, list[dict[str, Any]]]) -> None:
    base = normal(every_case[BASE])
    assert len(every_case) >= 12
    for case, objects in every_case.items():
        assert golden_of(case, normal(objects), base) == golden_path(case).read_text(encoding="utf-8"), case
    assert {path.stem for path in golden_path(BASE).parent.iterdir()} == set(every_case)


def test_lint_finds_nothing(each_helm: str) -> None:
    done = helm(
        each_helm, "lint", "--strict", str(CHART), "--kube-version", "1.34.0", "--values", str(CASES / f"{BASE}.yaml")
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_container_is_restricted(every_case: Mapping[str, list[dict[str, Any]]]) -> None:
    for case, objects in every_case.items():
        for one in objects:
            if one["kind"] not in ("Deployment", "Job"):
                continue
            pod = one["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True, case
            assert pod["securityContext"]["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost"), case
            assert pod["automountServiceAccountToken"] is False
            assert pod["enableServiceLinks"] is False
            for container in pod["containers"]:
                context = container["securityContext"]
                assert context == {
                    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
                }  # fmt: skip
                assert container["resources"]["limits"]["memory"]
                assert container["resources"]["requests"]["memory"]


@needs_one
def test_a_name_has_a_place_in_one_service_alone(plain: list[dict[str, Any]]) -> None:
    """Keys and tokens are given to those services that need them, as docs/security.md says."""
    asked: dict[str, set[str]] = {}
    for deployment in by_kind(plain, "Deployment").values():
        component = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
        for variable in deployment["spec"]["template"]["spec"]["containers"][0]["env"]:
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference is not None:
                asked.setdefault(reference["key"], set()).add(component)
    assert asked["keys"] == set(SERVICES)
    assert asked["credentials-token"] == {"vim-registry", "credentials-receiver"}
    assert asked["callback-keys"] == {"mgmt-executor", "credentials-receiver"}
    assert asked["token-credentials-receiver"] == {"credentials-receiver"}
    assert asked["token-infra-openstack"] == {"infra-openstack"}
    assert asked["token-mgmt-executor"] == {"mgmt-executor", "lcm-api"}
    for service in SERVICES:
        assert asked[f"rabbitmq-{service}"] == asked[f"mongodb-{service}"] == {service}


@needs_one
def test_ingress_and_egress_of_the_policies_are_the_same_edges(plain: list[dict[str, Any]]) -> None:
    outgoing, incoming = set(), set()
    for policy in by_kind(plain, "NetworkPolicy").values():
        name = policy["metadata"]["labels"]["app.kubernetes.io/component"]
        for rule in policy["spec"]["egress"]:
            outgoing |= {(name, peer) for peer in components(rule.get("to", []))}
        for rule in policy["spec"]["ingress"]:
            incoming |= {(peer, name) for peer in components(rule.get("from", []))}
        is_public = name in ("lcm-api", "credentials-receiver")
        assert any("from" not in rule for rule in policy["spec"]["ingress"]) == is_public, name
        goes_out = any("ipBlock" in peer for rule in policy["spec"]["egress"] for peer in rule.get("to", []))
        assert goes_out == (name != "credentials-receiver"), name
    # Those into public services are admitted with every other address.
    assert incoming == {(source, to) for source, to in outgoing if to not in ("lcm-api", "credentials-receiver")}
    assert ("mgmt-executor", "credentials-receiver") in outgoing
    assert not [edge for edge in outgoing if edge[1] == "infra-openstack"]


def components(peers: list[dict[str, Any]]) -> set[str]:
    labels = [peer.get("podSelector", {}).get("matchLabels", {}) for peer in peers]
    return {each["app.kubernetes.io/component"] for each in labels if "app.kubernetes.io/component" in each}


@needs_one
def test_clients_are_admitted_beside_the_services() -> None:
    assert FIRST is not None
    policies = by_kind(rendered(FIRST, CASES / "ingress.yaml"), "NetworkPolicy")
    (rule,) = policies["vnfm-kubevnfm-lcm-api"]["spec"]["ingress"]
    assert components(rule["from"]) == set(SERVICES) - {"lcm-api"}
    assert {"podSelector": {"matchLabels": {"app": "nfvo"}}} in rule["from"]


@needs_one
def test_generated_secrets_are_of_the_form_that_services_read(plain: list[dict[str, Any]]) -> None:
    (secret,) = by_kind(plain, "Secret").values()
    found = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    assert len(set(found.values())) == len(found) == 4 + 3 * len(SERVICES)
    for name in ("keys", "callback-keys"):
        KeyRing.from_text(found[name])
    assert all(len(value) == 48 and value.isalnum() for name, value in found.items() if not name.endswith("keys"))
    assert secret["metadata"]["annotations"]["helm.sh/hook"] == "pre-install", "a rollback would restore an old key"


def test_an_upgrade_that_does_not_see_the_secret_is_refused(each_helm: str) -> None:
    done = helm(
        each_helm, "template", "vnfm", str(CHART), "--is-upgrade", "--kube-version", "1.34.0", "--values", str(CASES / f"{BASE}.yaml")
    )  # fmt: skip
    assert done.returncode != 0
    assert "secrets: the Secret vnfm-kubevnfm-secrets in the namespace default expected" in done.stderr


def test_wrong_values_are_refused_with_their_paths(each_helm: str) -> None:
    wrong = {
        "lcmApi": {
            "replicas": -1,
            "settings": {"page_size": 0, "pagesize": 5},
            "extraEnv": [{"name": "KUBEVNFM_X", "value": ""}],
        },
        "rabbitmq": {"port": "many"},
        "sandbox": {"mode": "maybe"},
        "tolerations": [],
    }
    said = refused(each_helm, {**LEAST, **wrong})
    for path in (
        "/lcmApi/replicas",
        "/lcmApi/settings/page_size",
        "/lcmApi/settings'",
        "/lcmApi/extraEnv/0/name",
        "/rabbitmq/port",
        "/sandbox/mode",
    ):
        assert f"'{path.rstrip(chr(39))}'" in said, path
    assert "pagesize" in said
    assert "tolerations" in said


CONTRADICTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "rabbitmq.host:": {"rabbitmq": {"host": ""}},
    "rabbitmq.operator.enabled:": {"rabbitmq": {"host": "r", "operator": {"enabled": True}}},
    "rabbitmq.users:": {"rabbitmq": {"host": "r", "users": {"enabled": True}}},
    "mongodb.hosts:": {"mongodb": {"hosts": []}},
    "mongodb.percona.enabled:": {"mongodb": {"hosts": ["m:1"], "percona": {"enabled": True}}},
    "mongodb.users.adminUrlSecret:": {"mongodb": {"hosts": ["m:1"], "users": {"enabled": True}}},
    "auth.usersSecret:": {"auth": {"usersSecret": ""}},
    "lcmApi.settings.auth_modes:": {"lcmApi": {"settings": {"auth_modes": ["none"]}}},
    "credentialsReceiver.ingress.host:": {"credentialsReceiver": {"ingress": {"enabled": True}}},
    "lcmApi.httpRoute:": {"lcmApi": {"httpRoute": {"enabled": True}}},
    "keda.prometheusAddress:": {"infraK8s": {"autoscaling": {"enabled": True}}},
    "infraK8s.autoscaling.minReplicas:": {"infraK8s": {"autoscaling": {"minReplicas": 9}}},
    "lcmApi.persistence.accessMode:": {"lcmApi": {"replicas": 2}},
}


@needs_one
def test_values_that_contradict_each_other_are_refused_with_the_path() -> None:
    """Those that do not hide one another are refused together."""
    assert FIRST is not None
    alone = {
        "rabbitmq.operator.enabled:",
        "rabbitmq.users:",
        "mongodb.percona.enabled:",
        "mongodb.users.adminUrlSecret:",
    }
    together: dict[str, Any] = dict(LEAST)
    for path, values in CONTRADICTIONS.items():
        if path not in alone:
            together = {**together, **{name: merged(together.get(name), inner) for name, inner in values.items()}}
    said = refused(FIRST, together)
    for path in CONTRADICTIONS.keys() - alone:
        assert path in said, path
    pairs = [sorted(alone)[:1] + sorted(alone)[2:3], sorted(alone)[1:2] + sorted(alone)[3:]]
    for pair in pairs:
        values = {name: inner for path in pair for name, inner in CONTRADICTIONS[path].items()}
        said = refused(FIRST, {**LEAST, **values})
        for path in pair:
            assert path in said, path


def merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{name: merged(one.get(name), inner) for name, inner in other.items()}}
    return other


def test_a_packed_chart_is_complete(each_helm: str, tmp_path: Path) -> None:
    """It has the files that are links in the repository."""
    done = helm(each_helm, "package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (packed,) = tmp_path.glob("*.tgz")
    listed = subprocess.run(
        ["tar", "tzf", packed], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert {"kubevnfm/files/rabbitmq/definitions.json", "kubevnfm/files/mongodb/users.py"} <= set(listed)
    assert not [name for name in listed if "__pycache__" in name or name.endswith("_test.yml")]
    done = helm(
        each_helm,
        "template",
        "vnfm",
        str(packed),
        "--kube-version",
        "1.34.0",
        "--values",
        str(CASES / "operators.yaml"),
    )
    assert done.returncode == 0, done.stderr
    (users,) = [each for each in documents(done.stdout) if each["kind"] == "ConfigMap"]
    assert users["data"]["definitions.json"] == (CHART / "files/rabbitmq/definitions.json").read_text(encoding="utf-8")
