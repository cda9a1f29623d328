"""Reads YAML of a package into plain JSON data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused, YamlTooLarge
from kubevnfm_kit.foreign_yaml.tosca import read_tosca_yaml
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles, read_text

_MOST_CHECKED: Final = 32 * 2**20
"""Bytes of manifests that are checked at onboarding; infra-k8s checks all that it reads."""


def read_yaml(files: PackageFiles, name: str) -> JsonObject:
    """Return the one YAML document of a file. Raises PackageRefused when it is not YAML, or not a mapping."""
    return parse_yaml(read_text(files, name), name=name)


def parse_yaml(text: str, *, name: str) -> JsonObject:
    """Read YAML from text as ``read_yaml`` does; ``name`` is for the error."""
    documents = parse_documents(text, name=name)
    if len(documents) > 1:
        raise PackageRefused("not YAML: expected a single document, but found another document", file=name)
    if not documents or not isinstance(documents[0], dict):
        raise PackageRefused("the YAML document is not a mapping", file=name)
    return documents[0]


def parse_documents(text: str, *, name: str) -> list[Any]:
    """Return all YAML documents of a text, None for one without content. Raises PackageRefused when it is not YAML."""
    try:
        return read_tosca_yaml(text)
    except YamlTooLarge as error:
        raise PackageRefused(str(error), file=name) from error
    except YamlRefused as error:
        raise PackageRefused(f"not YAML: {error}", file=name) from error


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
