"""The order artifact of a package: which artifacts are applied, in which order, and what each waits for (multicloud.md chapter 4)."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import Lines, YamlRefused

from kubevnfm_csar.json_path import Path, as_text, parse_path, value_at
from kubevnfm_csar.manifest_limits import LONGEST_PROBLEM, MOST_PROBLEMS
from kubevnfm_csar.values_schema import SchemaRefused, ValuesSchema, read_schema, schema_path

ORDER: Final = "additionalParams/order_artifact"
"""The field of the request that names the order artifact."""
OWN_NAME: Final = "artifact-order.yaml"
_NAMES: Final = (OWN_NAME, "metadata.yaml")
_FOLDERS: Final = ("", "Artifacts", "Files/kubernetes")
LARGEST: Final = 2**20
"""Bytes. An order of a thousand artifacts has some 60 KiB."""
MOST_ARTIFACTS: Final = 1000
_HIGHEST: Final = 1_000_000
_LONGEST_WAIT_S: Final = 86_400
_MEMBERS: Final = ("artifacts", "foreign_namespaces", "values")
_OF_ARTIFACT: Final = ("file", "priority", "substitute", "timeout", "wait")
_ENDINGS: Final = (".yaml", ".yml", ".json")
_NOT_ARTIFACTS: Final = ("Definitions/", "TOSCA-Metadata/")


class Wait(StrEnum):
    """The condition on an artifact's objects under which the next priority starts."""

    NONE = "none"
    """The API server has accepted them."""
    EXISTS = "exists"
    """They exist and are not being deleted."""
    READY = "ready"
    PATH = "jsonpath"
    """A path of each object has a value."""


@dataclass(frozen=True)
class WantedValue:
    """The value that a path of an object must have."""

    path: Path
    written: str
    """The path as the order has it."""
    value: str | None = None
    """None: any."""

    def holds(self, body: object) -> bool:
        """Return whether an object has the value."""
        found = as_text(value_at(body, self.path))
        return found is not None and self.value in (None, found)

    def __str__(self) -> str:
        return self.written if self.value is None else f"{self.written} to be {self.value}"


_WORDS: Final = (Wait.NONE, Wait.EXISTS, Wait.READY)


@dataclass(frozen=True)
class OrderedArtifact:
    """A file of the package, and its place in the order."""

    file: str
    """Its path in the package."""
    priority: int = 0
    wait: Wait = Wait.READY
    timeout_s: int | None = None
    """How long the wait may take; None: the limit of infra-k8s."""
    is_filled_in: bool = True
    """Whether variables in it are replaced."""
    wanted: WantedValue | None = None
    """With `Wait.PATH`."""
    kind: str = ""
    """The kind that ONAP's form names for its objects; "" if none is named."""


@dataclass(frozen=True)
class ArtifactOrder:
    """The content of an order artifact."""

    name: str
    """Its path in the package."""
    artifacts: Sequence[OrderedArtifact]
    """By priority; those of one priority as they are written."""
    values: Mapping[str, Any]
    """Defaults of variables."""
    foreign_namespaces: frozenset[str]
    """The namespaces, beside that of the instance, in which objects may be."""
    schema: ValuesSchema | None = None
    """The rules for the values, and further defaults."""

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the artifacts, in order."""
        return tuple(each.file for each in self.artifacts)

    def ignored(self, files: Collection[str]) -> tuple[str, ...]:
        """Return those of the package's files that could be artifacts of this order and are not listed (MC-016)."""
        folder = posixpath.dirname(self.name)
        inside = f"{folder}/" if folder else ""
        listed = {self.name, *self.files}
        return tuple(
            sorted(
                each
                for each in files
                if each not in listed
                and each.startswith(inside)
                and each.endswith(_ENDINGS)
                and not each.startswith(_NOT_ARTIFACTS)
            )
        )


def limit_s(artifacts: Iterable[OrderedArtifact], default_s: float) -> float:
    """Return the time after which the waits of all priorities have ended; ``default_s``: of a wait without a limit of its own."""
    longest: dict[int, float] = {}
    for each in artifacts:
        limit = default_s if each.timeout_s is None else each.timeout_s
        longest[each.priority] = max(longest.get(each.priority, 0.0), limit)
    return sum(longest.values())


