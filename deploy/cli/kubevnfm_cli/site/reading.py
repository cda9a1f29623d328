"""Reads site files: YAML with limits, the schema, names that are given once, values from outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import BinaryIO, Final

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.site.model import NOUNS, Entry, Key, Site, SiteRefused, Source, checked
from kubevnfm_cli.site.schema import problems, site_schema
from kubevnfm_cli.site.secrets import ValueMissing, with_values
from kubevnfm_cli.yaml_reader import LARGEST, YamlRefused, read_yaml

STDIN: Final = "-"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_MOST_FILES: Final = 1000
_OF_REMOVALS: Final = frozenset({"termination"})
"""The attributes of entries that a removal sends."""


def read_site(
    names: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: BinaryIO | None = None,
    needs_values: bool = True,
) -> Site:
    """Return the site of files, folders and ``-`` for standard input.

    ``needs_values``: if not, only those that a removal sends are read; others stay as they are written. Raises UsageFault, SiteRefused.
    """
    sources = [source for name in names for source in _sources(name, stdin or sys.stdin.buffer)]
    if not sources:
        raise UsageFault(f"{', '.join(names)}: no document of a site in there")
    schema = site_schema()
    lines = [
        f"{source.place(path)}: {problem}"
        for source in sources
        for path, problem in problems(source.document.value, schema, schema)
    ]
    if lines:
        raise SiteRefused(lines)
    first = sources[0]
    site_name: str = first.document.value["site"]
    lines = [
        f"{source.place(('site',))}: site {source.document.value['site']}, but {first.place(('site',))} has {site_name}"
        for source in sources
        if source.document.value["site"] != site_name
    ]
    entries: dict[Key, Entry] = {}
    for entry in (entry for source in sources for entry in _entries(source)):
        if entry.key in entries:
            lines.append(f"{entry.place()}: {entry.key} is given twice, first at {entries[entry.key].place()}")
        entries.setdefault(entry.key, entry)
    if lines:
        raise SiteRefused(lines)
    site = checked(site_name, entries)
    return _with_values(site, environment, only=None if needs_values else _OF_REMOVALS)


def _with_values(site: Site, environment: Mapping[str, str], *, only: frozenset[str] | None) -> Site:
    lines, entries = [], {}
    for key, entry in site.entries.items():
        try:
            wanted = {name: value for name, value in entry.body.items() if only is None or name in only}
            body = {**entry.body, **with_values(wanted, entry.source.folder, environment)}
        except ValueMissing as error:
            lines.append(f"{entry.place(*error.path)}: {error}")
        else:
            entries[key] = Entry(key, body, entry.source)
    if lines:
        raise SiteRefused(lines)
    return Site(site.name, entries)


def _entries(source: Source) -> Iterator[Entry]:
    for section in NOUNS:
        for name, body in source.document.value.get(section, {}).items():
            yield Entry(Key(section, name), body, source)


def _sources(name: str, stdin: BinaryIO) -> Iterator[Source]:
    if name == STDIN:
        yield from _documents("<stdin>", FilePath(), stdin.read(LARGEST + 1))
        return
    path = FilePath(name)
    try:
        if path.is_dir():
            files = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES and each.is_file())
            if len(files) > _MOST_FILES:
                raise UsageFault(f"{name}: at most {_MOST_FILES} files expected")
        else:
            files = [path]
        for file in files:
            with file.open("rb") as opened:
                content = opened.read(LARGEST + 1)
            yield from _documents(str(file), file.parent, content)
    except OSError as error:
        raise UsageFault(f"{name}: {error.strerror or error}") from error


def _documents(file: str, folder: FilePath, content: bytes) -> Iterator[Source]:
    try:
        text = content.decode("utf-8-sig")
        # JSON is YAML too, so its names and places are checked in the same way.
        for document in read_yaml(text):
            yield Source(file, folder, document)
    except UnicodeDecodeError:
        raise SiteRefused([f"{file}: a text in UTF-8 expected"]) from None
    except YamlRefused as error:
        place = f"{file}:{error.line}:{error.column}" if error.line else file
        raise SiteRefused([f"{place}: {error.problem}"]) from None
