"""The live span of a request to an API server."""

from __future__ import annotations

import re
from typing import Final

from kubevnfm_kit import live_spans
from kubevnfm_kit.live_spans import LiveSpan

_RESOURCE: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)/(?:namespaces/[^/]+/(?=[^/]))?(?P<resource>[^/]+)"
)


def call_span(method: str, path: str, vim_id: str) -> LiveSpan:
    """Return the span of a request, with the kind of its object, but no name and no query; it is not recorded outside commands and requests."""
    if live_spans.present() is None:
        return live_spans.NOT_RECORDED
    facts: dict[str, live_spans.Value] = {"http.request.method": method}
    if vim_id:
        facts["kubevnfm.vim.id"] = vim_id
    name = method
    if (found := _RESOURCE.match(path)) is not None:
        kind = "/".join(part for part in found.group("group", "version", "resource") if part)
        facts["kubevnfm.k8s.resource"] = kind
        name = f"{method} {found['resource']}"
    return live_spans.span(name, "client", facts)
