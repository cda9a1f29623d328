"""Writes YAML that Kubernetes and its programs read as it was."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from kubevnfm_kit.foreign_yaml.kubernetes import plain_value


class _Dumper(yaml.SafeDumper):
    """PyYAML's, with quotes around the texts too that are numbers for Kubernetes alone, such as ``1e3``."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    try:
        is_plain = isinstance(plain_value(text), str)
    except ValueError:
        is_plain = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else "'")


_Dumper.add_representer(str, _text)


def write_yaml(document: object) -> str:
    """Return the document as a YAML text, its keys in their order."""
    return write_yaml_documents([document])


def write_yaml_documents(documents: Iterable[object]) -> str:
    """Return the documents as one YAML text, their keys in their order."""
    text: str = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False)
    return text
