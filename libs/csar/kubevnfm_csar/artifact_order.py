"""The order artifact of a package: which artifacts are applied, in which order, and what each waits for (multicloud.md chapter 4)."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubevnfm_events.outputs import WantedOutput
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_csar.hooks import Hook
from kubevnfm_csar.object_treatment import Applying, FieldPath, Keep
from kubevnfm_csar.values_schema import ValuesSchema, schema_path
from kubevnfm_csar.waits import Wait, WantedResult, WantedValue

ORDER: Final = "additionalParams/order_artifact"
"""The field of the request that names the order artifact."""
OWN_NAME: Final = "artifact-order.yaml"
_NAMES: Final = (OWN_NAME, "metadata.yaml")
_FOLDERS: Final = ("", "Artifacts", "Files/kubernetes")
LARGEST: Final = 2**20
"""Bytes. An order of a thousand artifacts has some 60 KiB."""
_ENDINGS: Final = (".yaml", ".yml", ".json")
_NOT_ARTIFACTS: Final = ("Definitions/", "TOSCA-Metadata/")


@dataclass(frozen=True)
class OrderedArtifact:
    """A file of the package, and its place in the order."""

    file: str
    """Its path in the package; of a chart in a registry, its place (``oci://..``)."""
    priority: int = 0
    has_priority: bool = False
    """Whether the order gives it one. Without one no later priority waits for an artifact with ``after``."""
    after: tuple[str, ...] | None = None
    """The files of the package, and objects, that must be ready before it starts; None: those of lower priorities."""
    takes_fields: bool = True
    """Whether a field of another manager is taken; otherwise it is a conflict."""
    line: int | None = field(default=None, compare=False)
    """In the order."""
    wait: Wait = Wait.READY
    timeout_s: int | None = None
    """How long the wait may take; None: the limit of infra-k8s."""
    is_filled_in: bool = True
    """Whether variables in it are replaced."""
    wanted: WantedValue | WantedResult | None = None
    """With `Wait.PATH` and `Wait.EXPRESSION`."""
    applying: Applying = Applying.SERVER_SIDE
    ignored: tuple[FieldPath, ...] = ()
    """The fields that are left out of every apply after the object exists."""
    keeps: frozenset[Keep] = frozenset()
    """The deletions that leave the objects."""
    kind: str = ""
    """The kind that ONAP's form names for its objects; "" if none is named."""
    hook: Hook | None = None
    """When its objects run, if they are hooks (MC-141)."""
    is_chart: bool = False
    """Whether it is a Helm chart: a folder with ``Chart.yaml``, or an archive (MC-048)."""
    chart_digest: str = ""
    """The digest of the manifest of a chart in a registry; "" of all else."""


_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "after": ("after", "line"),
    "apply": ("applying",),
    "conflict": ("takes_fields",),
    "hook": ("hook",),
    "hook_delete": ("hook",),
    "on": ("hook",),
    "ignore_fields": ("ignored",),
    "keep": ("keeps",),
    "priority": ("priority", "has_priority"),
    "timeout": ("timeout_s",),
    "wait": ("wait", "wanted"),
}
"""The fields of an artifact that each member of a single object replaces."""


@dataclass(frozen=True)
class OrderedObject:
    """A single object of the files, and its members that take the place of those of its file."""

    entry: str
    """``Kind[.group]/[namespace/]name``."""
    members: frozenset[str]
    given: OrderedArtifact
    """Their values."""

    def in_place_of(self, artifact: OrderedArtifact) -> OrderedArtifact:
        """Return the place of the object in the order; ``artifact``: that of its file."""
        names = [name for member in self.members for name in _FIELDS[member]]
        placed = replace(artifact, **{name: getattr(self.given, name) for name in names})
        if placed.hook is None or "priority" not in self.members:
            return placed
        # The weight of a hook of Helm would count before it.
        return replace(placed, hook=replace(placed.hook, weight=None))

    @property
    def for_limits(self) -> OrderedArtifact:
        """The object as `limit_s` counts it: with the start of its own, unless its members say when it starts."""
        return self.given if self.members & {"after", "priority"} else replace(self.given, after=(self.entry,))


@dataclass(frozen=True)
class OrderedOutput:
    """An output that the order names."""

    wanted: WantedOutput
    place: str
    """The file and line, for errors."""


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
    objects: Sequence[OrderedObject] = ()
    """The single objects that have members of their own."""
    schema: ValuesSchema | None = None
    """The rules for the values, and further defaults."""
    outputs: Sequence[OrderedOutput] = ()
    """The values of objects that the instance shows."""

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the manifests, in order."""
        return tuple(each.file for each in self.artifacts if not each.is_chart)

    @property
    def charts(self) -> tuple[str, ...]:
        """The paths of the Helm charts, and the places of those in registries, in order."""
        return tuple(each.file for each in self.artifacts if each.is_chart)

    @property
    def chart_contents(self) -> tuple[str, ...]:
        """The path of each Helm chart, with the digest of one in a registry: together with the package they name its content."""
        named = ((each.file, each.chart_digest) for each in self.artifacts if each.is_chart)
        return tuple(f"{file}@{digest}" if digest else file for file, digest in named)

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of all artifacts."""
        return tuple(each.file for each in self.artifacts)

    def ignored(self, files: Collection[str]) -> tuple[str, ...]:
        """Return those of the package's files that could be artifacts of this order and are not listed (MC-016)."""
        folder = posixpath.dirname(self.name)
        inside = f"{folder}/" if folder else ""
        # The schema is not applied, but every request is checked against it.
        listed = {self.name, schema_path(self.name), *self.names}
        charts = tuple(f"{each}/" for each in self.charts)
        return tuple(
            sorted(
                each
                for each in files
                if each not in listed
                and each.startswith(inside)
                and each.endswith(_ENDINGS)
                and not each.startswith((*_NOT_ARTIFACTS, *charts))
            )
        )


def limit_s(artifacts: Iterable[OrderedArtifact], default_s: float) -> float:
    """Return the time after which the waits of all artifacts have ended; ``default_s``: of a wait without a limit of its own.

    Artifacts with the same ``after`` start at the same time, and each hook by itself. Annotations of single objects add nothing.
    """
    longest: dict[int | str | tuple[str, ...], float] = {}
    for each in artifacts:
        limit = default_s if each.timeout_s is None else each.timeout_s
        start: int | str | tuple[str, ...] = each.priority if each.after is None else each.after
        if each.hook is not None:
            start = f"hook {each.file or each.line}"
        longest[start] = max(longest.get(start, 0.0), limit)
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
