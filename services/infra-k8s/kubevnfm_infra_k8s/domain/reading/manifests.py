"""Reads manifests: YAML texts from a package or a URL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from kubevnfm_clients.multicloud.errors import ChartRefused
from kubevnfm_csar.artifact_order import ORDER, ArtifactOrder, OrderedArtifact
from kubevnfm_csar.hooks import MOST_HOOKS, Hook, helm_hook
from kubevnfm_csar.machine_bindings import removed_bindings
from kubevnfm_csar.manifest_limits import budget_of_a_set
from kubevnfm_csar.object_treatment import Applying, said_by
from kubevnfm_csar.order_graph import Place
from kubevnfm_csar.ordered_manifests import members_of, read_artifacts
from kubevnfm_csar.placeholders import VARIABLES
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import Budget, YamlRefused, YamlTooLarge

from kubevnfm_infra_k8s.domain.objects import (
    READY_WHEN_ANNOTATION,
    Body,
    ObjectKey,
    Resource,
    annotations_of,
    field_at,
    group_of,
)
from kubevnfm_infra_k8s.domain.reading.manifest_forms import fault_of
from kubevnfm_infra_k8s.domain.reading.ready_when import parse

FIELD = "additionalParams.lcm-kubernetes-def-files"


@dataclass(frozen=True)
class Manifest:
    """One document of one file."""

    file: str
    document: int
    """Its position in the file, from 1."""
    body: Body = field(repr=False, compare=False)
    artifact: OrderedArtifact | None = None
    """The place of its file in the package's order; None if the request lists the files."""
    after: frozenset[Place] | None = None
    """The objects of the order that must be ready before; None: those of lower priorities."""
    level: int | None = None
    """As in `OrderedDocument`."""
    hook: Hook | None = None
    """When it runs, if it is a hook."""
    template: str = ""
    """Chart and template that have made it; "" for an object of a file."""
    release: str = ""
    """The Helm release that it belongs to, if a request names releases."""

    @property
    def api_version(self) -> str:
        return str(self.body["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        """``metadata.name``; "" if it has none, which only a kind that is not stored allows (`check_names`)."""
        return str(field_at(self.body, "metadata", "name") or "")

    @property
    def namespace(self) -> str:
        """The manifest's own namespace; "" if it names none."""
        return str(field_at(self.body, "metadata", "namespace") or "")

    @property
    def is_read_only(self) -> bool:
        """Whether the object is never written (multicloud.md MC-106a)."""
        return self.artifact is not None and self.artifact.applying is Applying.READ_ONLY

    @property
    def written_body(self) -> Body:
        """The body; an empty one of an object that is never written, so that nothing is planned for it as a workload."""
        return {} if self.is_read_only else self.body

    @property
    def place(self) -> str:
        """File and document, for messages."""
        return f"{self.template or self.file}, document {self.document}"

    @property
    def kind_in_full(self) -> str:
        """Kind, version and file, for messages."""
        return f"{self.kind} in {self.api_version} ({self.file})"

    def key(self, namespace: str) -> ObjectKey:
        """Return the object's key in this namespace ("" for a cluster-scoped kind)."""
        return ObjectKey(self.api_version, self.kind, namespace, self.name)


def read_manifests(files: Sequence[tuple[str, str]], *, is_filled_in: bool = False) -> Sequence[Manifest]:
    """Read (name, YAML text) pairs, in order. Raises InvalidInput naming file and document.

    ``is_filled_in``: whether the texts contain values of the request, which no error shows.
    """
    budget = budget_of_a_set()
    manifests = [manifest for name, text in files for manifest in _read(name, text, budget, is_filled_in)]
    if not manifests:
        raise InvalidInput(FIELD, "no Kubernetes object in any of the files")
    seen: dict[tuple[str, str, str, str], Manifest] = {}
    for each in manifests:
        # Without the version: the API server stores one object for all versions of a group.
        same = (group_of(each.api_version), each.kind, each.namespace, each.name)
        if same in seen and each.name:
            raise InvalidInput(FIELD, f"{each.kind} {each.name}: defined in both {seen[same].file} and {each.file}")
        seen[same] = each
    return manifests


def read_ordered(
    order: ArtifactOrder,
    files: Sequence[tuple[str, str]],
    values: Mapping[str, Any],
    *,
    namespace: str,
    charts: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({}),
) -> Sequence[Manifest]:
    """Read the (name, YAML text) pairs of an order, filled in with ``values``, and those of its rendered ``charts``.

    Raises Unprocessable naming file and document.
    """
    documents = read_artifacts(order, files, values, namespace=namespace, charts=charts)
    try:
        manifests = [
            replace(
                _checked(each.artifact.file, each.number, each.body),
                artifact=each.artifact,
                after=each.after,
                level=each.level,
                hook=each.artifact.hook,
                template=each.template,
            )
            for each in documents
        ]
    except InvalidInput as error:
        raise Unprocessable(ORDER, error.reason) from error
    if not manifests:
        raise Unprocessable(ORDER, "no Kubernetes object in any of the artifacts")
    return manifests


def _read(name: str, text: str, budget: Budget, is_filled_in: bool) -> Iterator[Manifest]:
    try:
        documents = read_kubernetes_yaml(text, budget)
    except YamlRefused as error:
        place = f" in line {error.line}" if error.line is not None else ""
        if isinstance(error, YamlTooLarge):
            raise InvalidInput(FIELD, f"{name}: {error.problem}{place}") from None
        if is_filled_in:
            raise InvalidInput(VARIABLES, f"{name}: invalid YAML{place}, with the values filled in") from None
        raise InvalidInput(FIELD, f"{name}: invalid YAML: {error.problem}{place}") from error
    number = 0
    for document in documents:
        if document is None:
            continue
        for body in members_of(document):
            number += 1
            yield _checked(name, number, body)


def _checked(file: str, number: int, body: Body) -> Manifest:
    for path in (("apiVersion",), ("kind",)):
        value = field_at(body, *path)
        if not isinstance(value, str) or not value:
            raise InvalidInput(FIELD, f"{file}, document {number}: {'.'.join(path)} expected in a Kubernetes manifest")
    if fault := fault_of(body) or next(removed_bindings(body), ""):
        raise InvalidInput(FIELD, f"{file}, document {number}: {fault}")
    if field_at(body, "metadata", "ownerReferences"):
        # Its uid is one of the cluster from which the manifest was exported. Kubernetes deletes what has no owner.
        reason = "not expected, because Kubernetes deletes an object whose owner does not exist"
        raise InvalidInput(FIELD, f"{file}, document {number}: metadata.ownerReferences: {reason}")
    # Whether a name may be missing depends on the kind, so `check_names` decides when the cluster's kinds are known.
    name = field_at(body, "metadata", "name")
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidInput(FIELD, f"{file}, document {number}: metadata.name expected as a text")
    for attribute in ("name", "namespace"):
        # The API server has the same rule for a name that becomes a part of a path (IsValidPathSegmentName).
        text = field_at(body, "metadata", attribute)
        if isinstance(text, str) and (text in {".", ".."} or "/" in text or "%" in text):
            raise InvalidInput(
                FIELD, f"{file}, document {number}: metadata.{attribute}: a name without / and %, not . or .., expected"
            )
    # A wrong expression is reported now, not after the objects have been applied.
    expression = annotations_of(body).get(READY_WHEN_ANNOTATION)
    if expression is not None:
        try:
            parse(expression)
        except ValueError as error:
            raise InvalidInput(FIELD, f"{file}, document {number}: {READY_WHEN_ANNOTATION}: {error}") from error
    problems: list[str] = []
    said_by(annotations_of(body), problems)
    if problems:
        raise InvalidInput(FIELD, f"{file}, document {number}: {problems[0]}")
    return Manifest(file, number, body)


def check_names(resources: Mapping[Manifest, Resource]) -> None:
    """Raise InvalidInput for an object without a name, unless its kind is a question that the cluster does not store.

    A SubjectAccessReview has no name, and the API server refuses one that has.
    """
    for manifest, resource in resources.items():
        if resource.is_persistent and not manifest.name:
            raise InvalidInput(FIELD, f"{manifest.place}: metadata.name expected in a {manifest.kind}")


def read_charts(rendered: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> Sequence[Manifest]:
    """Read the (name, YAML text) pairs of the templates of each release, in order, and find the hooks.

    Raises: InvalidInput naming template and document, also for an object that two releases have; ChartRefused for hooks that Helm
    does not know.
    """
    several = len(rendered) > 1
    by_release = [
        (release, f"{release}: {name}" if several else name, text)
        for release, texts in rendered
        for name, text in texts
    ]
    releases = {name: release for release, name, _ in by_release}
    manifests = read_manifests([(name, text) for _, name, text in by_release])
    return _with_hooks([replace(each, release=releases[each.file]) for each in manifests])


def _with_hooks(manifests: Sequence[Manifest]) -> Sequence[Manifest]:
    found = []
    for each in manifests:
        try:
            found.append(replace(each, hook=helm_hook(each.body)))
        except ValueError as error:
            raise ChartRefused(f"{each.place}: {error}") from error
    count = sum(each.hook is not None for each in found)
    if count > MOST_HOOKS:
        raise ChartRefused(f"at most {MOST_HOOKS} hooks expected, not {count}")
    return found


def defined_kinds(manifests: Sequence[Manifest]) -> Mapping[tuple[str, str], Resource]:
    """Return the kinds that the set's CustomResourceDefinitions define, by (apiVersion, kind)."""
    kinds: dict[tuple[str, str], Resource] = {}
    for crd in manifests:
        if crd.kind != "CustomResourceDefinition":
            continue
        spec = crd.body.get("spec") or {}
        for version in spec.get("versions") or []:
            api_version = f"{spec.get('group')}/{version.get('name')}"
            kind = str(field_at(spec, "names", "kind") or "")
            kinds[api_version, kind] = Resource(
                api_version=api_version,
                kind=kind,
                plural=str(field_at(spec, "names", "plural") or ""),
                namespaced=spec.get("scope") != "Cluster",
                subresources=frozenset(version.get("subresources") or {}),
            )
    return kinds


def namespace_of_all(manifests: Sequence[Manifest], *, asked: str | None, multi: bool) -> str:
    """Return the namespace for objects that name none.

    ``manifests`` are the namespaced ones. The request's namespace takes precedence. Otherwise it is that of the
    manifests, which must agree unless ``multi``. Raises InvalidInput (capi.md CR-005, CR-006).
    """
    own = sorted({each.namespace for each in manifests if each.namespace})
    if multi:
        return asked or "default"
    if asked:
        return asked
    if len(own) > 1 or (own and any(not each.namespace for each in manifests) and own != ["default"]):
        found = ", ".join([*own, *([] if all(each.namespace for each in manifests) else ["none"])])
        raise InvalidInput(
            "additionalParams.namespace",
            f"required, because the manifests name several namespaces ({found}); or set multi_namespace to true",
        )
    return own[0] if own else "default"
