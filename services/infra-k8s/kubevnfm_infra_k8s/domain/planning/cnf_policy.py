"""The policy for CNFs: what their objects may ask of a cluster, by the operator's setting (docs/cnf-policy.md, capi.md CR-126).

It is judged before an object is applied. It belongs to the operator of the VNFM alone: no request, package or registration of a
VIM can change it. It does not change what the cluster itself enforces, such as Pod Security by labels of namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

from kubevnfm_events import VimConnection
from pydantic import BaseModel, ConfigDict, Field, field_validator

from kubevnfm_infra_k8s.domain.objects import Body, Wanted, field_at, labels_of
from kubevnfm_infra_k8s.domain.planning.pod_security import Level, pod_violations

Mode = Literal["warn", "strict"]
_RBAC: Final = "rbac.authorization.k8s.io"
_ENFORCE_LABEL: Final = "pod-security.kubernetes.io/enforce"
_AGGREGATE_LABEL: Final = "rbac.authorization.k8s.io/aggregate-to-"
_SYSTEM_NAMESPACES: Final = "kube-*"
"""Kubernetes reserves this prefix for namespaces of its own."""
_LONGEST: Final = 100
"""Characters of a name or value in a finding: until the API server has judged a manifest, a name has any length."""


class Rules(BaseModel):
    """The limits for what CNFs ask of a cluster. Names may contain ``*``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "warn"
    """``warn``: findings are shown in the operation's view; ``strict``: the step fails before anything is applied."""
    pod_security: Level = Level.BASELINE
    """The level of the Pod Security Standards for pods."""
    namespaces: tuple[str, ...] | None = None
    """The namespaces for objects; None: all but those of Kubernetes (``kube-*``)."""
    shared_namespaces: tuple[str, ...] = ("default",)
    """The namespaces that several VNFs may use."""
    cluster_scoped: tuple[str, ...] = ("Namespace",)
    """The kinds of cluster-scoped objects: ``ClusterRole``, or with its group ``IPPool.crd.projectcalico.org``."""
    kinds: tuple[str, ...] = ("*",)
    """The kinds of all objects, in the same form."""
    cluster_admin: bool = False
    """Whether roles may give as much power as ``cluster-admin``, and be bound."""


class Override(Rules):
    """Rules of which only those that are given count."""

    def over(self, rules: Rules) -> Rules:
        """Return the rules with those that are given here."""
        return rules.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


class Policies(Rules):
    """The policy document: the rules for all VIMs, and what differs for some."""

    vims: Mapping[str, Override] = Field(default_factory=dict)
    """By the id of a registered VIM, or the URL of its API server."""
    own_clusters: Override = Override()
    """For what packages put into the clusters that they build themselves with Cluster API (addons)."""

    @field_validator("vims")
    @classmethod
    def _name_vims(cls, given: Mapping[str, Override]) -> Mapping[str, Override]:
        servers = [_plain(name) for name in given if _is_server(name)]
        for name in given:
            if not _is_server(name) and not _is_id(name):
                raise ValueError(f"{name!r}: the id of a registered VIM, or the http(s) URL of its API server expected")
            if _is_server(name) and servers.count(_plain(name)) > 1:
                raise ValueError(f"{name!r}: another part names the same API server")
        return given

    def for_cluster(self, vim: VimConnection, endpoint: str, *, is_own: bool = False) -> Rules:
        """Return the rules for a cluster; ``endpoint``: its URL, ``is_own``: the CNF's package has built it."""
        rules: Rules = self
        if is_own:
            return self.own_clusters.over(rules)
        by_url = {_plain(name): each for name, each in self.vims.items() if "://" in name}
        found = by_url.get(_plain(endpoint))
        # A request that brings the access data itself chooses the id, too.
        if found is None and vim.vim_id is not None and vim.is_reference:
            found = self.vims.get(vim.vim_id)
        return rules if found is None else found.over(rules)


@dataclass(frozen=True)
class Finding:
    """One thing that an object asks for and the rules do not allow."""

    rule: str
    """Stable: the name of a check of Pod Security, or ``namespace``, ``otherVnfNamespace``, ``clusterScoped``, ``kind``,
    ``clusterAdmin``, ``podSecurityLabel``."""
    object: str
    field: str
    found: str
    """The content of the field, or what is wrong with it."""

    def masked(self, mask: Callable[[str], str]) -> Finding:
        """Return the finding without secrets; before its texts are cut, as a part of a secret would not be found."""
        return Finding(self.rule, mask(self.object), mask(self.field), mask(self.found))

    def __str__(self) -> str:
        return f"{_shown(self.object)}: {_shown(self.field)}" + (f" ({_shown(self.found)})" if self.found else "")


