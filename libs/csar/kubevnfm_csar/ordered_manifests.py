"""Reads the artifacts of an order with their variables filled in, and checks what needs no cluster (multicloud.md chapters 4, 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import Budget, YamlRefused

from kubevnfm_csar.artifact_order import ORDER, ArtifactOrder, OrderedArtifact
from kubevnfm_csar.hook_order import with_hooks
from kubevnfm_csar.hooks import helm_hook
from kubevnfm_csar.machine_bindings import removed_bindings
from kubevnfm_csar.manifest_limits import LONGEST_PROBLEM, MOST_PROBLEMS, budget_of_a_set
from kubevnfm_csar.manifest_values import RESERVED, Filling, merged
from kubevnfm_csar.order_graph import OrderedDocument, with_edges, with_objects
from kubevnfm_csar.values_schema import SchemaRefused, with_defaults


def members_of(document: object) -> Sequence[Any]:
    """Return the objects of a ``List`` or of the list of one kind (``ConfigMapList``); otherwise the document itself."""
    if not isinstance(document, Mapping):
        return [document]
    items, kind = document.get("items"), document.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return [document]
    if not isinstance(items, list):
        return [] if kind == "List" and items is None else [document]
    # The items of a kind's list have neither kind nor version of their own.
    known = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    return [{**known, **item} if isinstance(item, Mapping) else item for item in items]


def all_values(order: ArtifactOrder, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a request, over those of the order and the defaults of its schema (MC-029). Raises Unprocessable."""
    values = merged(order.values, given)
    if order.schema is None:
        return values
    try:
        return with_defaults(order.schema, values)
    except SchemaRefused as error:
        raise Unprocessable(ORDER, f"{order.schema.name}: {error}") from None


def chart_values(order: ArtifactOrder, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the order's charts: those of a request without the reserved names (MC-048). Raises Unprocessable."""
    return {name: value for name, value in all_values(order, given).items() if name not in RESERVED}


def read_artifacts(
    order: ArtifactOrder,
    texts: Sequence[tuple[str, str]],
    values: Mapping[str, Any],
    *,
    namespace: str,
    charts: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({}),
    named: set[str] | None = None,
) -> Sequence[OrderedDocument]:
    """Return the objects of the files, in their order, and then hooks.

    ``texts``: (path, content); ``namespace``: that of the instance; ``charts``: (name, content) of the templates of each chart
    that was rendered; ``named`` gets the names of all variables.
    A file that the order does not list (as one that replaces another) has the order's defaults. Raises Unprocessable for
    a file that is no YAML, for variables that cannot be filled in, for objects that the order does not allow, and for cycles.
    """
    filling, problems = Filling(all_values(order, values)), list[str]()
    found = [
        replace(each, body=filling.filled(each.body, each.place)) if each.artifact.is_filled_in else each
        for each in documents_of(order, texts)
    ]
    filling.check()
    if named is not None:
        named |= filling.named
    found += _of_charts(order, charts, problems)
    problems += _problems(found, {namespace, *order.foreign_namespaces}, namespace)
    if not problems:
        found = list(with_objects(found, order, namespace, problems))
    if not problems:
        found = list(with_hooks(found, order, namespace, problems))
    if not problems:
        hooks = [each for each in found if each.artifact.hook is not None]
        others = [each for each in found if each.artifact.hook is None]
        found = [*with_edges(others, order, namespace, problems), *hooks]
    if problems:
        first, *more = ((ORDER, problem[:LONGEST_PROBLEM]) for problem in problems[:MOST_PROBLEMS])
        raise Unprocessable(*first, *more)
    return found


def documents_of(order: ArtifactOrder, texts: Sequence[tuple[str, str]]) -> Iterator[OrderedDocument]:
    """Yield the objects of the files as they are written. Raises Unprocessable for a file that is no YAML."""
    artifacts, budget = {each.file: each for each in order.artifacts}, budget_of_a_set()
    for name, text in texts:
        yield from _documents(artifacts.get(name, OrderedArtifact(name)), text, budget)


def _of_charts(
    order: ArtifactOrder, charts: Mapping[str, Sequence[tuple[str, str]]], problems: list[str]
) -> Iterator[OrderedDocument]:
    """Yield the objects of the templates of charts."""
    artifacts, budget = {each.file: each for each in order.artifacts}, budget_of_a_set()
    for chart, templates in charts.items():
        number = 0
        for template, text in templates:
            for each in _documents(artifacts[chart], text, budget, template):
                number += 1
                body = each.body if isinstance(each.body, Mapping) else {}
                try:
                    hook = helm_hook(body)
                except ValueError as error:
                    problems.append(f"{each.place}: {error}")
                    continue
                yield replace(each, number=number, artifact=replace(each.artifact, hook=hook))


def _documents(artifact: OrderedArtifact, text: str, budget: Budget, template: str = "") -> Iterator[OrderedDocument]:
    name = template or artifact.file
    try:
        documents = read_kubernetes_yaml(text, budget)
    except YamlRefused as error:
        place = f"{name}:{error.line}:{error.column}" if error.line is not None else name
        raise Unprocessable(ORDER, f"{place}: invalid YAML: {error.problem}") from None
    number = 0
    for document in documents:
        for body in members_of(document) if document is not None else ():
            number += 1
            yield OrderedDocument(artifact, number, body, template=template)


def _problems(documents: Sequence[OrderedDocument], namespaces: set[str], namespace: str) -> Iterator[str]:
    seen: dict[tuple[str, str, str, str], str] = {}
    for each in documents:
        place = each.place
        body = each.body if isinstance(each.body, Mapping) else {}
        metadata = body.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        version, kind, name = body.get("apiVersion"), body.get("kind"), metadata.get("name")
        lacking = [
            path for path, value in (("apiVersion", version), ("kind", kind)) if not isinstance(value, str) or not value
        ]
        if lacking:
            yield f"{place}: {' and '.join(lacking)} expected in a Kubernetes manifest"
            continue
        yield from (f"{place}: {fault}" for fault in removed_bindings(body))
        own = metadata.get("namespace")
        if own is not None and own not in namespaces:
            yield f"{place}: namespace {namespace} expected, or one of the order's foreign_namespaces"
        if each.artifact.kind and each.artifact.kind.casefold() != str(kind).casefold():
            yield f"{place}: kind {each.artifact.kind} expected, which the order names"
        if not isinstance(name, str) or not name:
            # Some kinds need no name, which only the cluster knows.
            continue
        # Without the version: the API server stores one object for all versions of a group.
        same = (str(version).rpartition("/")[0], str(kind), str(own or namespace), name)
        if same in seen:
            yield f"{kind} {name}: defined in both {seen[same]} and {place}"
        seen.setdefault(same, place)