def order_paths(files: Collection[str]) -> list[str]:
    """Return the files of a package that have the name of an order artifact, in its folders."""
    return [path for folder in _FOLDERS for name in _NAMES if (path := posixpath.join(folder, name)) in files]


def find_order(files: Collection[str], asked: object = None) -> str | None:
    """Return the path of the package's order artifact (MC-010); None if it has none. Raises Unprocessable.

    ``asked``: the one that a request names.
    """
    if asked is not None:
        if not isinstance(asked, str) or asked not in files:
            raise Unprocessable(ORDER, "the path of a file in the package expected")
        return asked
    found = order_paths(files)
    if len(found) > 1:
        raise Unprocessable(ORDER, f"the package has several order artifacts: {', '.join(found)}; name one of them")
    return found[0] if found else None


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
    if reading.problems:
        first, *more = ((ORDER, problem) for problem in reading.problems)
        raise Unprocessable(*first, *more)
    return order if schema is None else replace(order, schema=_schema(schema_path(name), schema))


def _schema(path: str, text: str) -> ValuesSchema:
    try:
        return read_schema(path, text)
    except SchemaRefused as error:
        raise Unprocessable(ORDER, f"{path}: {error}") from None


class _Reading:
    """The reading of one order artifact: what was wrong with it so far."""

    def __init__(self, name: str, files: Collection[str], lines: Lines) -> None:
        self._name, self._files, self._lines = name, files, lines
        self._folder = posixpath.dirname(name)
        self.problems: list[str] = []

    def order(self, body: object) -> ArtifactOrder:
        """Return the order; what is wrong is in `problems`."""
        artifacts: list[OrderedArtifact] = []
        values: Mapping[str, Any] = {}
        foreign: frozenset[str] = frozenset()
        if not isinstance(body, dict):
            self._wrong(None, "an object with artifacts or resources expected")
        elif "artifacts" in body and "resources" in body:
            self._wrong(self._line(body, "resources"), "artifacts or resources expected, not both")
        elif "resources" in body:
            artifacts = list(self._of_resources(body))
        else:
            self._check_names(body, _MEMBERS)
            artifacts = list(self._own(body))
            values = self._values(body)
            foreign = self._foreign(body)
        if not artifacts and not self.problems:
            self._wrong(None, "at least one artifact expected")
        self._check_twice(artifacts)
        ordered = sorted(artifacts, key=lambda each: each.priority)
        return ArtifactOrder(self._name, tuple(ordered), values, foreign)

    def _own(self, body: dict[str, Any]) -> Iterator[OrderedArtifact]:
        """Yield the artifacts of the own form (MC-011)."""
        listed, line = body.get("artifacts"), self._line(body, "artifacts")
        if not isinstance(listed, list):
            self._wrong(line, "artifacts: a list expected")
            return
        for each in self._bounded(listed, line):
            if not isinstance(each, dict):
                self._wrong(line, "artifacts: objects with file expected")
                continue
            self._check_names(each, _OF_ARTIFACT)
            file = self._path(each.get("file"), self._line(each))
            wanted = self._wanted(each) if isinstance(each.get("wait"), dict) else None
            wait = Wait.PATH if wanted is not None else self._word(each)
            artifact = OrderedArtifact(
                file or "",
                priority=self._whole(each, "priority", 0, _HIGHEST) or 0,
                wait=wait,
                timeout_s=self._whole(each, "timeout", 1, _LONGEST_WAIT_S),
                is_filled_in=self._flag(each, "substitute", default=True),
                wanted=wanted,
            )
            if file is not None:
                yield artifact

    def _of_resources(self, body: dict[str, Any]) -> Iterator[OrderedArtifact]:
        """Yield the artifacts of ONAP's forms: a list of maps from kind to files, or one such map (MC-012)."""
        self._check_names(body, ("resources",))
        given, line = body["resources"], self._line(body, "resources")
        groups: list[Any] = [{kind: files} for kind, files in given.items()] if isinstance(given, dict) else given
        if not isinstance(groups, list):
            self._wrong(line, "resources: a list or an object expected")
            return
        for position, group in enumerate(self._bounded(groups, line), start=1):
            if not isinstance(group, dict):
                self._wrong(line, "resources: objects from kind to list of files expected")
                continue
            for kind, files in group.items():
                at = self._line(given if isinstance(given, dict) else group, kind) or line
                if not isinstance(files, list):
                    self._wrong(at, f"resources/{kind}: a list of files expected")
                    continue
                for each in self._bounded(files, at):
                    path = self._path(each, at)
                    if path is not None:
                        yield OrderedArtifact(path, priority=position, kind=kind)

    def _values(self, body: dict[str, Any]) -> Mapping[str, Any]:
        given = body.get("values", {})
        if not isinstance(given, dict):
            self._wrong(self._line(body, "values"), "values: an object expected")
            return {}
        return given

    def _foreign(self, body: dict[str, Any]) -> frozenset[str]:
        given = body.get("foreign_namespaces", [])
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            self._wrong(self._line(body, "foreign_namespaces"), "foreign_namespaces: a list of names expected")
            return frozenset()
        return frozenset(given)

    def _path(self, given: object, line: int | None) -> str | None:
        """Return the path in the package of a file, which is named from the folder of the order or from the root."""
        if not isinstance(given, str) or not given:
            self._wrong(line, "file: a path in the package expected")
            return None
        for path in (posixpath.join(self._folder, given), given):
            if posixpath.normpath(path) in self._files:
                return posixpath.normpath(path)
        self._wrong(line, f"file: the package has no file {given}")
        return None

    def _check_twice(self, artifacts: Sequence[OrderedArtifact]) -> None:
        seen: set[str] = set()
        for each in artifacts:
            if each.file in seen:
                self._wrong(None, f"{each.file} is listed twice")
            seen.add(each.file)

    def _check_names(self, body: dict[str, Any], known: Sequence[str]) -> None:
        for name in body:
            if name not in known:
                self._wrong(self._line(body, name), f"{name}: no such member; {', '.join(known)} expected")

    def _word(self, artifact: dict[str, Any]) -> Wait:
        """Return a wait that is a word."""
        value = artifact.get("wait", Wait.READY.value)
        if isinstance(value, dict):
            return Wait.READY
        if not isinstance(value, str) or value not in _WORDS:
            named = ", ".join(_WORDS)
            self._wrong(self._line(artifact, "wait"), f"wait: one of {named}, or an object with jsonpath expected")
            return Wait.READY
        return Wait(value)

    def _wanted(self, artifact: dict[str, Any]) -> WantedValue | None:
        """Return the value of a wait that is an object."""
        given, line = artifact["wait"], self._line(artifact["wait"]) or self._line(artifact, "wait")
        self._check_names(given, ("jsonpath", "value"))
        path, value = given.get("jsonpath"), given.get("value")
        if not isinstance(path, str):
            self._wrong(line, "wait/jsonpath: a path such as {.status.phase} expected")
            return None
        if isinstance(value, dict | list):
            self._wrong(line, "wait/value: a text, a number, true or false expected")
            return None
        try:
            return WantedValue(tuple(parse_path(path)), path, as_text(value))
        except ValueError as error:
            self._wrong(line, f"wait/jsonpath: {error}")
            return None

    def _whole(self, body: dict[str, Any], name: str, least: int, most: int) -> int | None:
        if name not in body:
            return None
        value = body[name]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._wrong(self._line(body, name), f"{name}: a whole number from {least} to {most} expected")
            return None
        return value

    def _flag(self, body: dict[str, Any], name: str, *, default: bool) -> bool:
        value = body.get(name, default)
        if not isinstance(value, bool):
            self._wrong(self._line(body, name), f"{name}: true or false expected")
            return default
        return value

    def _bounded(self, listed: list[Any], line: int | None) -> list[Any]:
        if len(listed) > MOST_ARTIFACTS:
            self._wrong(line, f"at most {MOST_ARTIFACTS} artifacts expected")
        return listed[:MOST_ARTIFACTS]

    def _line(self, body: dict[str, Any], name: str | None = None) -> int | None:
        return self._lines.line_of(body, name)

    def _wrong(self, line: int | None, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            place = f"{self._name}:{line}" if line is not None else self._name
            self.problems.append(f"{place}: {problem}"[:LONGEST_PROBLEM])