def findings(objects: Sequence[Wanted], rules: Rules, others: Mapping[str, Collection[str]]) -> Sequence[Finding]:
    """Return all findings, in the order of the objects.

    ``others``: the other VNF instances that use a namespace, by namespace.
    """
    powerful = {each.key.name for each in objects if _is(each, "ClusterRole") and any(_powers(each.body))}
    return [
        finding
        for each in objects
        for finding in (
            *_placed(each, rules, others),
            *_pods(each, rules.pod_security),
            *(() if rules.cluster_admin else _roles(each, powerful)),
        )
    ]


def namespaces_of(objects: Sequence[Wanted], rules: Rules) -> Sequence[str]:
    """Return the namespaces of the objects that only one VNF may use."""
    used = {_namespace(each) for each in objects}
    return sorted(name for name in used if name and not _matches(name, rules.shared_namespaces))


def _is_id(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def _is_server(name: str) -> bool:
    try:
        scheme, host, _, _ = _plain(name)
    except ValueError:  # a port that is no number, or too large
        return False
    return scheme in {"http", "https"} and bool(host)


def _plain(url: str) -> tuple[str, str, int, str]:
    parts = urlsplit(url.strip())
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, parts.hostname or "", port, parts.path.rstrip("/")


def _shown(text: str) -> str:
    plain = "".join(one if one.isprintable() else "?" for one in text[: _LONGEST + 1])
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}..."


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _allows_kind(patterns: Sequence[str], wanted: Wanted) -> bool:
    kind, group = wanted.key.kind, wanted.key.group
    in_full = f"{kind}.{group}" if group else kind
    # A custom resource could have the kind of a built-in one.
    names = {in_full} if wanted.key.is_custom else {in_full, kind}
    return any(_matches(name, patterns) for name in names)


def _is(wanted: Wanted, *kinds: str) -> bool:
    return wanted.key.group == _RBAC and wanted.key.kind in kinds


def _namespace(wanted: Wanted) -> str:
    """Return the namespace that an object is in or is; "" for another cluster-scoped one."""
    is_one = wanted.key.kind == "Namespace" and not wanted.key.group
    return wanted.key.name if is_one else wanted.key.namespace


