"""Reads the order artifact of a package: what is wrong is named with its lines (multicloud.md chapter 4)."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeGuard

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import Lines, YamlRefused

from kubevnfm_csar.artifact_order import ORDER, ArtifactOrder, OrderedArtifact, OrderedObject, OrderedOutput
from kubevnfm_csar.hook_reader import MEMBERS as HOOK_MEMBERS
from kubevnfm_csar.hook_reader import read_hook
from kubevnfm_csar.object_treatment import Applying, contradictions, read_applying, read_ignored, read_keeps
from kubevnfm_csar.oci_references import OciReference
from kubevnfm_csar.order_graph import CONFLICTS, MOST_ENTRIES, is_object_entry
from kubevnfm_csar.order_members import OrderMembers
from kubevnfm_csar.outputs import MOST_OUTPUTS, read_output
from kubevnfm_csar.values_schema import SchemaRefused, ValuesSchema, read_schema, schema_path
from kubevnfm_csar.wait_reader import WaitReader

_HIGHEST: Final = 1_000_000
_CHART_FILE: Final = "Chart.yaml"
_LONGEST_WAIT_S: Final = 86_400
_MEMBERS: Final = ("artifacts", "foreign_namespaces", "objects", "outputs", "values")
_OF_OBJECT: Final = (
    "after",
    "apply",
    "conflict",
    *HOOK_MEMBERS,
    "ignore_fields",
    "keep",
    "priority",
    "timeout",
    "wait",
)
_NAMES: Final = ("group", "kind", "name", "namespace")
_OF_CHART: Final = ("after", "chart", "conflict", "priority", "timeout", "wait")
_OF_REFERENCE: Final = ("oci", "digest")
_OF_ARTIFACT: Final = (*_OF_OBJECT, "file", "substitute")


def read_order(name: str, text: str, files: Collection[str], schema: str | None = None) -> ArtifactOrder:
    """Return the content of the order artifact at the path ``name`` of a package with these files.

    ``schema``: the content of the schema beside it, if it has one. Raises Unprocessable naming all wrong places with their
    lines.
    """
    lines = Lines()
    try:
        body = read_one_kubernetes_yaml(text, lines)
    except YamlRefused as error:
        place = f"{name}:{error.line}" if error.line is not None else name
        raise Unprocessable(ORDER, f"{place}: invalid YAML: {error.problem}") from None
    reading = _Reading(name, files, lines)
    order = reading.order(body)
    problems = reading.problems()
    if problems:
        first, *more = ((ORDER, problem) for problem in problems)
        raise Unprocessable(*first, *more)
    return order if schema is None else replace(order, schema=_schema(schema_path(name), schema))


def _schema(path: str, text: str) -> ValuesSchema:
    try:
        return read_schema(path, text)
    except SchemaRefused as error:
        raise Unprocessable(ORDER, f"{path}: {error}") from None


class _Reading:
    """The reading of one order artifact."""

    def __init__(self, name: str, files: Collection[str], lines: Lines) -> None:
        self._name, self._files, self._folder = name, files, posixpath.dirname(name)
        self._members = OrderMembers(name, lines)
        self._waits = WaitReader(self._members)

    def order(self, body: object) -> ArtifactOrder:
        """Return the order; what is wrong is in `problems`."""
        artifacts: list[OrderedArtifact] = []
        values: Mapping[str, Any] = {}
        foreign: frozenset[str] = frozenset()
        objects: list[OrderedObject] = []
        outputs: list[OrderedOutput] = []
        if not isinstance(body, dict):
            self._members.wrong(None, "an object with artifacts or resources expected")
        elif "artifacts" in body and "resources" in body:
            self._members.wrong(self._members.line(body, "resources"), "artifacts or resources expected, not both")
        elif "resources" in body:
            artifacts = list(self._of_resources(body))
        else:
            self._members.check_names(body, _MEMBERS)
            artifacts = list(self._own(body))
            objects = list(self._objects(body))
            outputs = list(self._outputs(body))
            values = self._values(body)
            foreign = self._foreign(body)
        if not artifacts and not self._members.problems:
            self._members.wrong(None, "at least one artifact expected")
        self._check_twice(artifacts)
        self._check_after({each.file for each in artifacts}, [*artifacts, *(each.given for each in objects)])
        ordered = sorted(artifacts, key=lambda each: each.priority)
        return ArtifactOrder(self._name, tuple(ordered), values, foreign, tuple(objects), outputs=tuple(outputs))

    def problems(self) -> Sequence[str]:
        """Return what is wrong; expressions are compiled here."""
        self._waits.check_expressions()
        return self._members.problems

    def _own(self, body: dict[str, Any]) -> Iterator[OrderedArtifact]:
        """Yield the artifacts of the own form (MC-011)."""
        listed, line = body.get("artifacts"), self._members.line(body, "artifacts")
        if not isinstance(listed, list):
            self._members.wrong(line, "artifacts: a list expected")
            return
        for each in self._members.bounded(listed, line):
            if not isinstance(each, dict):
                self._members.wrong(line, "artifacts: objects with file or chart expected")
                continue
            if "chart" in each:
                yield from self._chart(each)
                continue
            self._members.check_names(each, _OF_ARTIFACT)
            file = self._path(each.get("file"), self._members.line(each))
            is_filled_in = self._members.flag(each, "substitute", default=True)
            artifact = replace(self._placed(each), file=file or "", is_filled_in=is_filled_in)
            if file is not None:
                yield artifact

    def _chart(self, body: dict[str, Any]) -> Iterator[OrderedArtifact]:
        """Yield a Helm chart, whose templates no variable is replaced in (MC-048)."""
        self._members.check_names(body, _OF_CHART)
        given, placed = body["chart"], self._placed(body)
        if isinstance(given, dict):
            yield from self._fetched_chart(given, placed)
            return
        found = self._found(given.rstrip("/")) or self._found(f"{given}/{_CHART_FILE}") if _is_path(given) else None
        if found is None:
            named = given[:100] if isinstance(given, str) else "another value"
            form = f"an archive of the package, a folder with {_CHART_FILE}, or oci and digest"
            self._members.wrong(self._members.line(body, "chart"), f"chart: {form}, expected, not {named}")
            return
        yield replace(placed, file=found.removesuffix(f"/{_CHART_FILE}"), is_chart=True, is_filled_in=False)

    def _fetched_chart(self, given: dict[str, Any], placed: OrderedArtifact) -> Iterator[OrderedArtifact]:
        """Yield a Helm chart that a registry has."""
        self._members.check_names(given, _OF_REFERENCE)
        place, digest = (given.get(name) for name in _OF_REFERENCE)
        if not isinstance(place, str) or not isinstance(digest, str):
            self._members.wrong(self._members.line(given), f"chart: {' and '.join(_OF_REFERENCE)} expected, as texts")
            return
        try:
            OciReference.from_text(place, digest)
        except ValueError as error:
            self._members.wrong(self._members.line(given), f"chart: {error}")
            return
        yield replace(placed, file=place, chart_digest=digest, is_chart=True, is_filled_in=False)

    def _placed(self, body: dict[str, Any]) -> OrderedArtifact:
        """Return the place in the order that the members of an artifact or object give."""
        wait, wanted = self._waits.read(body)
        applying = self._members.read(body, "apply", read_applying, Applying.SERVER_SIDE)
        for problem in contradictions(body, applying):
            self._members.wrong(self._members.line(body), problem)
        return OrderedArtifact(
            "",
            priority=self._members.whole(body, "priority", 0, _HIGHEST) or 0,
            wait=wait,
            timeout_s=self._members.whole(body, "timeout", 1, _LONGEST_WAIT_S),
            wanted=wanted,
            has_priority="priority" in body,
            after=self._after(body) if "after" in body else None,
            takes_fields=self._takes_fields(body),
            hook=read_hook(self._members, body),
            applying=applying,
            ignored=self._members.read(body, "ignore_fields", read_ignored, ()),
            keeps=self._members.read(body, "keep", read_keeps, frozenset()),
            line=self._members.line(body),
        )

    def _takes_fields(self, body: dict[str, Any]) -> bool:
        value = body.get("conflict", CONFLICTS[0])
        if value not in CONFLICTS:
            self._members.wrong(
                self._members.line(body, "conflict"), f"conflict: one of {', '.join(CONFLICTS)} expected"
            )
        return bool(value == CONFLICTS[0])

    def _objects(self, body: dict[str, Any]) -> Iterator[OrderedObject]:
        """Yield the single objects that have members of their own (MC-011)."""
        listed, line = body.get("objects", []), self._members.line(body, "objects")
        if not isinstance(listed, list):
            self._members.wrong(line, "objects: a list expected")
            return
        seen: set[str] = set()
        for each in self._members.bounded(listed, line):
            named = each.get("object") if isinstance(each, dict) else None
            if not isinstance(named, dict):
                self._members.wrong(line, "objects: objects with object expected")
                continue
            self._members.check_names(each, ("object", *_OF_OBJECT))
            self._members.check_names(named, _NAMES)
            group, namespace = (f".{named['group']}" if "group" in named else ""), named.get("namespace")
            place = f"{namespace}/" if "namespace" in named else ""
            entry = f"{named.get('kind')}{group}/{place}{named.get('name')}"
            if not all(isinstance(value, str) for value in named.values()) or not is_object_entry(entry):
                self._members.wrong(
                    self._members.line(each), "object: kind, name, and a group and namespace if it has them"
                )
                continue
            if entry in seen:
                self._members.wrong(self._members.line(each), f"object: {entry} is listed twice")
            seen.add(entry)
            members = frozenset(_OF_OBJECT) & each.keys()
            if not members:
                self._members.wrong(
                    self._members.line(each), f"object: one of {', '.join(_OF_OBJECT)} expected with it"
                )
            yield OrderedObject(entry, members, self._placed(each))

    def _outputs(self, body: dict[str, Any]) -> Iterator[OrderedOutput]:
        """Yield the values of objects that the instance shows (MC-138)."""
        given, line = body.get("outputs", {}), self._members.line(body, "outputs")
        if not isinstance(given, dict) or len(given) > MOST_OUTPUTS:
            self._members.wrong(line, f"outputs: an object with at most {MOST_OUTPUTS} members expected")
            return
        for name, each in given.items():
            at = self._members.line(given, name) or line
            wanted, faults = read_output(name, each)
            for path, reason in faults:
                self._members.wrong(at, f"outputs/{str(name)[:100]}{path}: {reason}")
            if wanted is not None:
                yield OrderedOutput(wanted, self._members.place(at))

    def _after(self, artifact: dict[str, Any]) -> tuple[str, ...]:
        """Return what an artifact comes after: paths of files in the package, and objects."""
        given, line = artifact["after"], self._members.line(artifact, "after")
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given) or len(given) > MOST_ENTRIES:
            self._members.wrong(line, f"after: a list of at most {MOST_ENTRIES} files and objects expected")
            return ()
        return tuple(self._found(each) or self._found_chart(each) or each for each in given)

    def _check_after(self, files: Collection[str], artifacts: Sequence[OrderedArtifact]) -> None:
        """Name the entries that are neither a file of the order nor have the form of an object."""
        for each in artifacts:
            for entry in each.after or ():
                if entry not in files and (entry in self._files or not is_object_entry(entry)):
                    form = "a file of the order, or Kind[.group]/[namespace/]name"
                    self._members.wrong(each.line, f"after: {form} expected, not {entry[:100]}")

    def _of_resources(self, body: dict[str, Any]) -> Iterator[OrderedArtifact]:
        """Yield the artifacts of ONAP's forms: a list of maps from kind to files, or one such map (MC-012)."""
        self._members.check_names(body, ("resources",))
        given, line = body["resources"], self._members.line(body, "resources")
        groups: list[Any] = [{kind: files} for kind, files in given.items()] if isinstance(given, dict) else given
        if not isinstance(groups, list):
            self._members.wrong(line, "resources: a list or an object expected")
            return
        for position, group in enumerate(self._members.bounded(groups, line), start=1):
            if not isinstance(group, dict):
                self._members.wrong(line, "resources: objects from kind to list of files expected")
                continue
            for kind, files in group.items():
                at = self._members.line(given if isinstance(given, dict) else group, kind) or line
                if not isinstance(files, list):
                    self._members.wrong(at, f"resources/{kind}: a list of files expected")
                    continue
                for each in self._members.bounded(files, at):
                    path = self._path(each, at)
                    if path is not None:
                        yield OrderedArtifact(path, priority=position, kind=kind)

    def _values(self, body: dict[str, Any]) -> Mapping[str, Any]:
        given = body.get("values", {})
        if not isinstance(given, dict):
            self._members.wrong(self._members.line(body, "values"), "values: an object expected")
            return {}
        return given

    def _foreign(self, body: dict[str, Any]) -> frozenset[str]:
        given = body.get("foreign_namespaces", [])
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            self._members.wrong(
                self._members.line(body, "foreign_namespaces"), "foreign_namespaces: a list of names expected"
            )
            return frozenset()
        return frozenset(given)

    def _path(self, given: object, line: int | None) -> str | None:
        """Return the path in the package of a file, which is named from the folder of the order or from the root."""
        if not isinstance(given, str) or not given:
            self._members.wrong(line, "file: a path in the package expected")
            return None
        found = self._found(given)
        if found is None:
            self._members.wrong(line, f"file: the package has no file {given}")
        return found

    def _found(self, given: str) -> str | None:
        paths = (posixpath.normpath(each) for each in (posixpath.join(self._folder, given), given))
        return next((each for each in paths if each in self._files), None)

    def _found_chart(self, given: str) -> str | None:
        """Return the path in the package of a chart that is a folder."""
        found = self._found(f"{given}/{_CHART_FILE}")
        return found.removesuffix(f"/{_CHART_FILE}") if found is not None else None

    def _check_twice(self, artifacts: Sequence[OrderedArtifact]) -> None:
        seen: set[str] = set()
        for each in artifacts:
            if each.file in seen:
                self._members.wrong(None, f"{each.file} is listed twice")
            seen.add(each.file)


def _is_path(given: object) -> TypeGuard[str]:
    return isinstance(given, str) and bool(given)
