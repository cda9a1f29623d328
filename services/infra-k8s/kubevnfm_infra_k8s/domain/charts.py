"""Helm charts: what they are rendered for, and the templates of the rendered text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_SOURCE: Final = re.compile(r"^# Source: (?P<name>.+)$")
_SEPARATOR: Final = "---"


@dataclass(frozen=True)
class ChartTarget:
    """The cluster and the namespace that a chart is rendered for: its templates may ask for them."""

    namespace: str
    kubernetes_version: str
    api_versions: Sequence[str]


def templates_of(chart: str, rendered: str) -> Sequence[tuple[str, str]]:
    """Return (name, text) of each template, in the order of Helm, so that errors name the template.

    ``rendered``: the output of ``helm template``, in which a comment before each document names its template.
    """
    texts: dict[str, list[str]] = {}
    document: list[str] = []
    for line in [*rendered.splitlines(keepends=True), f"{_SEPARATOR}\n"]:
        if line.rstrip() != _SEPARATOR:
            document.append(line)
            continue
        if any(each.strip() for each in document):
            texts.setdefault(_template(chart, document), []).append("".join(document))
        document = []
    return [(name, f"{_SEPARATOR}\n".join(documents)) for name, documents in texts.items()]


def _template(chart: str, document: Sequence[str]) -> str:
    found = next((fits for line in document if (fits := _SOURCE.match(line.rstrip()))), None)
    return f"{chart}: {found['name']}" if found is not None else chart
