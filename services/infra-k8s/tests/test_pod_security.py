"""Pod Security: every example of Kubernetes' own module, in every kind that bears pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_csar.pod_templates import POD_TEMPLATES
from kubevnfm_infra_k8s.domain.planning.pod_security import OVERRIDING, POD_CHECKS, Level, pod_violations

_LINES = (Path(__file__).parent / "pod_security" / "examples-v1.34.jsonl").read_text(encoding="utf-8").splitlines()
EXAMPLES: list[dict[str, Any]] = [json.loads(line) for line in _LINES]
PASS = [one for one in EXAMPLES if one["expect"] == "pass"]
FAIL = [one for one in EXAMPLES if one["expect"] == "fail"]
ALONG = {
    "windowsHostProcess": {"hostNamespaces"},
    "privileged": {"allowPrivilegeEscalation"},
    "allowPrivilegeEscalation": {"capabilities_restricted"},
}
"""The check that an example violates in addition, because the API server would otherwise refuse the pod, or the file adds nothing else."""
WRONG = {
    "spec": {
        "hostNetwork": True,
        "containers": [{"securityContext": {"privileged": True}}],
        "volumes": [{"hostPath": {"path": "/etc"}}],
    }
}


def name(example: dict[str, Any]) -> str:
    return f"{example['level']}-{example['expect']}-{example['name']}"


def checks(pod: Any, level: str, *, kind: tuple[str, str] = ("", "Pod")) -> set[str]:
    """Return the checks that a pod fails in an object of this kind."""
    body: Any = pod
    for part in reversed(POD_TEMPLATES[kind]):
        body = {part: body}
    group, its_kind = kind
    found = pod_violations(f"{group}/v1" if group else "v1", its_kind, body, Level(level))
    return {check for check, _, _ in found}


@pytest.mark.parametrize("example", PASS, ids=name)
def test_an_example_that_passes_has_no_violation(example: dict[str, Any]) -> None:
    assert checks(example["pod"], example["level"]) == set()


@pytest.mark.parametrize("example", FAIL, ids=name)
def test_an_example_that_fails_violates_its_check_alone(example: dict[str, Any]) -> None:
    """CR-126."""
    by_file = {check.lower(): check for check in POD_CHECKS}
    check = by_file[example["name"].rstrip("0123456789")]
    expected = OVERRIDING.get(check, check) if example["level"] == "restricted" else check
    found = checks(example["pod"], example["level"])
    assert expected in found
    assert found <= {expected, *ALONG.get(check, ())}
    assert checks(example["pod"], "privileged") == set()


def test_every_check_has_an_example() -> None:
    names = {one["name"].rstrip("0123456789") for one in FAIL}
    assert names == {check.lower() for check in POD_CHECKS}


@pytest.mark.parametrize("kind", POD_TEMPLATES, ids="/".join)
def test_pods_of_every_kind_are_judged(kind: tuple[str, str]) -> None:
    assert checks(WRONG, "baseline", kind=kind) == {"hostNamespaces", "privileged", "hostPathVolumes"}


@pytest.mark.parametrize("containers", ["initContainers", "containers", "ephemeralContainers"])
def test_containers_of_every_list_are_judged_and_named(containers: str) -> None:
    pod = {"spec": {containers: [{}, {"securityContext": {"privileged": True}}]}}
    body = {"spec": {"jobTemplate": {"spec": {"template": pod}}}}
    [(check, field, found)] = pod_violations("batch/v1", "CronJob", body, Level.BASELINE)
    place = f"spec.jobTemplate.spec.template.spec.{containers}[1].securityContext.privileged"
    assert (check, field, found) == ("privileged", place, "true")


def test_pods_of_windows_are_exempt_where_the_api_server_refuses_the_field() -> None:
    linux = {"spec": {"containers": [{}], "securityContext": {"runAsNonRoot": True}}}
    windows = {"spec": {**linux["spec"], "os": {"name": "windows"}}}
    assert checks(linux, "restricted") == {
        "allowPrivilegeEscalation",
        "capabilities_restricted",
        "seccompProfile_restricted",
    }
    assert checks(windows, "restricted") == set()
    host = {"securityContext": {"windowsOptions": {"hostProcess": True}}}
    assert checks({"spec": {**windows["spec"], "containers": [host]}}, "baseline") == {"windowsHostProcess"}


def test_a_kind_of_another_group_with_the_same_name_is_none_of_kubernetes() -> None:
    body = {"spec": {"template": WRONG}}
    assert not list(pod_violations("example.com/v1", "Deployment", body, Level.RESTRICTED))


@pytest.mark.parametrize("odd", [None, 1, "text", [], [1], {"a": []}, [[]], [{"type": {}, "name": []}]], ids=repr)
def test_values_of_wrong_types_raise_nothing(odd: Any) -> None:
    """The API server refuses them."""
    fields = ("capabilities", "appArmorProfile", "seccompProfile", "seLinuxOptions", "procMount", "sysctls")
    context = dict.fromkeys((*fields, "runAsUser", "windowsOptions"), odd)
    nested = {name: {"type": odd, "add": odd, "drop": odd, "user": odd} for name in fields}
    container = {"securityContext": nested, "ports": odd, "livenessProbe": {"httpGet": odd}}
    for spec in (
        odd,
        {"securityContext": context, "containers": [odd, container, {"securityContext": odd}], "volumes": odd},
        {"securityContext": {**nested, "sysctls": odd}, "containers": odd, "os": odd, "hostNetwork": odd},
    ):
        pod = {"metadata": {"annotations": odd}, "spec": spec}
        for level in ("baseline", "restricted"):
            checks(pod, level)
