"""helm, as far as it can go without charts' templates: version, repositories, releases as Secrets of the cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import yaml

from kubevnfm_lab.machines.apiclient import ApiRefusal, ApiUnreachable
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options, Program, options
from kubevnfm_lab.machines.programs.kubectl.session import Session, open_session, refused
from kubevnfm_lab.machines.wordlist import words

WITH_VALUE = words(
    "--kubeconfig -n --namespace -f --values --set --version --timeout -o --output --kube-context --repo"
)
LABELS = "owner=helm"


async def helm(call: Call) -> Exit:
    """Run one command of helm; the chart must be a folder or an archive on the machine."""
    given = options(call.args, with_value=WITH_VALUE)
    match given.words:
        case ["version", *_]:
            return Exit(0, "v3.16.3\n" if given.has("--short") else 'version.BuildInfo{Version:"v3.16.3"}\n')
        case ["repo", *_] | []:
            return Exit()
        case ["install" | "upgrade" as verb, name, chart, *_]:
            return await _told(_install(call, open_session(call, given), verb, name, chart))
        case ["uninstall" | "delete", name, *_]:
            return await _told(_uninstall(open_session(call, given), name))
        case ["list" | "ls", *_]:
            return await _told(_list(open_session(call, given), given))
        case ["status", name, *_]:
            return await _told(_status(open_session(call, given), name))
    raise Failed(f'Error: unknown command "{given.words[0]}" for "helm"')


async def _told(running: Any) -> Exit:
    try:
        ended: Exit = await running
    except ApiRefusal as refusal:
        raise Failed(f"Error: {refused(refusal)}") from refusal
    except ApiUnreachable as error:
        raise Failed(f"Error: Kubernetes cluster unreachable: {error}") from error
    return ended


def _path(session: Session, name: str = "") -> str:
    base = f"/api/v1/namespaces/{session.namespace}/secrets"
    return f"{base}/sh.helm.release.v1.{name}.v1" if name else base


async def _install(call: Call, session: Session, verb: str, name: str, chart: str) -> Exit:
    folder = call.path(chart)
    if not folder.exists():
        raise Failed(f"Error: INSTALLATION FAILED: path {chart!r} not found")
    try:
        await session.api.request("GET", _path(session, name))
        exists = True
    except ApiRefusal as refusal:
        if refusal.status != 404:
            raise
        exists = False
    if exists and verb == "install":
        raise Failed("Error: INSTALLATION FAILED: cannot re-use a name that is still in use")
    if not exists and verb == "upgrade" and not session.given.has("-i", "--install"):
        raise Failed(f'Error: UPGRADE FAILED: "{name}" has no deployed releases')
    described = folder / "Chart.yaml"
    metadata = yaml.safe_load(described.read_text()) if described.is_file() else {"name": folder.name, "version": "0"}
    release = {"name": name, "chart": metadata, "info": {"status": "deployed"}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": f"sh.helm.release.v1.{name}.v1",
            "labels": {"owner": "helm", "name": name, "status": "deployed"},
        },
        "data": {"release": base64.b64encode(json.dumps(release).encode()).decode()},
    }
    await session.api.apply(secret, namespace=session.namespace, manager="helm")
    return Exit(0, f"NAME: {name}\nNAMESPACE: {session.namespace}\nSTATUS: deployed\nREVISION: 1\n")


async def _uninstall(session: Session, name: str) -> Exit:
    try:
        await session.api.request("DELETE", _path(session, name))
    except ApiRefusal as refusal:
        if refusal.status != 404:
            raise
        raise Failed(f"Error: uninstall: Release not loaded: {name}: release: not found") from refusal
    return Exit(0, f'release "{name}" uninstalled\n')


async def _status(session: Session, name: str) -> Exit:
    try:
        await session.api.request("GET", _path(session, name))
    except ApiRefusal as refusal:
        if refusal.status != 404:
            raise
        raise Failed("Error: release: not found") from refusal
    return Exit(0, f"NAME: {name}\nNAMESPACE: {session.namespace}\nSTATUS: deployed\nREVISION: 1\n")


async def _list(session: Session, given: Options) -> Exit:
    listing = await session.api.request("GET", _path(session), params={"labelSelector": LABELS})
    rows = [
        {
            "name": item["metadata"]["labels"]["name"],
            "namespace": session.namespace,
            "revision": "1",
            "status": "deployed",
        }
        for item in listing["items"]
    ]
    if given.get("-o", "--output") == "json":
        return Exit(0, json.dumps(rows) + "\n")
    lines = ["NAME\tNAMESPACE\tREVISION\tSTATUS", *("\t".join(row.values()) for row in rows)]
    return Exit(0, "".join(f"{line}\n" for line in lines))


PROGRAMS: Mapping[str, Program] = {"helm": helm}
