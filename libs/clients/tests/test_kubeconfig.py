from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from kubevnfm_clients.kubeconfig import kubeconfig_connection
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import KeyRing, Secret

RING = KeyRing.from_text(KeyRing.new_key())
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def a_kubeconfig(*, cluster: Mapping[str, Any] | None = None, user: Mapping[str, Any] | None = None) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin@workload",
            "contexts": [
                {"name": "other", "context": {"cluster": "other", "user": "other"}},
                {"name": "admin@workload", "context": {"cluster": "workload", "user": "admin"}},
            ],
            "clusters": [
                {"name": "other", "cluster": {"server": "https://other:6443"}},
                {
                    "name": "workload",
                    "cluster": cluster or {"server": "https://10.0.0.5:6443", "certificate-authority-data": b64(PEM)},
                },
            ],
            "users": [{"name": "admin", "user": user or {"token": "swordfish"}}],
        }
    )


def test_the_current_contexts_cluster_and_token_are_taken() -> None:
    connection = kubeconfig_connection(a_kubeconfig())
    assert connection.vim_type == "ETSINFV.KUBERNETES.V_1"
    assert connection.interface_info == {"endpoint": "https://10.0.0.5:6443", "ssl_ca_cert": PEM}
    token = connection.access_info["bearer_token"]
    assert isinstance(token, Secret)
    assert token.reveal(RING) == "swordfish"
    assert "swordfish" not in repr(connection)


def test_a_cluster_without_a_ca_says_that_it_is_not_verified() -> None:
    """CR-007."""
    server = {"server": "https://10.0.0.5:6443"}
    skipped = kubeconfig_connection(a_kubeconfig(cluster={**server, "insecure-skip-tls-verify": True}))
    assert skipped.interface_info["ssl_ca_cert"] == "None"
    with pytest.raises(Unprocessable) as refusal:
        kubeconfig_connection(a_kubeconfig(cluster=server))
    assert refusal.value.field == "kubeconfig.clusters[].cluster.certificate-authority-data"


def test_a_client_certificate_is_taken_and_its_key_hidden() -> None:
    key = PEM.replace("CERTIFICATE", "PRIVATE KEY")
    connection = kubeconfig_connection(
        a_kubeconfig(user={"client-certificate-data": b64(PEM), "client-key-data": b64(key)})
    )
    assert connection.access_info["client_certificate"] == PEM
    assert connection.access_info["client_key"].reveal(RING) == key


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("a: [", "kubeconfig"),
        ("- a", "kubeconfig"),
        ("current-context: x", "kubeconfig.contexts"),
        (a_kubeconfig(user={"exec": {"command": "rm"}}), "kubeconfig.users[].user.exec"),
        (a_kubeconfig(user={"tokenFile": "/etc/shadow"}), "kubeconfig.users[].user.tokenFile"),
        (a_kubeconfig(user={"username": "x"}), "kubeconfig.users[].user"),
        (a_kubeconfig(cluster={"server": "http://10.0.0.5"}), "kubeconfig.clusters[].cluster.server"),
        (
            a_kubeconfig(cluster={"server": "https://x", "certificate-authority": "/etc/ca"}),
            "kubeconfig.clusters[].cluster.certificate-authority",
        ),
        (
            a_kubeconfig(cluster={"server": "https://x", "certificate-authority-data": "swordfish"}),
            "kubeconfig.clusters[].cluster.certificate-authority-data",
        ),
    ],
)
def test_a_kubeconfig_that_does_not_work_elsewhere_is_refused_by_place(text: str, field: str) -> None:
    with pytest.raises(Unprocessable) as refusal:
        kubeconfig_connection(text)
    assert refusal.value.field == field
    assert "swordfish" not in str(refusal.value)
