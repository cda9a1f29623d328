from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from kubevnfm_clients.kubeconfig import kubeconfig_connection, self_contained_connection
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import KeyRing, Secret

RING = KeyRing.from_text(KeyRing.new_key())


def a_pair(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> tuple[str, str]:
    """Return a certificate and its key in PEM form."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "workload")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2036, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), pem_of(key, serialization.NoEncryption())


def pem_of(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, encryption: serialization.KeySerializationEncryption
) -> str:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()


OWN = ec.generate_private_key(ec.SECP256R1())
PEM, KEY = a_pair(OWN)


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
    for certificate, key in ((PEM, KEY), a_pair(rsa.generate_private_key(65537, 2048))):
        connection = kubeconfig_connection(
            a_kubeconfig(user={"client-certificate-data": b64(certificate), "client-key-data": b64(key)})
        )
        assert connection.access_info["client_certificate"] == certificate
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


CLUSTER, USER = "kubeconfig.clusters[].cluster", "kubeconfig.users[].user"


@pytest.mark.parametrize(
    "server",
    [
        "https://10.0.0.5:6443",
        "https://10.0.0.5",
        "https://10.0.0.5:65535/",
        "https://[2001:db8::5]:6443",
        "https://api.edge_1.example.com.:443/k8s/clusters/c-m-1.x~y",
        "HTTPS://API.example.com",
    ],
)
def test_servers_of_clusters_are_accepted(server: str) -> None:
    skipped = a_kubeconfig(cluster={"server": server, "insecure-skip-tls-verify": True})
    assert kubeconfig_connection(skipped).interface_info["endpoint"] == server


@pytest.mark.parametrize(
    "server",
    [
        *(None, 6443, "", "https://", "http://10.0.0.5", "//10.0.0.5", "10.0.0.5:6443", "file:///etc/passwd"),
        *("https://10.0.0.5:0", "https://10.0.0.5:", "https://10.0.0.5:65536", "https://10.0.0.5:99999999"),
        *("https://10.0.0.5:x", "https://10.0.0.5:-1", "https://10.0.0.5:\u0664\u0664\u0663"),
        *(
            "https://10.0.0.5\r\nX-A: b",
            "https://10.0.0.5/\x00",
            "https://10.0.0.5 .example.com",
            # Signs that the parser of URLs leaves out.
            *("https://10.0\n.0.5:6443", "https://10.0.0.5:64\t43", "https://10.0.0.5\r", " https://10.0.0.5"),
            "https://ex\u00e4mple",
        ),
        *("https://me:swordfish@10.0.0.5", "https://@10.0.0.5", "https://10.0.0.5\\@evil.example"),
        *("https://10.0.0.5/../x", "https://10.0.0.5/a//b", "https://10.0.0.5/%2e%2e/x", "https://10.0.0.5/a/./b"),
        *("https://10.0.0.5?a=b", "https://10.0.0.5/?", "https://10.0.0.5#", "https://10.0.0.5/;a=b"),
        *("https://[::1", "https://[fe80::1%25eth0]", "https://[x]:1", "https://127.1", "https://0x7f000001"),
        *("https://2130706433", "https://010.0.0.1", "https://-a.example", "https://a..b", "https://.", "https://%41"),
        *(f"https://{'a' * 64}.example", f"https://{'a.' * 130}b", "https://h/" + "a" * 2048),
    ],
)
def test_a_server_that_is_no_plain_https_url_is_refused(server: object) -> None:
    with pytest.raises(Unprocessable) as refusal:
        kubeconfig_connection(a_kubeconfig(cluster={"server": server, "insecure-skip-tls-verify": True}))
    assert refusal.value.field == f"{CLUSTER}.server"
    assert "swordfish" not in str(refusal.value)


@pytest.mark.parametrize("sign", ["\r\nX-Evil: 1", "\x00", " ", "\u00e4", "\x7f", "x" * 16_384])
def test_a_token_that_no_header_can_carry_is_refused(sign: str) -> None:
    with pytest.raises(Unprocessable) as refusal:
        kubeconfig_connection(a_kubeconfig(user={"token": f"swordfish{sign}"}))
    assert refusal.value.field == f"{USER}.token"
    assert "swordfish" not in str(refusal.value)


OTHER = ec.generate_private_key(ec.SECP256R1())
NO_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nc3dvcmRmaXNo\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("certificate", "key", "name"),
    [
        (NO_CERTIFICATE, KEY, "client-certificate-data"),
        (KEY, KEY, "client-certificate-data"),
        (PEM * 400, KEY, "client-certificate-data"),
        (PEM, PEM, "client-key-data"),
        (PEM, "-----BEGIN PRIVATE KEY-----\nc3dvcmRmaXNo\n-----END PRIVATE KEY-----\n", "client-key-data"),
        (PEM, KEY + "x" * 16_384, "client-key-data"),
        (PEM, pem_of(OTHER, serialization.NoEncryption()), "client-key-data"),
        (PEM, pem_of(OWN, serialization.BestAvailableEncryption(b"swordfish")), "client-key-data"),
    ],
)
def test_a_client_certificate_and_its_key_must_be_readable_and_fit(certificate: str, key: str, name: str) -> None:
    user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    with pytest.raises(Unprocessable) as refusal:
        kubeconfig_connection(a_kubeconfig(user=user))
    assert refusal.value.field == f"{USER}.{name}"
    assert "swordfish" not in str(refusal.value)


@pytest.mark.parametrize("ca", [NO_CERTIFICATE, PEM * 400, f"{PEM}{NO_CERTIFICATE}"])
def test_a_ca_must_be_readable(ca: str) -> None:
    with pytest.raises(Unprocessable) as refusal:
        kubeconfig_connection(a_kubeconfig(cluster={"server": "https://x", "certificate-authority-data": b64(ca)}))
    assert refusal.value.field == f"{CLUSTER}.certificate-authority-data"


SERVER: Final = {"server": "https://x", "certificate-authority-data": b64(PEM)}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"user": {"token": "t", "exec": {"command": "x"}}}, f"{USER}.exec"),
        ({"user": {"token": "t", "auth-provider": {"name": "x"}}}, f"{USER}.auth-provider"),
        ({"user": {"token": "t", "client-key": "/etc/shadow"}}, f"{USER}.client-key"),
        ({"user": {"token": "t", "username": "x"}}, f"{USER}.username"),
        ({"user": {"token": "t", "as": "system:admin"}}, f"{USER}.as"),
        ({"cluster": {**SERVER, "proxy-url": "http://127.0.0.1"}}, f"{CLUSTER}.proxy-url"),
        ({"cluster": {**SERVER, "tls-server-name": "y"}}, f"{CLUSTER}.tls-server-name"),
    ],
)
def test_what_a_vim_cannot_do_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Unprocessable) as refusal:
        self_contained_connection(a_kubeconfig(**changes))
    assert refusal.value.field == field
