"""Authorization: roles, bindings, and the roles that every cluster has from the start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import Key, Obj, value_at
from kubevnfm_lab.kubernetes.store import Store
from kubevnfm_lab.kubernetes.tokens import AUTHENTICATED, MASTERS, Identity

_GROUP: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Attempt:
    """One attempted action of a caller."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource: ``pods/log``."""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """For requests that concern no resource: ``/version``."""


class Rbac:
    """The authorizer: group system:masters may do everything, other callers what rules grant them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, identity: Identity, attempt: Attempt) -> bool:
        """Return whether the caller is permitted."""
        if MASTERS in identity.groups:
            return True
        return any(_grants(rule, attempt) for rule in self.rules_for(identity, attempt.namespace))

    def check(self, identity: Identity, attempt: Attempt) -> None:
        """Raise ApiError 403, worded as Kubernetes words it, if the caller is not permitted."""
        if self.allows(identity, attempt):
            return
        if attempt.path:
            message = f'forbidden: User "{identity.user}" cannot {attempt.verb} path "{attempt.path}"'
            raise ApiError(403, message, details={})
        plural = attempt.resource.partition("/")[0]
        where = f'in the namespace "{attempt.namespace}"' if attempt.namespace else "at the cluster scope"
        qualified = f"{plural}.{attempt.group}" if attempt.group else plural
        named = f'{qualified} "{attempt.name}"' if attempt.name else qualified
        message = (
            f'{named} is forbidden: User "{identity.user}" cannot {attempt.verb} resource "{attempt.resource}" in API '
            f'group "{attempt.group}" {where}'
        )
        details: Obj = {"kind": plural}
        if attempt.group:
            details["group"] = attempt.group
        if attempt.name:
            details["name"] = attempt.name
        raise ApiError(403, message, details=details)

    def rules_for(self, identity: Identity, namespace: str) -> Iterator[Mapping[str, Any]]:
        """Yield the rules that apply to the caller, cluster-wide or in the namespace."""
        for binding in self._store.list(f"clusterrolebindings.{_GROUP}"):
            if _binds(binding, identity):
                yield from self._rules(binding, "")
        if namespace:
            for binding in self._store.list(f"rolebindings.{_GROUP}", namespace):
                if _binds(binding, identity):
                    yield from self._rules(binding, namespace)

    def _rules(self, binding: Obj, namespace: str) -> Sequence[Mapping[str, Any]]:
        ref = binding["roleRef"]
        if ref.get("kind") == "ClusterRole":
            # A RoleBinding may refer to a ClusterRole too; its rules then apply in the binding's namespace only.
            role = self._store.get(f"clusterroles.{_GROUP}", Key("", ref["name"]))
        else:
            role = self._store.get(f"roles.{_GROUP}", Key(namespace, ref["name"]))
        return (role or {}).get("rules") or ()


def _binds(binding: Obj, identity: Identity) -> bool:
    for subject in binding.get("subjects") or []:
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User" and name == identity.user:
            return True
        if kind == "Group" and name in identity.groups:
            return True
        if kind == "ServiceAccount" and identity.user == f"system:serviceaccount:{subject.get('namespace')}:{name}":
            return True
    return False


def _grants(rule: Mapping[str, Any], attempt: Attempt) -> bool:
    if not _covers(rule.get("verbs"), attempt.verb):
        return False
    if attempt.path:
        return any(
            url == attempt.path or (url.endswith("*") and attempt.path.startswith(url[:-1]))
            for url in rule.get("nonResourceURLs") or ()
        )
    resources = rule.get("resources") or ()
    subresource = attempt.resource.partition("/")[2]
    if not _covers(resources, attempt.resource) and not (subresource and f"*/{subresource}" in resources):
        return False
    # A rule with names permits no create or list: such requests have no name.
    names = rule.get("resourceNames") or ()
    return _covers(rule.get("apiGroups"), attempt.group) and (not names or attempt.name in names)


def _covers(granted: Sequence[str] | None, wanted: str) -> bool:
    return "*" in (granted or ()) or wanted in (granted or ())


def can(review: Mapping[str, Any]) -> Attempt:
    """Return the attempt that the spec of an access review describes."""
    path = review.get("nonResourceAttributes")
    if path:
        return Attempt(verb=path.get("verb", ""), path=path.get("path", ""))
    about = review.get("resourceAttributes") or {}
    resource = about.get("resource", "")
    if about.get("subresource"):
        resource = f"{resource}/{about['subresource']}"
    return Attempt(
        verb=about.get("verb", ""),
        group=about.get("group", ""),
        resource=resource,
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
    )


def initial_objects() -> Iterator[Obj]:
    """Yield the roles and bindings of a new cluster."""
    read, write = ["get", "list", "watch"], ["create", "delete", "deletecollection", "patch", "update"]
    groups = ["", "apps", "autoscaling", "batch", "networking.k8s.io", "policy", "discovery.k8s.io"]
    roles: Mapping[str, list[Obj]] = {
        "cluster-admin": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
        "admin": [
            {"apiGroups": [*groups, _GROUP], "resources": ["*"], "verbs": read + write},
        ],
        "edit": [{"apiGroups": groups, "resources": ["*"], "verbs": read + write}],
        "view": [{"apiGroups": groups, "resources": ["*"], "verbs": read}],
        "system:discovery": [
            {"nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"], "verbs": ["get"]},
            {"nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"], "verbs": ["get"]},
        ],
        "system:basic-user": [
            {
                "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"],
                "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"],
                "verbs": ["create"],
            }
        ],
    }
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    for name, rules in roles.items():
        yield {"kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules}
    for role, group in (
        ("cluster-admin", MASTERS),
        ("system:discovery", AUTHENTICATED),
        ("system:basic-user", AUTHENTICATED),
    ):
        yield {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role, "labels": labels},
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": _GROUP, "kind": "Group", "name": group}],
        }


def rules_review(rbac: Rbac, identity: Identity, namespace: str) -> Obj:
    """Return the status of a SelfSubjectRulesReview."""
    rules = [dict(rule) for rule in rbac.rules_for(identity, namespace)]
    return {
        "resourceRules": [rule for rule in rules if value_at(rule, "resources")],
        "nonResourceRules": [rule for rule in rules if value_at(rule, "nonResourceURLs")],
        "incomplete": False,
    }
