"""Secrets of service accounts: filled with a token once the account exists, deleted with it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, annotations_of, key_of, value_at
from kubevnfm_lab.kubernetes.store import Change
from kubevnfm_lab.kubernetes.tokens import Tokens

_TYPE: Final = "kubernetes.io/service-account-token"
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"


class AccountSecrets:
    """Fills Secrets of type ``kubernetes.io/service-account-token``."""

    def __init__(self, plane: ControlPlane, tokens: Tokens, *, ca_pem: str) -> None:
        self._plane, self._tokens, self._ca_pem = plane, tokens, ca_pem

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {"secrets": itself, "serviceaccounts": self._secrets_of}

    def _secrets_of(self, change: Change) -> Iterable[Key]:
        return [
            key_of(secret)
            for secret in self._plane.store.list("secrets", change.key.namespace)
            if secret.get("type") == _TYPE and annotations_of(secret).get(_ACCOUNT) == change.key.name
        ]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        secret = self._plane.store.get("secrets", key)
        if secret is None or secret.get("type") != _TYPE:
            return
        account = self._plane.store.get("serviceaccounts", Key(key.namespace, annotations_of(secret)[_ACCOUNT]))
        known = annotations_of(secret).get(_UID)
        if account is None or known not in {None, account["metadata"]["uid"]}:
            self._plane.delete("secrets", secret)
            return
        if value_at(secret, "data", "token"):
            return
        token, _ = self._tokens.create_for_account(account, secret=secret)
        texts = {"token": token, "ca.crt": self._ca_pem, "namespace": key.namespace}

        def fill(obj: Obj) -> None:
            encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
            obj["metadata"]["annotations"] = {**annotations_of(obj), _UID: account["metadata"]["uid"]}

        self._plane.registry.change("secrets", key, fill)
