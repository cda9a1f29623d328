"""The graph of an order: which objects must be ready before an object starts (multicloud.md MC-013, MC-014)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from kubevnfm_csar.artifact_order import ArtifactOrder, OrderedArtifact
from kubevnfm_csar.hooks import HOOK_ANNOTATION
from kubevnfm_csar.object_treatment import Applying, said_by

AFTER_ANNOTATION: Final = "kubevnfm.io/after"
CONFLICT_ANNOTATION: Final = "kubevnfm.io/conflict"
CONFLICTS: Final = ("force", "abort")
"""The values of ``conflict``: whether an apply takes a field of another manager, or fails (MC-106b)."""
MOST_ENTRIES: Final = 100
"""The most entries of one ``after``."""
MOST_STARTS: Final = 1000
"""The most different sets of predecessors of an order: infra-k8s stores its position before and after each."""
_OBJECT: Final = re.compile(
    r"([A-Z][A-Za-z0-9]{0,62})((?:\.[a-z0-9-]{1,63}){0,8})/(?:([a-z0-9-]{1,63})/)?([^/\s]{1,253})"
)

Place = tuple[str, int]
"""A file and the position of an object in it, from 1; 0 stands for all objects of the file."""


@dataclass(frozen=True)
class OrderedDocument:
    """One object of an artifact."""

    artifact: OrderedArtifact
    number: int
    """Its position in the file, from 1."""
    body: Any = field(repr=False)
    """The object; `read_artifacts` fills in its variables."""
    after: frozenset[Place] | None = None
    """The objects that must be ready before; None: those of lower priorities."""
    level: int | None = None
    """How many objects come before it at most, in a row; None if no object of the order names its predecessors."""
    template: str = ""
    """Chart and template that have made it; "" for an object of a file."""

    @property
    def position(self) -> Place:
        return self.artifact.file, self.number

    @property
    def place(self) -> str:
        """File and document, for messages."""
        return f"{self.template or self.artifact.file}, document {self.number}"

    @property
    def written_body(self) -> Any:
        """The object; an empty one in the place of an object that is never written, so that no rule for workloads finds it."""
        return {} if self.artifact.applying is Applying.READ_ONLY else self.body

    @property
    def counts(self) -> bool:
        """Whether later priorities wait for it."""
        return self.after is None or self.artifact.has_priority


def is_object_entry(entry: str) -> bool:
    """Return whether an entry of ``after`` has the form of an object: ``Kind[.group]/[namespace/]name``."""
    return _OBJECT.fullmatch(entry) is not None


def with_objects(
    documents: Sequence[OrderedDocument], order: ArtifactOrder, namespace: str, problems: list[str]
) -> Sequence[OrderedDocument]:
    """Return the documents with what the order and their annotations say of single objects.

    Wrong places are added to ``problems``.
    """
    documents = [_with_annotations(each, problems) for each in documents]
    if not order.objects:
        return documents
    names = Names(documents, order, namespace)
    found = {each.position: each for each in documents}
    seen: set[Place] = set()
    for each in order.objects:
        where = f"{order.name}:{each.given.line}: object"
        positions = names.objects(each.entry)
        if not positions and names.are_all_known:
            problems.append(f"{where}: the order has no object {each.entry}")
        for position in positions:
            document = found[position]
            if position in seen:
                problems.append(f"{where}: {each.entry} names an object that another entry has")
            for member, annotation in (("after", AFTER_ANNOTATION), ("hook", HOOK_ANNOTATION)):
                if member in each.members and annotation_of(document.body, annotation) is not None:
                    problems.append(f"{where}: {member} not expected beside {annotation} of {document.place}")
            seen.add(position)
            found[position] = replace(document, artifact=each.in_place_of(document.artifact))
    return list(found.values())


def _with_annotations(document: OrderedDocument, problems: list[str]) -> OrderedDocument:
    wrong: list[str] = []
    artifact, annotations = document.artifact, _annotations(document.body)
    conflict = annotations.get(CONFLICT_ANNOTATION)
    if conflict is not None:
        if conflict not in CONFLICTS:
            wrong.append(f"{CONFLICT_ANNOTATION}: one of {', '.join(CONFLICTS)} expected")
        artifact = replace(artifact, takes_fields=conflict == CONFLICTS[0])
    said = said_by(annotations, wrong)
    problems += [f"{document.place}: {each}" for each in wrong]
    return replace(
        document,
        artifact=replace(
            artifact,
            applying=artifact.applying if said.applying is None else said.applying,
            ignored=artifact.ignored if said.ignored is None else said.ignored,
            keeps=artifact.keeps if said.keeps is None else said.keeps,
        ),
    )


def with_edges(
    documents: Sequence[OrderedDocument], order: ArtifactOrder, namespace: str, problems: list[str]
) -> Sequence[OrderedDocument]:
    """Return the documents with their predecessors and levels; what is wrong is added to ``problems``.

    ``namespace``: that of the instance.
    """
    if not any(
        each.artifact.after is not None or annotation_of(each.body, AFTER_ANNOTATION) is not None for each in documents
    ):
        return documents
    names = Names(documents, order, namespace)
    found = []
    for each in documents:
        said = entries_of(each, order)
        if said is None:
            found.append(each)
            continue
        where, entries = said
        if len(entries) > MOST_ENTRIES:
            problems.append(f"{where}: at most {MOST_ENTRIES} entries expected")
            entries = entries[:MOST_ENTRIES]
        places: set[Place] = set()
        for entry in entries:
            named = names.places(entry)
            if not named and names.are_all_known:
                problems.append(f"{where}: the order has no file and no object {entry}")
            places.update(named)
        found.append(replace(each, after=frozenset(places)))
    if len({each.after for each in found} - {None}) > MOST_STARTS:
        problems.append(f"after: at most {MOST_STARTS} different sets of predecessors expected")
    return found if problems else _levelled(found, problems)


def entries_of(document: OrderedDocument, order: ArtifactOrder) -> tuple[str, Sequence[str]] | None:
    """Return what an object comes after, and the place that says so; None if nothing does."""
    said, artifact = annotation_of(document.body, AFTER_ANNOTATION), document.artifact
    if said is not None:
        entries = [entry.strip() for entry in said.split(",") if entry.strip()]
        return f"{document.place}: {AFTER_ANNOTATION}", entries
    if artifact.after is None:
        return None
    return f"{order.name}:{artifact.line}: after" if artifact.line else f"{order.name}: after", artifact.after


class Names:
    """The entries that name something of an order."""

    def __init__(self, documents: Sequence[OrderedDocument], order: ArtifactOrder, namespace: str) -> None:
        # A file that has no objects, or that another one has replaced, is ready.
        self._files = {*order.names, *(each.artifact.file for each in documents)}
        self._objects: dict[tuple[str, str, str], list[tuple[str, Place]]] = {}
        """The groups and places of the objects, by kind, namespace and name."""
        self._folder, self._namespace = posixpath.dirname(order.name), namespace
        rendered = {each.artifact.file for each in documents}
        self.are_all_known = rendered.issuperset(order.charts)
        """Whether each chart of the order was rendered. Where it was not, an entry may name an object of it."""
        for each in documents:
            body = each.body if isinstance(each.body, Mapping) else {}
            metadata = body.get("metadata")
            metadata = metadata if isinstance(metadata, Mapping) else {}
            key = str(body.get("kind")), str(metadata.get("namespace") or namespace), str(metadata.get("name"))
            group = str(body.get("apiVersion")).rpartition("/")[0]
            self._objects.setdefault(key, []).append((group, each.position))

    def places(self, entry: str) -> Collection[Place]:
        """Return what an entry names; nothing if the order does not have it."""
        for path in (posixpath.join(self._folder, entry), entry):
            if path in self._files:
                return [(path, 0)]
        return self.objects(entry)

    def objects(self, entry: str) -> Collection[Place]:
        """Return the objects that an entry names; nothing if the order does not have it."""
        parts = _OBJECT.fullmatch(entry)
        if parts is None:
            return []
        kind, group, namespace, name = parts.groups()
        known = self._objects.get((kind, namespace or self._namespace, name), ())
        return [place for own, place in known if not group or own == group[1:]]


def _levelled(documents: Sequence[OrderedDocument], problems: list[str]) -> Sequence[OrderedDocument]:
    """Return the documents with their levels; a cycle is added to ``problems``."""
    graph: dict[Hashable, list[Hashable]] = {}
    chain = sorted({each.artifact.priority for each in documents if each.after is None})
    counted = sorted((each for each in documents if each.counts), key=lambda each: each.artifact.priority)
    done = 0
    for position, priority in enumerate(chain):
        before: list[Hashable] = [chain[position - 1]] if position else []
        while done < len(counted) and counted[done].artifact.priority < priority:
            before.append(counted[done].position)
            done += 1
        graph[priority] = before
    for each in documents:
        graph[each.position] = [each.artifact.priority] if each.after is None else list(each.after)
        graph.setdefault((each.artifact.file, 0), []).append(each.position)
    levels: dict[Hashable, int] = {}
    try:
        for node in TopologicalSorter(graph).static_order():
            is_object = isinstance(node, tuple) and node[1] > 0
            levels[node] = max((levels[each] for each in graph.get(node, ())), default=0) + is_object
    except CycleError as error:
        named: Mapping[Hashable, OrderedDocument] = {each.position: each for each in documents}
        problems.append(f"after: a cycle: {' after '.join(members_of_cycle(error.args[1], named))}")
        return documents
    return [replace(each, level=levels[each.position]) for each in documents]


def members_of_cycle(cycle: Sequence[Hashable], named: Mapping[Hashable, OrderedDocument]) -> Iterator[str]:
    """Yield the names of the nodes of a cycle, each before the one that it comes after: objects, files and priorities."""
    for node in reversed(cycle):
        document = named.get(node)
        if document is not None:
            metadata = document.body.get("metadata")
            name = metadata.get("name") if isinstance(metadata, Mapping) else None
            yield f"{document.body.get('kind')}/{name} of {document.artifact.file}"
        else:
            yield str(node[0]) if isinstance(node, tuple) else f"priority {node}"


def _annotations(body: object) -> Mapping[str, object]:
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def annotation_of(body: object, name: str) -> str | None:
    said = _annotations(body).get(name)
    return said if isinstance(said, str) else None
