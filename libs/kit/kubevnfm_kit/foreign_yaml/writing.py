"""Writes YAML."""

from __future__ import annotations

from collections.abc import Iterable

import yaml


def write_yaml(document: object) -> str:
    """Return the document as a YAML text, its keys in their order."""
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


def write_yaml_documents(documents: Iterable[object]) -> str:
    """Return the documents as one YAML text, their keys in their order."""
    text: str = yaml.safe_dump_all(documents, sort_keys=False)
    return text