def _placed(wanted: Wanted, rules: Rules, others: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Yield what is wrong about an object's kind, scope and namespace."""
    name, namespace = str(wanted.key), _namespace(wanted)
    if not _allows_kind(rules.kinds, wanted):
        yield Finding("kind", name, "kind", f"{wanted.key.kind} in {wanted.key.api_version}")
    # A review is a question to the cluster, which stores nothing of it.
    is_scoped = not wanted.resource.namespaced and wanted.resource.is_persistent
    if is_scoped and not _allows_kind(rules.cluster_scoped, wanted):
        yield Finding("clusterScoped", name, "kind", wanted.key.api_version)
    if not namespace:
        return
    field = "metadata.namespace" if wanted.key.namespace else "metadata.name"
    is_system = rules.namespaces is None and _matches(namespace, (_SYSTEM_NAMESPACES,))
    if is_system or not _matches(namespace, ("*",) if rules.namespaces is None else rules.namespaces):
        yield Finding("namespace", name, field, namespace)
    if instances := others.get(namespace):
        yield Finding("otherVnfNamespace", name, field, f"{namespace}, used by VNF instance {', '.join(instances)}")
    if not wanted.key.namespace:
        yield from _label(wanted, rules.pod_security)


def _label(namespace: Wanted, level: Level) -> Iterator[Finding]:
    """Yield the label of a namespace that has the cluster enforce a lower level than ours."""
    given = labels_of(namespace.body).get(_ENFORCE_LABEL)
    order = list(Level)
    if given in order and order.index(Level(given)) < order.index(level):
        yield Finding("podSecurityLabel", str(namespace.key), f"metadata.labels[{_ENFORCE_LABEL}]", given)


def _pods(wanted: Wanted, level: Level) -> Iterator[Finding]:
    for rule, field, found in pod_violations(wanted.key.api_version, wanted.key.kind, wanted.body, level):
        yield Finding(rule, str(wanted.key), field, found)
    if level is not Level.PRIVILEGED and wanted.key.kind == "PersistentVolume" and not wanted.key.group:
        # A claim of it gives a pod the same folder.
        for kind in ("hostPath", "local"):
            if field_at(wanted.body, "spec", kind) is not None:
                path = field_at(wanted.body, "spec", kind, "path")
                yield Finding("hostPathVolumes", str(wanted.key), f"spec.{kind}", str(path or ""))


# --- roles ------------------------------------------------------------------------------------------------------------

_READ: Final = frozenset({"get", "list", "watch"})
_ADMISSION: Final = "admissionregistration.k8s.io"
_WRITE: Final = frozenset({"create", "update", "patch"})
_ALWAYS: Final = frozenset({"impersonate", "escalate", "bind"})
"""The verbs that names do not limit: a rule for the group system:masters, or the role cluster-admin, alone gives everything."""
_POWERS: Final[Sequence[tuple[str, frozenset[str], str, str]]] = (
    ("", _READ, "secrets", "reads every Secret"),
    ("", frozenset({"create"}), "serviceaccounts/token", "makes tokens of every ServiceAccount"),
    ("", frozenset({"get", "create"}), "nodes/proxy", "runs commands in every pod"),
    ("", frozenset({"get", "create"}), "pods/exec", "runs commands in every pod"),
    ("", frozenset({"get", "create"}), "pods/attach", "runs commands in every pod"),
    ("", frozenset({"update", "patch"}), "pods/ephemeralcontainers", "runs commands in every pod"),
    ("", frozenset({"impersonate"}), "users", "acts as every user"),
    ("", frozenset({"impersonate"}), "groups", "acts as every group"),
    ("", frozenset({"impersonate"}), "serviceaccounts", "acts as every ServiceAccount"),
    (_RBAC, frozenset({"escalate", "bind"}), "clusterroles", "gives itself every right"),
    (_RBAC, frozenset({"escalate", "bind"}), "roles", "gives itself every right"),
    (_ADMISSION, _WRITE, "mutatingwebhookconfigurations", "changes every object"),
    (_ADMISSION, _WRITE, "validatingwebhookconfigurations", "reads every object that is written"),
    (
        "certificates.k8s.io",
        frozenset({"update", "patch"}),
        "certificatesigningrequests/approval",
        "makes certificates of every user",
    ),
)
"""API group, verbs (one of them is enough), resource, and the power over the whole cluster that they give.

Source: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks
"""
_ADMIN_ROLES: Final = ("cluster-admin", "system:controller:*", "system:kube-controller-manager")
"""ClusterRoles of Kubernetes itself that have such a power, also if they are bound in one namespace."""
_WIDE_ROLES: Final = ("admin", "edit", "system:aggregate-to-admin", "system:aggregate-to-edit", "system:node")
"""Those that have it if they are bound in all namespaces: they read every Secret, or start pods."""


def _powers(role: Body) -> Iterator[tuple[str, str]]:
    """Yield (path of the rule, what it allows) of each rule of a ClusterRole that is as good as ``cluster-admin``."""
    rules = role.get("rules")
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        verbs, groups, resources = (_names(rule, name) for name in ("verbs", "apiGroups", "resources"))
        if "*" in verbs and "*" in resources and "*" in groups:
            yield f"rules[{number}]", "allows everything"
            continue
        has_names = bool(field_at(rule, "resourceNames"))
        for group, any_of, resource, power in _POWERS:
            is_named = resource in resources or "*" in resources or _part_of(resource) in resources
            counted = any_of & _ALWAYS if has_names else any_of
            if is_named and (group in groups or "*" in groups) and counted and verbs & {*counted, "*"}:
                yield f"rules[{number}]", power
                break


def _part_of(resource: str) -> str:
    """Return the pattern of RBAC that includes a subresource of all resources: ``*/proxy`` for ``nodes/proxy``."""
    return f"*/{resource.partition('/')[2]}" if "/" in resource else resource


def _names(rule: Any, name: str) -> frozenset[str]:
    given = field_at(rule, name)
    return frozenset(each for each in given if isinstance(each, str)) if isinstance(given, list) else frozenset()


def _roles(wanted: Wanted, powerful: Collection[str]) -> Iterator[Finding]:
    """Yield what gives the power of ``cluster-admin``: a role, its binding, or a part of a role of Kubernetes.

    ``powerful``: names of such ClusterRoles among the objects.
    """
    name = str(wanted.key)
    if _is(wanted, "ClusterRole"):
        for field, power in _powers(wanted.body):
            yield Finding("clusterAdmin", name, field, power)
        for label in labels_of(wanted.body):
            if str(label).startswith(_AGGREGATE_LABEL):
                yield Finding("clusterAdmin", name, f"metadata.labels[{label}]", "extends a role of Kubernetes")
        if wanted.body.get("aggregationRule") is not None:
            yield Finding("clusterAdmin", name, "aggregationRule", "takes over the rules of other roles")
    if _is(wanted, "ClusterRoleBinding", "RoleBinding") and field_at(wanted.body, "roleRef", "kind") != "Role":
        role = str(field_at(wanted.body, "roleRef", "name") or "")
        roles = (*_ADMIN_ROLES, *(_WIDE_ROLES if wanted.key.kind == "ClusterRoleBinding" else ()))
        if role in powerful or _matches(role, roles):
            yield Finding("clusterAdmin", name, "roleRef", f"ClusterRole {role}")
