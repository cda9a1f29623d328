"""The order among the hooks of a package: annotations, predecessors and cycles (multicloud.md MC-141)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from kubevnfm_csar.artifact_order import ArtifactOrder, OrderedArtifact
from kubevnfm_csar.hooks import HOOK_ANNOTATION, MOST_HOOKS, OF_ORDERS, Point, a_hook
from kubevnfm_csar.object_treatment import Applying
from kubevnfm_csar.order_graph import (
    Names,
    OrderedDocument,
    Place,
    annotation_of,
    entries_of,
    members_of_cycle,
)


def with_hooks(
    documents: Sequence[OrderedDocument], order: ArtifactOrder, namespace: str, problems: list[str]
) -> Sequence[OrderedDocument]:
    """Return the documents with the hooks that annotations name, and the predecessors of hooks.

    Hooks come after hooks of their points alone, and other objects after objects that are no hooks. Wrong places are added
    to ``problems``.
    """
    documents = [_with_annotation(each, problems) for each in documents]
    count = sum(each.artifact.hook is not None for each in documents)
    if not count:
        return documents
    if count > MOST_HOOKS:
        problems.append(f"hook: at most {MOST_HOOKS} objects expected, not {count}")
        return documents
    problems += [
        f"{each.place}: apply, ignore_fields and keep not expected for a hook"
        for each in documents
        if each.artifact.hook is not None and _is_treated(each.artifact)
    ]
    names = Names(documents, order, namespace)
    by_file: dict[str, list[OrderedDocument]] = {}
    for each in documents:
        by_file.setdefault(each.artifact.file, []).append(each)
    found = [_after(each, order, names, by_file, problems) for each in documents]
    graph = {each.position: each.after or () for each in found if each.artifact.hook is not None}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        named: Mapping[Hashable, OrderedDocument] = {each.position: each for each in found}
        problems.append(f"after: a cycle: {' after '.join(members_of_cycle(error.args[1], named))}")
    return found


def _with_annotation(document: OrderedDocument, problems: list[str]) -> OrderedDocument:
    said = annotation_of(document.body, HOOK_ANNOTATION)
    if said is None:
        return document
    if said not in OF_ORDERS:
        problems.append(f"{document.place}: {HOOK_ANNOTATION}: one of {', '.join(OF_ORDERS)} expected")
        return document
    return replace(document, artifact=replace(document.artifact, hook=a_hook(Point(said))))


def _after(
    document: OrderedDocument,
    order: ArtifactOrder,
    names: Names,
    by_file: Mapping[str, Sequence[OrderedDocument]],
    problems: list[str],
) -> OrderedDocument:
    said = entries_of(document, order)
    if said is None:
        return document
    where, entries = said
    places: set[Place] = set()
    for entry in entries:
        named = list(_documents(names.places(entry), by_file))
        # A file can have both; an object comes after those of its own sort.
        named = [each for each in named if _is_hook(each) == _is_hook(document)] or named
        if (named or names.are_all_known) and (fault := _fault(document, entry, named)):
            problems.append(f"{where}: {fault}")
        places.update(each.position for each in named)
    # Those of other objects are found later, with their levels.
    return document if document.artifact.hook is None else replace(document, after=frozenset(places))


def _documents(
    places: Collection[Place], by_file: Mapping[str, Sequence[OrderedDocument]]
) -> Iterator[OrderedDocument]:
    for file, number in places:
        for each in by_file.get(file, ()):
            if number in (0, each.number):
                yield each


def _fault(document: OrderedDocument, entry: str, named: Sequence[OrderedDocument]) -> str:
    hook = document.artifact.hook
    if hook is None:
        return (
            f"{entry} is a hook, which runs before or after all objects"
            if any(_is_hook(each) for each in named)
            else ""
        )
    if not named:
        return f"the order has no hook {entry}"
    if not all(_is_hook(each) for each in named):
        return f"{entry} is no hook, and a hook comes after hooks alone"
    if any(each.artifact.hook is not None and each.artifact.hook.at != hook.at for each in named):
        return f"{entry} runs at another point"
    return ""


def _is_treated(artifact: OrderedArtifact) -> bool:
    return artifact.applying is not Applying.SERVER_SIDE or bool(artifact.ignored or artifact.keeps)


def _is_hook(document: OrderedDocument) -> bool:
    return document.artifact.hook is not None
