"""Objects that are answered and never stored: access reviews, token reviews, token requests."""

from __future__ import annotations

from kubevnfm_lab.kubernetes.errors import invalid, not_found, wrong
from kubevnfm_lab.kubernetes.objects import Key, Obj, value_at
from kubevnfm_lab.kubernetes.rbac import Rbac, can, rules_review
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.store import Store
from kubevnfm_lab.kubernetes.tokens import ISSUER, Identity, Tokens

_SHORTEST_S = 600


class Reviews:
    """Answers reviews."""

    def __init__(self, store: Store, tokens: Tokens, rbac: Rbac) -> None:
        self._store, self._tokens, self._rbac = store, tokens, rbac

    def answers(self, resource: Resource) -> bool:
        """Return whether the resource is a review."""
        return resource.group in {"authentication.k8s.io", "authorization.k8s.io"}

    def answer(self, resource: Resource, obj: Obj, identity: Identity) -> Obj:
        """Return the review with its status; raise ApiError 422 for an access review with metadata."""
        _check_metadata(resource, obj)
        spec = obj.get("spec") or {}
        answer = {
            "TokenReview": self._token,
            "SelfSubjectReview": self._self,
            "SelfSubjectRulesReview": self._rules,
        }.get(obj["kind"], self._access)
        return {**obj, "status": answer(obj["kind"], spec, identity)}

    def _access(self, kind: str, spec: Obj, identity: Identity) -> Obj:
        if not kind.startswith("Self"):
            identity = Identity(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
        allowed = self._rbac.allows(identity, can(spec))
        return {"allowed": True} if allowed else {"allowed": False, "reason": "no RBAC rule allows it"}

    def _rules(self, kind: str, spec: Obj, identity: Identity) -> Obj:
        return rules_review(self._rbac, identity, spec.get("namespace", ""))

    def _self(self, kind: str, spec: Obj, identity: Identity) -> Obj:
        return {"userInfo": _user_info(identity)}

    def _token(self, kind: str, spec: Obj, identity: Identity) -> Obj:
        found = self._tokens.identify(spec.get("token", ""))
        if found is None:
            return {"authenticated": False, "error": "[invalid bearer token]", "user": {}}
        return {"authenticated": True, "user": _user_info(found), "audiences": spec.get("audiences") or [ISSUER]}

    def request_token(self, account: Key, obj: Obj) -> Obj:
        """Return a TokenRequest with a new token of the service account; raise ApiError 404 if there is none, 422 for its time."""
        found = self._store.get("serviceaccounts", account)
        if found is None:
            raise not_found("", "serviceaccounts", account.name)
        spec = obj.get("spec") or {}
        seconds = int(spec.get("expirationSeconds") or 3600)
        if seconds < _SHORTEST_S:
            problem = wrong("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
            raise invalid("authentication.k8s.io", "TokenRequest", "", [problem])
        token, expires = self._tokens.create_for_account(
            found, expires_in_s=seconds, audiences=spec.get("audiences") or ()
        )
        assert expires is not None
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": account.name, "namespace": account.namespace},
            "spec": {"audiences": value_at(spec, "audiences") or [ISSUER], "expirationSeconds": seconds},
            "status": {"token": token, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")},
        }


def _check_metadata(resource: Resource, obj: Obj) -> None:
    """As kube-apiserver: the metadata of an access review has at most the namespace of a local one."""
    if not obj["kind"].endswith("AccessReview"):
        return
    given = {name: value for name, value in (obj.get("metadata") or {}).items() if value}
    if resource.namespaced:
        given.pop("namespace", None)
    if given:
        why = "must be empty except for namespace" if resource.namespaced else "must be empty"
        name = str(given.get("name", ""))
        raise invalid(resource.group, obj["kind"], name, [wrong("metadata", given, why)])


def _user_info(identity: Identity) -> Obj:
    info: Obj = {"username": identity.user, "groups": list(identity.groups)}
    return {**info, "uid": identity.uid} if identity.uid else info
