"""Finds the searches that MongoDB could not answer from an index, by the commands that the driver sends.

mongo-java-server has unique indexes only and explains no plan. So the fields of each search are compared with the indexes that
were declared, by the rules of MongoDB's planner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymongo import monitoring

_EQUAL = frozenset({"$eq", "$in"})
_MISSING = {"$exists": False}
_BOUNDED = _EQUAL | {"$gt", "$gte", "$lt", "$lte", "$ne", "$type"}


@dataclass(frozen=True)
class Search:
    """The filter of a command, and the order that it needs: an answer without a limit may be sorted in memory."""

    collection: str
    filter: Mapping[str, Any]
    order: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        """The paths that it compares, and those by which its answer is sorted; without the values."""
        compared = {name for each in _alternatives([self.filter]) for name, wanted in each if wanted != _MISSING}
        order = f", sorted by {' '.join(name for name, _ in self.order)}" if self.order else ""
        return f"{self.collection} by {' '.join(sorted(compared))}{order}".replace("body.", "")


@dataclass(frozen=True)
class Declared:
    """An index: its fields, and the condition of the documents that it holds."""

    fields: tuple[str, ...]
    having: Mapping[str, Any]
    is_unique: bool

    def serves(self, conditions: Sequence[tuple[str, Any]], order: Sequence[tuple[str, int]]) -> bool:
        """Return whether the index finds the documents, and in order: equal fields first, then the order, then a range."""
        if not all((name, wanted) in conditions for name, wanted in self.having.items()):
            return False  # MongoDB reads a partial index only if the search has its condition
        rest, asked = list(self.fields), [name for name, _ in order]
        has_equal = False
        while rest and rest[0] not in asked and _is(_EQUAL, rest[0], conditions):
            has_equal = True
            rest = rest[1:]
        if asked:
            asked = [name for name in asked if not _is(_EQUAL, name, conditions)]
            # Without an equal field the index is read from where the range of its first field begins.
            return rest[: len(asked)] == asked and (has_equal or _is(_BOUNDED, self.fields[0], conditions))
        return has_equal or bool(rest and _is(_BOUNDED, rest[0], conditions))

    def sorts(self, conditions: Sequence[tuple[str, Any]], order: Sequence[tuple[str, int]]) -> bool:
        """Return whether the whole index, read in order, is the answer to a search that has no other condition."""
        return not _narrowing(conditions) and bool(order) and self.fields[0] == order[0][0] and not self.having


class IndexUse(monitoring.CommandListener):
    """Listens to the commands of a store."""

    def __init__(self) -> None:
        self._declared: defaultdict[str, list[Declared]] = defaultdict(list)
        self._sent: list[tuple[str, str, Mapping[str, Any]]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        collection, command = event.command.get(event.command_name), event.command
        if not isinstance(collection, str):
            return  # about the connection, or the next part of an answer
        # The driver hides an error of a listener, so the command is read later.
        self._sent.append((collection, event.command_name, dict(command)))
        if event.command_name == "createIndexes":
            self._declared[collection] += [
                Declared(tuple(each["key"]), each.get("partialFilterExpression") or {}, bool(each.get("unique")))
                for each in command["indexes"]
            ]

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Nothing: it was noted when it was sent."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Nothing: it was noted when it was sent."""

    @property
    def searches(self) -> list[Search]:
        """All searches, those of writes included."""
        return [search for sent in self._sent for search in _searches(*sent)]

    @property
    def unserved(self) -> list[Search]:
        """The searches that no declared index serves."""
        return [each for each in self.searches if not self._serves(each)]

    @property
    def unused(self) -> set[str]:
        """The declared indexes that are of no use to a search: to find what it wants, or to read it in order."""
        searched = [
            (search.collection, conditions, search.order[:1])
            for search in self.searches
            for conditions in _alternatives([search.filter])
            if not _is(_EQUAL, "_id", conditions)
        ]
        return {
            f"{collection} by {' '.join(index.fields)}".replace("body.", "")
            for collection, indexes in self._declared.items()
            for index in indexes
            if not index.is_unique
            and not any(
                collection == other and (index.serves(conditions, ()) or index.fields[0] in dict(order))
                for other, conditions, order in searched
            )
        }

    def _serves(self, search: Search) -> bool:
        return all(
            self._is_served(search.collection, list(conditions), search.order)
            for conditions in _alternatives([search.filter])
        )

    def _is_served(
        self, collection: str, conditions: Sequence[tuple[str, Any]], order: Sequence[tuple[str, int]]
    ) -> bool:
        if _is(_EQUAL, "_id", conditions):
            return True
        if not _narrowing(conditions) and (not order or order[0][0] == "_id"):
            return True
        return any(
            each.serves(conditions, order) or each.sorts(conditions, order) for each in self._declared[collection]
        )


def _narrowing(conditions: Sequence[tuple[str, Any]]) -> list[str]:
    """Return the fields that are compared, without the marks of documents that are left out, which are few, and a page's place."""
    return [name for name, wanted in conditions if name != "_id" and wanted != _MISSING]


def _searches(collection: str, name: str, command: Mapping[str, Any]) -> Iterator[Search]:
    match name:
        case "find":
            yield Search(
                collection, command["filter"], tuple(command.get("sort", {}).items()) if command.get("limit") else ()
            )
        case "findAndModify":
            yield Search(collection, command["query"])
        case "aggregate":  # a count
            yield Search(collection, command["pipeline"][0]["$match"])
        case "update" | "delete":
            for each in command[f"{name}s"]:
                yield Search(collection, each["q"])


def _alternatives(filters: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[tuple[str, Any]]]:
    """Yield the conditions of each alternative of a filter; each is a search of its own."""
    conditions, choices = list[tuple[str, Any]](), list[Sequence[Mapping[str, Any]]]()
    waiting = list(filters)
    while waiting:
        for name, wanted in waiting.pop().items():
            if name == "$and":
                waiting += wanted
            elif name == "$or":
                choices.append(wanted)
            else:
                conditions.append((name, wanted))
    if not choices:
        yield conditions
        return
    first, *others = choices
    plain = [{name: wanted} for name, wanted in conditions]
    for each in first:
        yield from _alternatives([*plain, each, *({"$or": other} for other in others)])


def _is(operators: frozenset[str], name: str, conditions: Sequence[tuple[str, Any]]) -> bool:
    """Return whether a condition bounds the field by one of the operators; a plain value is an equal one."""
    return any(
        field == name and (not isinstance(wanted, Mapping) or not operators.isdisjoint(wanted))
        for field, wanted in conditions
    )
