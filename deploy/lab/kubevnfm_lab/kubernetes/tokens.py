"""Authentication: bearer tokens and client certificates, and issuing service account and bootstrap tokens.

Service account tokens look like real ones (a signed JWT with the usual claims), for clients that decode them; the
server itself keeps a record of each token that it issued.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from kubevnfm_lab.kubernetes.errors import unauthorized
from kubevnfm_lab.kubernetes.objects import Key, Obj, value_at
from kubevnfm_lab.kubernetes.store import Store

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"


@dataclass(frozen=True)
class Identity:
    """A caller."""

    user: str
    groups: Sequence[str] = ()
    uid: str = ""


@dataclass(frozen=True)
class _Grant:
    """The subject of a service account token."""

    account: Key
    account_uid: str
    expires: datetime | None = None
    secret: Key | None = None
    """The Secret that holds the token; deleting it invalidates the token."""


class Tokens:
    """All credentials of one cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._grants: dict[str, _Grant] = {}
        self._users: dict[str, Identity] = {}

    def create_for_user(self, user: str, *, groups: Sequence[str]) -> str:
        """Return a token of a user that is valid as long as the cluster runs."""
        token = secrets.token_urlsafe(32)
        self._users[token] = Identity(user, (*groups, AUTHENTICATED))
        return token

    def create_for_account(
        self,
        account: Obj,
        *,
        expires_in_s: float | None = None,
        audiences: Sequence[str] = (),
        secret: Obj | None = None,
    ) -> tuple[str, datetime | None]:
        """Return (token, expiry) for a service account, valid for a time or for the life of a Secret."""
        metadata, moment = account["metadata"], datetime.now(UTC)
        expires = moment + timedelta(seconds=expires_in_s) if expires_in_s is not None else None
        subject = f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}"
        about: Obj = {
            "namespace": metadata["namespace"],
            "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
        }
        claims: Obj = {
            "iss": ISSUER,
            "sub": subject,
            "iat": int(moment.timestamp()),
            "jti": secrets.token_hex(8),
            "kubernetes.io": about,
        }
        if expires is not None:
            # A Secret's token has neither audience nor expiry: it is the legacy form, valid while the Secret exists.
            claims |= {"aud": list(audiences) or [ISSUER], "exp": int(expires.timestamp()), "nbf": claims["iat"]}
        held_by = None
        if secret is not None:
            held_by = Key(secret["metadata"]["namespace"], secret["metadata"]["name"])
            about["secret"] = {"name": held_by.name, "uid": secret["metadata"]["uid"]}
        token = self._signed(claims)
        place = Key(metadata["namespace"], metadata["name"])
        self._grants[token] = _Grant(place, metadata["uid"], expires, held_by)
        return token, expires

    def _signed(self, claims: Mapping[str, Any]) -> str:
        def part(value: bytes) -> str:
            return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

        head = part(json.dumps({"alg": "ES256", "kid": "lab"}).encode())
        body = part(json.dumps(claims, separators=(",", ":")).encode())
        signature = self._key.sign(f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
        # A JWS carries the two numbers side by side (RFC 7518, 3.4), the library returns them in DER.
        r, s = utils.decode_dss_signature(signature)
        return f"{head}.{body}.{part(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def identify(self, token: str) -> Identity | None:
        """Return the caller that a token identifies, None if it is unknown, expired or its account is gone."""
        if token in self._users:
            return self._users[token]
        grant = self._grants.get(token)
        if grant is None:
            return None
        account = self._store.get("serviceaccounts", grant.account)
        # A new account of the same name does not inherit the tokens of the deleted one.
        if account is None or account["metadata"]["uid"] != grant.account_uid:
            return None
        if grant.expires is not None and grant.expires <= datetime.now(UTC):
            return None
        if grant.secret is not None and self._store.get("secrets", grant.secret) is None:
            return None
        namespace, name = grant.account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        return Identity(f"system:serviceaccount:{namespace}:{name}", groups, grant.account_uid)

    def authenticate(self, authorization: str, certificate: Mapping[str, Any] | None) -> Identity | None:
        """Return the caller of a request, None if it has no credential; raise ApiError 401 for a wrong one."""
        if authorization:
            scheme, _, token = authorization.partition(" ")
            identity = self.identify(token.strip()) if scheme.lower() == "bearer" else None
            if identity is None:
                raise unauthorized()
            return identity
        if not certificate:
            return None
        # Kubernetes takes the user from the common name of a client certificate and the groups from its organizations.
        subject = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
        user = next((value for name, value in subject if name == "commonName"), "")
        groups = [value for name, value in subject if name == "organizationName"]
        return Identity(user, (*groups, AUTHENTICATED))


def bootstrap_secret(token: str, *, ttl_s: float) -> Obj:
    """Return the Secret that stores a bootstrap token in kube-system."""
    token_id, _, token_secret = token.partition(".")
    expires = datetime.now(UTC) + timedelta(seconds=ttl_s)
    texts = {
        "token-id": token_id,
        "token-secret": token_secret,
        "expiration": expires.isoformat(),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{token_id}", "namespace": "kube-system"},
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()},
    }


def bootstrap_secret_holds(secret: Obj | None, token: str) -> bool:
    """Return whether the Secret belongs to this token and has not expired."""
    texts = {name: base64.b64decode(text).decode() for name, text in (value_at(secret, "data") or {}).items()}
    if f"{texts.get('token-id')}.{texts.get('token-secret')}" != token:
        return False
    return datetime.fromisoformat(texts["expiration"]) > datetime.now(UTC)
