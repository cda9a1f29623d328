"""Helm charts: what they are rendered for, and the templates of the rendered text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients.multicloud.errors import ChartRefused

_SOURCE: Final = re.compile(r"^# Source: (?P<name>.+)$", re.MULTILINE)
_MOST_DOCUMENTS: Final = 20_000
"""The largest clusters have a hundred times as many objects, of all their applications."""
_SEPARATOR: Final = re.compile(r"^---[ \t\r]*(?:\n|\Z)", re.MULTILINE)


def release_name(vnf_instance_id: str) -> str:
    """Return the name of the release of an instance's charts, as Tacker has it."""
    return f"vnf{vnf_instance_id.replace('-', '')}"


@dataclass(frozen=True)
class ChartTarget:
    """The cluster and the namespace that a chart is rendered for: its templates may ask for them."""

    namespace: str
    kubernetes_version: str
    api_versions: Sequence[str]


def templates_of(chart: str, rendered: str) -> Sequence[tuple[str, str]]:
    """Return (name, text) of each template, in the order of Helm, so that errors name the template.

    Raises ChartRefused for very many documents. ``rendered``: the output of ``helm template``, in which a comment before each document names its template.
    """
    texts: dict[str, list[str]] = {}
    # Not line by line: a chart may make millions of them.
    begins, documents_left = 0, _MOST_DOCUMENTS
    for separator in (*_SEPARATOR.finditer(rendered), None):
        document = rendered[begins : separator.start() if separator is not None else len(rendered)]
        if document and not document.isspace():
            texts.setdefault(_template(chart, document), []).append(document)
            documents_left -= 1
            if not documents_left:
                raise ChartRefused(f"{chart}: the chart makes {_MOST_DOCUMENTS} documents or more; fewer expected")
        begins = separator.end() if separator is not None else begins
    return [(name, "---\n".join(documents)) for name, documents in texts.items()]


def _template(chart: str, document: str) -> str:
    named = (found["name"].strip() for found in _SOURCE.finditer(document))
    name = next(filter(None, named), None)
    return f"{chart}: {name}" if name is not None else chart
