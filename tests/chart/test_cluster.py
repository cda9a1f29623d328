"""The chart on the API server that KUBECONFIG names: schemas, admission, installation, upgrade, rollback, uninstallation."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from chart.rendering import BASE, CASES, cases, documents, helm, program, template
from chart.server_schemas import LOCATION, write_schemas
from chart.values_schema import CHART
from servers.six_processes import SERVICES

KUBECTL: Final = shutil.which("kubectl")
KUBECONFORM: Final = program("kubeconform")
CUSTOM: Final = (
    "Certificate", "HTTPRoute", "PerconaServerMongoDB", "PrometheusRule", "RabbitmqCluster", "ScaledObject", "ServiceMonitor",
)  # fmt: skip
"""Kinds that operators define; the server need not have them."""
WAIT: Final = "--timeout=180s"

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(
        KUBECTL is None or not os.environ.get("KUBECONFIG"), reason="NOT TESTED, kubectl and KUBECONFIG expected"
    ),
]


@pytest.fixture(scope="module", params=["helm", "helm4"])
def each_helm(request: pytest.FixtureRequest) -> str:
    """Helm 3, then Helm 4."""
    path = program(request.param)
    if path is None:
        pytest.skip(f"NOT TESTED, there is no {request.param}: `make test-chart` builds it")
    return path


@pytest.fixture
def restricted() -> Iterator[str]:
    """A namespace that enforces the Pod Security standard `restricted`, with the Secret of users."""
    name = f"chart-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    try:
        kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
        kubectl("--namespace", name, "create", "secret", "generic", "kubevnfm-users", "--from-literal=users.toml=")
        yield name
    finally:
        kubectl("delete", "namespace", name, "--wait=false")


def kubectl(*arguments: str, given: str | None = None) -> str:
    """Run kubectl and return its output. Raises AssertionError with its error."""
    done = subprocess.run(
        [str(KUBECTL), *arguments], input=given, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(namespace: str, kind: str) -> dict[str, dict[str, Any]]:
    """The objects of the release in the namespace, by name."""
    listed = json.loads(
        kubectl("--namespace", namespace, "get", kind, "--output=json", "--selector=app.kubernetes.io/part-of=kubevnfm")
    )
    return {each["metadata"]["name"]: each for each in listed["items"]}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The schemas of the server, in files."""
    folder = tmp_path_factory.mktemp("schemas")
    assert write_schemas(lambda path: kubectl("get", "--raw", path), folder) > 100
    return folder


@pytest.mark.skipif(KUBECONFORM is None, reason="NOT TESTED, there is no kubeconform: `make test-chart` builds it")
@pytest.mark.parametrize("case", cases())
def test_the_objects_keep_the_schemas_of_the_server(each_helm: str, case: str, schemas: Path) -> None:
    text = template(each_helm, CASES / f"{case}.yaml")
    done = conform(text, schemas)
    assert done.returncode == 0, done.stdout
    summary = json.loads(done.stdout)["summary"]
    assert summary["valid"] > 20
    assert summary["skipped"] == sum(each["kind"] in CUSTOM for each in documents(text))


@pytest.mark.skipif(KUBECONFORM is None, reason="NOT TESTED, there is no kubeconform: `make test-chart` builds it")
def test_an_attribute_that_a_kind_does_not_have_is_found(schemas: Path) -> None:
    pod = {"restartPolicy": "Never", "enableServiceLink": False, "containers": [{"name": "one", "image": "one"}]}
    done = conform(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": pod}), schemas
    )
    assert done.returncode != 0
    assert "enableServiceLink" in done.stdout


def conform(text: str, schemas: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(KUBECONFORM), "-summary", "-output", "json", "-skip", ",".join(CUSTOM), "-schema-location", f"{schemas}/{LOCATION}"],
        input=text, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("case", cases())
def test_a_restricted_namespace_admits_every_object(each_helm: str, case: str, restricted: str) -> None:
    """Admission answers a Deployment whose pods it would refuse with a warning."""
    mine = [each for each in documents(template(each_helm, CASES / f"{case}.yaml")) if each["kind"] not in CUSTOM]
    done = subprocess.run(
        [str(KUBECTL), "--namespace", restricted, "create", "--dry-run=server", "--filename=-"],
        input=yaml.safe_dump_all(in_namespace(mine, restricted)), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert len(done.stdout.splitlines()) == len(mine)


def in_namespace(given: list[dict[str, Any]], namespace: str) -> list[dict[str, Any]]:
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in given]


