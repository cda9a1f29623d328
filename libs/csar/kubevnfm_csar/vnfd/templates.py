"""Collects the service templates of a VNFD: the entry file and all that it imports."""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Iterator

from kubevnfm_kit.json_types import JsonObject

from kubevnfm_csar.documents import read_vnfd_yaml
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles, locate
from kubevnfm_csar.vnfd.types import STANDARD_FILE

Templates = dict[str, JsonObject]
"""Service template by path in the package, the entry file first."""


def read_templates(files: PackageFiles, entry: str) -> Templates:
    """Return every template that can be reached from the entry file.

    Nothing is fetched: an import by URL must be one of the standard's type files, which are built in.
    Raises: PackageRefused when a file is missing or not YAML, or when there are too many, or too large ones.
    """
    found: Templates = {}
    open_files = deque([entry])
    reached = {entry}
    left_bytes = files.limits.definitions_bytes
    while open_files:
        name = open_files.popleft()
        document = read_vnfd_yaml(files, name)
        found[name] = document
        left_bytes -= files.size(name)
        if left_bytes < 0:
            raise PackageRefused(
                f"the VNFD has more than the {files.limits.definitions_bytes} bytes allowed with it", file=name
            )
        for reference in _imports(document, file=name):
            place = None if "://" in reference else locate(files, reference, beside=name)
            if place in reached:
                continue
            if place is not None:
                open_files.append(place)
                reached.add(place)
                if len(reached) > files.limits.definitions:
                    raise PackageRefused(
                        f"the VNFD has more than the {files.limits.definitions} files allowed with it", file=place
                    )
            elif not STANDARD_FILE.match(posixpath.basename(reference)):
                raise PackageRefused(f"imports {reference}, which the package does not hold", file=name)
    return found


def _imports(document: JsonObject, *, file: str) -> Iterator[str]:
    """Yield what a template imports, in each of TOSCA's notations (``- path``, ``- file: path``, ``- name: path``)."""
    entries = document.get("imports") or []
    if isinstance(entries, dict):
        entries = list(entries.values())
    if not isinstance(entries, list):
        raise PackageRefused("imports: a list expected", file=file)
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict) and isinstance(entry.get("file"), str):
            yield entry["file"]
        elif isinstance(entry, dict) and len(entry) == 1:
            (value,) = entry.values()
            yield from _imports({"imports": [value]}, file=file)
        else:
            raise PackageRefused(f"imports: a path expected, got {entry!r}", file=file)
