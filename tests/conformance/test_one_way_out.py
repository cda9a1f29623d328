"""Every outgoing call of HTTP is made by what knows the rule of proxies (docs/proxies.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SESSIONS = {
    "ClientSession": {"libs/kit/kubevnfm_kit/client_session.py"},
    # Their adapter, and their exporter, choose the proxy.
    "requests.Session": {"libs/keystone/kubevnfm_keystone/session.py", "libs/kit/kubevnfm_kit/opentelemetry_spans.py"},
    "keystoneauth1.session.Session": {"libs/keystone/kubevnfm_keystone/counted_session.py"},
    # Code of packages, in a process without network and environment.
    "urllib.request": {"libs/sandbox/kubevnfm_sandbox/tacker_shim/tacker/sol_refactored/common/coord_client.py"},
    # The command line's connections: it reads the rule before each.
    "http.client": {"deploy/cli/kubevnfm_cli/proxies.py"},
}
"""The makers of sessions and connections, with the modules that may use each."""
_WORDS = ("Session", "requests", "urllib.request", "urlopen", "http.client", "httpx", "urllib3")
_CALLS_OF_REQUESTS = {"get", "post", "put", "patch", "delete", "head", "options", "request"}


def _found(tree: ast.AST) -> set[str]:
    """Return which of them a module uses."""
    found = set()
    imported = {
        each.asname or each.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    has_requests = any(
        each.name == "requests" for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            module = imported.get(text)
            if text.endswith("ClientSession") or (text == "aiohttp.request"):
                found.add("ClientSession")
            if has_requests and text in {"requests.Session", *(f"requests.{name}" for name in _CALLS_OF_REQUESTS)}:
                found.add("requests.Session")
            if text.startswith(("urllib.request.", "httpx.", "urllib3.")) or text == "urlopen":
                found.add("urllib.request")
            if text in {"http.client.HTTPConnection", "http.client.HTTPSConnection"}:
                found.add("http.client")
            if text == "Session" and module == "keystoneauth1.session":
                found.add("keystoneauth1.session.Session")
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base) for base in node.bases}
            if "requests.Session" in bases:
                found.add("requests.Session")
            if "Session" in bases and imported.get("Session") == "keystoneauth1.session":
                found.add("keystoneauth1.session.Session")
            if bases & {"aiohttp.ClientSession", "ClientSession"}:
                found.add("ClientSession")
    return found


def test_no_module_makes_sessions_but_those_that_know_the_proxies() -> None:
    users: dict[str, set[str]] = {kind: set() for kind in SESSIONS}
    packages = [
        *PROJECT.glob("libs/*/kubevnfm_*"),
        *PROJECT.glob("services/*/kubevnfm_*"),
        PROJECT / "deploy/single/kubevnfm",
    ]
    for package in (*packages, PROJECT / "deploy/cli/kubevnfm_cli"):
        for file in package.rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if not any(word in text for word in _WORDS):
                continue
            for kind in _found(ast.parse(text)):
                users[kind].add(str(file.relative_to(PROJECT)))
    assert users == SESSIONS


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("aiohttp.ClientSession()", "ClientSession"),
        ("ClientSession(x)", "ClientSession"),
        ("import requests\nrequests.get(url)", "requests.Session"),
        ("import requests\nrequests.Session()", "requests.Session"),
        ("class A(requests.Session): ...", "requests.Session"),
        ("urllib.request.urlopen(url)", "urllib.request"),
        ("from keystoneauth1.session import Session\nSession()", "keystoneauth1.session.Session"),
    ],
)
def test_the_search_finds_what_makes_sessions(line: str, kind: str) -> None:
    assert _found(ast.parse(line)) == {kind}
