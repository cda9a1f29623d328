"""Reads YAML of a package into plain JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from kubevnfm_kit.foreign_yaml.heat import read_heat_yaml
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused, YamlTooLarge
from kubevnfm_kit.foreign_yaml.tosca import read_tosca_yaml
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles, read_text

_MOST_CHECKED: Final = 32 * 2**20
"""Bytes of manifests that are checked at onboarding; infra-k8s checks all that it reads."""


def read_vnfd_yaml(files: PackageFiles, name: str) -> JsonObject:
    """Return the one document of a file of a VNFD, read as YAML 1.2. Raises PackageRefused, also for a key given twice."""
    return parse_vnfd_yaml(read_text(files, name), name=name)


def parse_vnfd_yaml(text: str, *, name: str) -> JsonObject:
    """Read a text as ``read_vnfd_yaml`` does; ``name`` is for the error."""
    return _one_map(text, read_tosca_yaml, name=name)


def parse_heat_yaml(text: str, *, name: str, is_package: bool = False) -> JsonObject:
    """Return the one document of a Heat template, with the values that Heat reads; ``name`` is for the error.

    ``is_package``: whether it is a file of a package, which may have no key twice. Heat takes the last one.
    Raises PackageRefused when it is not YAML, or not a mapping.
    """
    return _one_map(text, partial(read_heat_yaml, is_repeated_key_refused=is_package), name=name)


def _one_map(text: str, read: Callable[[str], list[Any]], *, name: str) -> JsonObject:
    try:
        documents = read(text)
    except YamlTooLarge as error:
        raise PackageRefused(str(error), file=name) from error
    except YamlRefused as error:
        raise PackageRefused(f"not YAML: {error}", file=name) from error
    if len(documents) > 1:
        raise PackageRefused("not YAML: expected a single document, but found another document", file=name)
    if not documents or not isinstance(documents[0], dict):
        raise PackageRefused("the YAML document is not a mapping", file=name)
    return documents[0]


def check_manifests(files: PackageFiles, names: Iterable[str]) -> None:
    """Refuse manifests that exceed a limit of their reader. Raises PackageRefused with file and line.

    Other faults are left to the request that names the file: templates and files with placeholders are not YAML yet.
    """
    left = _MOST_CHECKED
    for name in names:
        size = files.size(name)
        if size > left:
            continue
        left -= size
        with files.open(name) as stream:
            text = stream.read(size).decode("utf-8-sig", errors="replace")
        try:
            read_kubernetes_yaml(text)
        except YamlTooLarge as error:
            raise PackageRefused(str(error), file=name) from error
        except YamlRefused:
            continue
