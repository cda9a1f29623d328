"""The content of site files: their entries, each with its place in a file, and the references between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple

from kubevnfm_cli.faults import USAGE, Fault
from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.yaml_reader import Path, YamlDocument

NOUNS: Final[Mapping[str, str]] = {
    "vims": "vim",
    "regions": "region",
    "packages": "package",
    "instances": "vnf",
    "links": "link",
    "volumes": "volume",
    "subscriptions": "subscription",
}
"""The sections of a site, and the noun for one entry."""
_MOST_SHOWN: Final = 20


class Key(NamedTuple):
    """Names an entry of a site."""

    section: str
    name: str

    def __str__(self) -> str:
        return f"{NOUNS.get(self.section, self.section)}/{self.name}"


@dataclass(frozen=True)
class Source:
    """A document of a file."""

    file: str
    """As it was given, for messages."""
    folder: FilePath
    """Paths in the document are relative to it."""
    document: YamlDocument

    def place(self, path: Path) -> str:
        """Return file, line and column of a value."""
        line, column = self.document.place_of(path)
        return f"{self.file}:{line}:{column}"


@dataclass(frozen=True)
class Entry:
    """One VIM, package, instance ... of a site."""

    key: Key
    body: Mapping[str, Any]
    source: Source = field(repr=False)

    @property
    def name(self) -> str:
        """The name."""
        return self.key.name

    def place(self, *path: str | int) -> str:
        """Return file, line and column of a part of the entry."""
        return self.source.place((self.key.section, self.key.name, *path))


@dataclass(frozen=True)
class Site:
    """All entries, in the order of the files."""

    name: str
    entries: Mapping[Key, Entry]

    def needs(self) -> dict[Key, frozenset[Key]]:
        """Return for each entry those that must exist before it."""
        return {
            key: frozenset(found for _, found in references(entry, self.entries)) for key, entry in self.entries.items()
        }


class SiteRefused(Fault):
    """The files cannot be applied as they are; each line names file, line and column."""

    code = USAGE

    def __init__(self, lines: Sequence[str]) -> None:
        more = len(lines) - _MOST_SHOWN
        shown = [*lines[:_MOST_SHOWN], *([f"... and {more} more"] if more > 0 else [])]
        super().__init__("\n".join(shown))
        self.lines = list(lines)


class _Reference(NamedTuple):
    """An attribute that names an entry."""

    attribute: str
    section: str
    may_be_outside: bool = False
    """Whether the name may be that of something that is in no file."""


_REFERENCES: Final[Mapping[str, Sequence[_Reference]]] = {
    "instances": (
        _Reference("package", "packages"),
        _Reference("vim", "vims", may_be_outside=True),
        _Reference("region", "regions"),
        _Reference("vimOf", "instances"),
        _Reference("after", "instances"),
    ),
    **dict.fromkeys(
        ("links", "volumes"),
        (_Reference("region", "regions", may_be_outside=True), _Reference("vimOf", "instances")),
    ),
}
MARK: Final = "kubevnfm_site"
"""The attribute with the name of the site, in a thing that the site has made."""
LABEL: Final = "kubevnfm-site"
"""The label with the name of the site."""
_RESERVED: Final = (("extra", MARK), ("userDefinedData", MARK), ("metadata", MARK), ("labels", LABEL))
"""The containers that have a mark, and its name there."""
_VIMS: Final = ("vim", "region", "vimOf")
"""The attributes that name the VIM of an instance, a link or a volume."""


def references(entry: Entry, entries: Mapping[Key, Entry]) -> Iterator[tuple[Path, Key]]:
    """Yield the entries that an entry refers to, and where; names of what is outside of the files are left out."""
    for reference in _REFERENCES.get(entry.key.section, ()):
        for path, name in _named(entry, reference.attribute):
            key = Key(reference.section, name)
            if key in entries or not reference.may_be_outside:
                yield path, key


def _named(entry: Entry, attribute: str) -> Iterator[tuple[Path, str]]:
    value = entry.body.get(attribute)
    if isinstance(value, str):
        yield (attribute,), value
    elif isinstance(value, list):
        yield from (((attribute, index), name) for index, name in enumerate(value))


def checked(name: str, entries: Mapping[Key, Entry]) -> Site:
    """Return a site whose references are all known, and run in no circle. Raises SiteRefused."""
    lines = [line for entry in entries.values() for line in _wrong_references(entry, entries)]
    if lines:
        raise SiteRefused(lines)
    site = Site(name, entries)
    circle = circle_of(site.needs())
    if circle is not None:
        way = " needs ".join(map(str, circle))
        raise SiteRefused([f"{entries[circle[0]].place()}: {way}: nothing of this can be the first"])
    return site


def _wrong_references(entry: Entry, entries: Mapping[Key, Entry]) -> Iterator[str]:
    for container, mark in _RESERVED:
        if mark in entry.body.get(container, {}):
            yield f"{entry.place(container, mark)}: {mark} is the mark of the site: another name expected"
    for path, key in references(entry, entries):
        if key not in entries:
            known = [other.name for other in entries if other.section == key.section]
            yield f"{entry.place(*path)}: {key.name} is not one of the {key.section} of the site{did_you_mean(key.name, known)}"
    if entry.key.section == "subscriptions":
        known = [other.name for other in entries if other.section == "instances"]
        for index, name in enumerate(entry.body.get("instances", ())):
            if name not in known:
                place = entry.place("instances", index)
                yield f"{place}: {name} is not one of the instances of the site{did_you_mean(name, known)}"
    given = [each for each in _VIMS if each in entry.body]
    if len(given) > 1:
        yield f"{entry.place(given[1])}: only one of {', '.join(given)} expected"
    if entry.key.section in ("links", "volumes"):
        region = entry.body.get("region", "/")
        if not given:
            yield f"{entry.place()}: region or vimOf is missing"
        elif Key("regions", region) not in entries and region.count("/") != 1:
            known = [other.name for other in entries if other.section == "regions"]
            yield f"{entry.place('region')}: a region of the site, or an id <owner>/<region> expected{did_you_mean(region, known)}"


def circle_of(needs: Mapping[Key, frozenset[Key]]) -> list[Key] | None:
    """Return entries each of which needs the next one, the first one at the end again; None if there is no circle."""
    done: set[Key] = set()
    for start in needs:
        way: list[Key] = []
        ahead = [iter([start])]
        while ahead:
            key = next(ahead[-1], None)
            if key is None:
                ahead.pop()
                if way:
                    done.add(way.pop())
            elif key in way:
                return [*way[way.index(key) :], key]
            elif key not in done:
                way.append(key)
                ahead.append(iter(sorted(needs.get(key, ()))))
    return None
