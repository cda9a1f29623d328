"""Stored secrets go to the destination that they were given for only."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_secrets import KeyRing, Secret, hide
from kubevnfm_sol.secret_destinations import moved_secret
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK, VimConnectionInfo

RING = KeyRing([bytes(32)])
PASSWORD: dict[str, Any] = {
    "vimType": OPENSTACK,
    "interfaceInfo": {"endpoint": "https://keystone.example/v3", "trustedCertificates": "CA"},
    "accessInfo": {
        "username": "nfv",
        "password": "hidden",
        "project": "nfv",
        "projectDomain": "Default",
        "region": "r",
    },
}
CREDENTIAL: dict[str, Any] = {
    **PASSWORD,
    "accessInfo": {"applicationCredentialId": "c", "application_credential_secret": "hidden"},
}
TOKEN: dict[str, Any] = {
    "vimType": KUBERNETES,
    "interfaceInfo": {"endpoint": "https://cluster.example:6443", "ssl_ca_cert": "CA"},
    "accessInfo": {"bearer_token": "hidden"},
}
CA_BESIDE: dict[str, Any] = {
    "vimType": KUBERNETES,
    "interfaceInfo": {"endpoint": "https://cluster.example:6443"},
    "accessInfo": {"bearer_token": "hidden", "ssl_ca_cert": "CA"},
}
SECRET_CA: dict[str, Any] = {**CA_BESIDE, "accessInfo": {"bearer_token": "hidden", "ssl_ca_cert": Secret("CA")}}
OIDC: dict[str, Any] = {
    **TOKEN,
    "accessInfo": {
        "oidc_token_url": "https://provider.example/token",
        "username": "u",
        "password": "hidden",
        "client_id": "c",
    },
}
CONFIDENTIAL: dict[str, Any] = {
    **TOKEN,
    "accessInfo": {"oidc_token_url": "https://provider.example/token", "client_id": "c", "client_secret": "hidden"},
}
BASIC: dict[str, Any] = {**TOKEN, "accessInfo": {"username": "u", "password": "hidden"}}
CERTIFICATE: dict[str, Any] = {**TOKEN, "accessInfo": {"client_certificate": "PEM", "client_key": "hidden"}}


def stored(body: dict[str, Any]) -> VimConnectionInfo:
    """Return the connection as it is read from the store."""
    return VimConnectionInfo.model_validate(VimConnectionInfo.model_validate(hide(body)).document(RING))


def patched(before: VimConnectionInfo, **parts: Any) -> VimConnectionInfo:
    """Return the connection after a merge patch of its parts."""
    body = before.model_dump(by_alias=True)
    for part, given in parts.items():
        body[part] = {**body[part], **hide(given)} if isinstance(given, dict) else given
    return VimConnectionInfo.model_validate(body)


MOVES: list[tuple[dict[str, Any], str, str, object, str]] = [
    (PASSWORD, "interfaceInfo", "endpoint", "https://other.example/v3", "password"),
    (PASSWORD, "interfaceInfo", "trustedCertificates", "OTHER", "password"),
    (PASSWORD, "interfaceInfo", "skipCertificateVerification", True, "password"),
    (PASSWORD, "interfaceInfo", "skipCertificateHostnameCheck", "true", "password"),
    (PASSWORD, "accessInfo", "username", "admin", "password"),
    (PASSWORD, "accessInfo", "userId", "1", "password"),
    (PASSWORD, "accessInfo", "user_domain_name", "other", "password"),
    (PASSWORD, "accessInfo", "userDomainId", "other", "password"),
    (PASSWORD, "accessInfo", "project", "admin", "password"),
    (PASSWORD, "accessInfo", "projectDomainId", "other", "password"),
    (CREDENTIAL, "interfaceInfo", "endpoint", "https://other.example", "application_credential_secret"),
    (CREDENTIAL, "accessInfo", "application_credential_id", "d", ""),
    (CREDENTIAL, "accessInfo", "applicationCredentialId", "d", "application_credential_secret"),
    (TOKEN, "interfaceInfo", "endpoint", "https://cluster.example:6444", "bearer_token"),
    (TOKEN, "interfaceInfo", "endpoint", "http://cluster.example:6443", "bearer_token"),
    (TOKEN, "interfaceInfo", "ssl_ca_cert", "None", "bearer_token"),
    (TOKEN, "interfaceInfo", "ssl_ca_cert", "system", "bearer_token"),
    (CA_BESIDE, "accessInfo", "ssl_ca_cert", "OTHER", "bearer_token"),
    (SECRET_CA, "accessInfo", "ssl_ca_cert", "OTHER", "bearer_token"),
    (TOKEN, "interfaceInfo", "skipTlsVerify", True, "bearer_token"),
    (BASIC, "accessInfo", "oidc_token_url", "https://other.example/token", "password"),
    (OIDC, "accessInfo", "oidc_token_url", "https://other.example/token", "password"),
    (OIDC, "accessInfo", "oidc_token_url", None, "password"),
    (OIDC, "accessInfo", "username", "admin", "password"),
    (OIDC, "accessInfo", "client_id", "d", "password"),
    (CONFIDENTIAL, "accessInfo", "oidc_token_url", "https://other.example/token", "client_secret"),
    (CONFIDENTIAL, "accessInfo", "client_id", "d", "client_secret"),
    (CERTIFICATE, "accessInfo", "client_certificate", "OTHER", "client_key"),
    (CERTIFICATE, "interfaceInfo", "endpoint", None, "client_key"),
]


@pytest.mark.parametrize(("body", "part", "name", "value", "secret"), MOVES)
def test_a_change_of_a_destination_moves_its_secret(
    body: dict[str, Any], part: str, name: str, value: object, secret: str
) -> None:
    before = stored(body)
    moved = moved_secret(before, patched(before, **{part: {name: value}}))
    # SOL003's spelling comes first: another spelling beside it changes nothing.
    assert (moved.place if moved else "") == (f"accessInfo/{secret}" if secret else "")
    given = {name: "hidden" for name, value in before.access_info.items() if isinstance(value, Secret)}
    again = {part: {name: value}, "accessInfo": given} if part != "accessInfo" else {part: {name: value, **given}}
    assert moved_secret(before, patched(before, **again)) is None


@pytest.mark.parametrize(
    ("body", "part", "change"),
    [
        (PASSWORD, "interfaceInfo", {"endpoint": "https://keystone.example"}),
        (PASSWORD, "interfaceInfo", {"endpoint": "https://keystone.example/v3/"}),
        (PASSWORD, "accessInfo", {"region": "other"}),
        (PASSWORD, "accessInfo", {"username": "nfv", "user_name": "admin"}),
        (PASSWORD, "extra", {"interface": "internal"}),
        (TOKEN, "interfaceInfo", {"ssl_ca_cert": "CA\\n"}),
        (TOKEN, "extra", {"namespace": "other"}),
        (SECRET_CA, "extra", {"namespace": "other"}),
        (TOKEN, "accessInfo", {"certificate_key": "new"}),
        # Attributes of other ways to log in.
        (PASSWORD, "accessInfo", {"applicationCredentialName": "c"}),
        (CREDENTIAL, "accessInfo", {"project": "other"}),
        (TOKEN, "accessInfo", {"username": "other", "client_certificate": "PEM"}),
        (BASIC, "accessInfo", {"client_certificate": "PEM"}),
        (CONFIDENTIAL, "accessInfo", {"username": "other"}),
        (CERTIFICATE, "accessInfo", {"username": "other", "client_id": "d"}),
    ],
)
def test_other_changes_keep_the_secret(body: dict[str, Any], part: str, change: dict[str, Any]) -> None:
    before = stored(body)
    assert moved_secret(before, patched(before, **{part: change})) is None


def test_another_type_and_a_secret_outside_of_the_log_in_are_judged_too() -> None:
    before = stored({**TOKEN, "extra": {"helm_info": {"masternode_password": "hidden"}}})
    moved = moved_secret(before, patched(before, vimType=OPENSTACK))
    assert moved is not None
    assert (moved.place, moved.changed) == ("accessInfo/bearer_token", "vimType")
    moved = moved_secret(
        before, patched(before, interfaceInfo={"endpoint": "https://b"}, accessInfo={"bearer_token": "n"})
    )
    assert moved is not None
    assert (moved.place, moved.changed) == ("extra/helm_info/masternode_password", "interfaceInfo/endpoint")
    assert "because interfaceInfo/endpoint changes" in moved.reason()
    assert "because vim.auth_url changes" in moved.reason("vim.auth_url")
    assert "hidden" not in moved.reason()


@pytest.mark.parametrize(
    ("body", "change", "changed"),
    [
        (PASSWORD, {"trustedCertificates": "OTHER"}, "interfaceInfo/trustedCertificates"),
        (TOKEN, {"ssl_ca_cert": "OTHER"}, "interfaceInfo/ssl_ca_cert"),
        (TOKEN, {"skipTlsVerify": True}, "interfaceInfo/ssl_ca_cert"),
    ],
)
def test_the_attribute_that_changes_is_named(body: dict[str, Any], change: dict[str, Any], changed: str) -> None:
    before = stored(body)
    moved = moved_secret(before, patched(before, interfaceInfo=change))
    assert moved is not None
    assert moved.changed == changed


def test_a_secret_in_a_list_is_found() -> None:
    before = stored({**TOKEN, "accessInfo": {}, "extra": {"hosts": [{"name": "a"}, {"password": "hidden"}]}})
    moved = moved_secret(before, patched(before, interfaceInfo={"endpoint": "https://other.example"}))
    assert moved is not None
    assert moved.place == "extra/hosts[1]/password"


@pytest.mark.parametrize("name", ["masternode_password", "bearer_token"])
def test_a_secret_outside_of_the_log_in_is_for_one_account_too(name: str) -> None:
    """Nothing says which attributes it depends on, so it is for all of them, whatever its name is."""
    before = stored({**BASIC, "extra": {name: "hidden"}})
    moved = moved_secret(before, patched(before, accessInfo={"username": "admin", "password": "that of admin"}))
    assert moved is not None
    assert (moved.place, moved.changed) == (f"extra/{name}", "accessInfo/username")