def test_a_restricted_namespace_refuses_pods_without_apparmor_and_helm_says_so_before(
    each_helm: str, restricted: str
) -> None:
    unconfined = ("--set", "sandbox.mode=profile", "--set", "sandbox.appArmorProfile=Unconfined")
    done = release(each_helm, "install", restricted, *unconfined)
    assert done.returncode != 0
    assert (
        f"namespace {restricted} enforces the Pod Security standard restricted, which refuses Unconfined" in done.stderr
    )
    assert not objects(restricted, "deployments")
    # The server would indeed refuse such pods.
    text = template(each_helm, CASES / f"{BASE}.yaml", *unconfined)
    mine = [each for each in documents(text) if each["kind"] == "Deployment"]
    said = subprocess.run(
        [str(KUBECTL), "create", "--dry-run=server", "--filename=-"], input=yaml.safe_dump_all(in_namespace(mine, restricted)),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "forbidden AppArmor profile" in said.stderr


def release(path: str, command: str, namespace: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return helm(
        path, command, "vnfm", str(CHART), "--namespace", namespace, "--values", str(CASES / f"{BASE}.yaml"),
        "--set", "lcmApi.persistence.size=1Gi", *arguments,
    )  # fmt: skip


def test_install_upgrade_roll_back_uninstall_and_install_again(each_helm: str, restricted: str) -> None:
    done = release(each_helm, "install", restricted, "--wait", WAIT)
    assert done.returncode == 0, done.stderr
    deployments = objects(restricted, "deployments")
    assert set(deployments) == {f"vnfm-kubevnfm-{service}" for service in SERVICES}
    assert all(each["status"]["readyReplicas"] == 1 for each in deployments.values())
    (secret,) = objects(restricted, "secrets").values()
    assert len(base64.b64decode(secret["data"]["keys"])) == 44

    # Its owner changes the key ring; an upgrade and a rollback leave that alone.
    change(restricted, {"keys": base64.b64encode(b"new,old").decode()})
    done = release(
        each_helm, "upgrade", restricted, "--wait", WAIT,
        "--set", "infraK8s.replicas=2", "--set", "vimRegistry.settings.monitor_every_s=60",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    changed = {**secret["data"], "keys": base64.b64encode(b"new,old").decode()}
    assert secret_of(restricted) == changed
    deployments = objects(restricted, "deployments")
    assert deployments["vnfm-kubevnfm-infra-k8s"]["status"]["readyReplicas"] == 2
    assert generation(deployments, "mgmt-executor") == 1, "a service was restarted whose values are the same"
    assert generation(deployments, "vim-registry") == 2

    done = helm(each_helm, "rollback", "vnfm", "1", "--namespace", restricted, "--wait", WAIT)
    assert done.returncode == 0, done.stderr
    deployments = objects(restricted, "deployments")
    assert deployments["vnfm-kubevnfm-infra-k8s"]["spec"]["replicas"] == 1
    assert secret_of(restricted) == changed

    done = helm(each_helm, "uninstall", "vnfm", "--namespace", restricted, "--wait", WAIT)
    assert done.returncode == 0, done.stderr
    assert not objects(restricted, "deployments,services,networkpolicies,poddisruptionbudgets,serviceaccounts")
    assert list(objects(restricted, "secrets")) == ["vnfm-kubevnfm-secrets"]
    assert list(objects(restricted, "persistentvolumeclaims")) == ["vnfm-kubevnfm-packages"]

    done = release(each_helm, "install", restricted, "--wait", WAIT)
    assert done.returncode == 0, done.stderr
    assert secret_of(restricted) == changed

    # A newer version needs a key more.
    change(restricted, {"token-lcm-api": None})
    done = release(each_helm, "upgrade", restricted)
    assert done.returncode != 0
    assert f"the Secret vnfm-kubevnfm-secrets in the namespace {restricted} lacks token-lcm-api" in done.stderr
    kubectl("--namespace", restricted, "delete", "secret", "vnfm-kubevnfm-secrets")
    done = release(each_helm, "upgrade", restricted)
    assert done.returncode != 0
    assert "new keys would read no secret in the database" in done.stderr


def secret_of(namespace: str) -> dict[str, str]:
    """The content of the Secret that the installation has made."""
    (found,) = objects(namespace, "secrets").values()
    return dict(found["data"])


def change(namespace: str, data: dict[str, str | None]) -> None:
    """Change keys of that Secret; None removes one."""
    kubectl(
        "--namespace", namespace, "patch", "secret", "vnfm-kubevnfm-secrets", "--type=merge", f"--patch={json.dumps({'data': data})}"
    )  # fmt: skip


def generation(deployments: dict[str, dict[str, Any]], service: str) -> int:
    found = deployments[f"vnfm-kubevnfm-{service}"]["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    return int(found)
